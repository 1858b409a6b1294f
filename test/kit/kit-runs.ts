import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import {
  type AgentTool,
  createRuntime,
  defineAgent,
  type Plugin,
  type RuntimeOptions,
  textOf,
} from "../../src/index.ts";
import { type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";

const made: string[] = [];
afterAll(() => {
  for (const path of made) rmSync(path, { recursive: true, force: true });
});

/** An empty folder that is removed after the tests of the file. */
export function emptyFolder(): string {
  const path = mkdtempSync(join(tmpdir(), "troupe-kit-"));
  made.push(path);
  return path;
}

export interface Calling {
  readonly name: string;
  readonly arguments: object;
}

/** The steps of a model that makes these calls one after the other, and then answers. */
export function oneByOne(calls: readonly Calling[]): ScriptedAnswer[] {
  return [...calls.map((call) => ({ toolCalls: [call] })), "Done."];
}

interface Equipment {
  readonly plugins?: readonly Plugin[];
  readonly tools?: readonly AgentTool[];
  readonly runtime?: Partial<RuntimeOptions>;
  readonly agentId?: string;
}

/** Runs one turn in which the model makes these calls, each in its own step; gives the results as the model sees them. */
export async function resultsOf(calls: readonly Calling[], equipment: Equipment): Promise<string[]> {
  const { plugins = [], tools = [], runtime: options = {}, agentId = "clerk-1" } = equipment;
  const definition = defineAgent({
    name: "clerk",
    model: scriptedModel(oneByOne(calls)),
    plugins,
    tools,
    budget: { maxSteps: calls.length + 2 },
    maxConsecutiveToolFailures: calls.length + 2,
  });
  const runtime = await createRuntime({ agents: [definition], ...options });
  try {
    const agent = await runtime.agent("clerk", { agentId });
    await agent.start();
    const before = (await agent.getMessages()).length;
    const result = await agent.executeTurn("Go.").result;
    if (result.text !== "Done.") throw new Error(`the turn ended with ${JSON.stringify(result.text)}`);
    const messages = (await agent.getMessages()).slice(before);
    return messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
  } finally {
    await runtime.shutdown();
  }
}
