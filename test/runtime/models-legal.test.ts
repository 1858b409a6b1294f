import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, openaiModel } from "../../src/index.ts";
import {
  type ModelServer,
  type ServerAnswer,
  startModelServer,
  type WireRequestBody,
} from "../support/model-server.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

/** What a strict provider refuses in a history; undefined where it takes it. */
function faultOf({ messages }: WireRequestBody): string | undefined {
  const ids = new Set<string>();
  const open = new Set<string>();
  for (const { tool_calls: calls = [], tool_call_id: answered } of messages) {
    for (const call of calls) {
      if (!/^[a-zA-Z0-9_-]{1,64}$/.test(call.function.name)) return `name ${JSON.stringify(call.function.name)}`;
      if (!/^[a-zA-Z0-9_-]{1,40}$/.test(call.id)) return `id ${JSON.stringify(call.id)}`;
      if (ids.has(call.id)) return `double id ${call.id}`;
      ids.add(call.id);
      open.add(call.id);
    }
    if (answered !== undefined && !open.delete(answered)) return `result of no call: ${answered}`;
  }
  return open.size > 0 ? `no result: ${[...open].join()}` : undefined;
}

const named = (...names: readonly string[]) => ({ toolCalls: names.map((name) => ({ name })) });
const identified = (...ids: readonly string[]) => ({ toolCalls: ids.map((id) => ({ name: "look", id })) });

describeRuntimes("calls that a strict provider would refuse to see again", (stage) => {
  const servers: ModelServer[] = [];

  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.stop()));
  });

  it.each<{ title: string; answer: ServerAnswer; names: readonly string[] }>([
    {
      title: "names",
      answer: named("functions.add", "", "a b\0", "x".repeat(100), "🦊", "functions:add", "look"),
      names: ["functions.add", "", "a b\0", "x".repeat(100), "🦊", "functions:add", "look"],
    },
    {
      title: "ids",
      answer: identified("functions.look:0", "a b", "y".repeat(90), "🦊", "z"),
      names: ["look", "look", "look", "look", "look"],
    },
  ])("$title: every later turn works, and the messages have what the model wrote", async ({ answer, names }) => {
    const server = await startModelServer((body) => {
      const fault = faultOf(body);
      if (fault !== undefined) return { status: 400, errorBody: { error: { message: fault } } };
      const last = body.messages.at(-1);
      return last?.role === "user" ? answer : "done";
    });
    servers.push(server);
    const model = openaiModel("strict", { apiKey: "k", baseURL: server.baseURL });
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [look] })] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    for (const input of ["go", "again", "and again"]) {
      expect(await agent.executeTurn(input).result).toMatchObject({ status: "completed", text: "done" });
    }
    const messages = await agent.getMessages();
    const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
    expect(calls.map(({ name }) => name)).toEqual([...names, ...names, ...names]);
  });
});
