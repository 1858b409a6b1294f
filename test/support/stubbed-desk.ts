import { appendFileSync } from "node:fs";
import {
  askUser,
  type AgentDefinition,
  defineAgent,
  defineTool,
  type SessionStub,
  subagent,
  textOf,
  type ToolDefinition,
} from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

/** Calls of one round, by name and arguments. */
export type Round = readonly (readonly [name: string, args?: object])[];

export interface StubbedDesk {
  readonly desk: AgentDefinition;
  /** Names of the tools that ran. */
  readonly ran: string[];
}

export const order = z.object({ order: z.string(), reason: z.string().optional() });

/**
 * A desk with tools of all kinds, which note that they ran. Its input is the JSON of its rounds; then it answers with the results of
 * its tools.
 *
 * @param file The tools append their names to it, too.
 */
export function stubbedDesk(more: Partial<ToolDefinition<typeof order>> = {}, file?: string): StubbedDesk {
  const ran: string[] = [];
  const tool = (name: string, options: Partial<ToolDefinition<typeof order>> = {}) =>
    defineTool({
      name,
      description: `Runs ${name}.`,
      parameters: order,
      execute: () => {
        ran.push(name);
        if (file !== undefined) appendFileSync(file, `${name}\n`);
        return `the real ${name}`;
      },
      ...options,
    });
  const helper = defineAgent({ name: "helper", model: follower(), tools: [tool("look", { effect: "none" })] });
  const desk = defineAgent({
    name: "desk",
    model: follower(),
    tools: [
      tool("look", { effect: "none" }),
      tool("pay", { effect: "once", ...more }),
      askUser(),
      subagent(helper, { description: "Helps." }),
    ],
  });
  return { desk, ran };
}

/** Makes the calls of the rounds in its input, and answers with their results. */
function follower() {
  return scriptedModel(({ messages }, { call }) => {
    const step = call?.step ?? 1;
    const inputs = messages.filter(({ role }) => role === "user").map(({ content }) => textOf(content));
    const rounds = JSON.parse(inputs.at(-1) ?? "[]") as Round[];
    const round = rounds[step - 1];
    if (round) return { toolCalls: round.map(([name, args = {}]) => ({ name, arguments: args })) };
    const start = messages.findLastIndex(({ role }) => role === "user");
    return messages
      .slice(start)
      .flatMap(({ role, content }) => (role === "tool" ? [textOf(content)] : []))
      .join(" | ");
  });
}

export const rounds = (...all: readonly Round[]): string => JSON.stringify(all);

export const look = (id: string): Round => [["look", { order: id }]];
export const pay = (id: string): Round => [["pay", { order: id }]];

/** Order 7 is broken at first and then repaired; order 8 is unknown. */
export const stubs: readonly SessionStub[] = [
  { tool: "look", arguments: { order: "7" }, output: { broken: true }, times: 1 },
  { tool: "look", arguments: { order: "7" }, output: { broken: false } },
  { tool: "look", arguments: { order: "8" }, error: "no such order" },
  { tool: "pay", output: "stubbed payment" },
];
