import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAnthropic } from "@ai-sdk/anthropic";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  bindThinking,
  createRuntime,
  dropOldest,
  InvalidInputError,
  type LanguageModel,
  memoryStores,
  type ModelRequest,
  openaiModel,
  reactHistory,
  type Stores,
  windowHistory,
  withoutTraces,
} from "../../src/index.ts";
import { thinkingReplayOf } from "../../src/model/bound-thinking.ts";
import { aiSdkModel } from "../../src/model/ai-sdk.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { startModelServer } from "../support/model-server.ts";
import { type ClerkOptions, clerkOn, lastThree, thinker } from "../support/strict-clerk.ts";
import { type StrictServer, startStrictServer } from "../support/strict-thinking.ts";
import { startProgram } from "../support/waiting-process.ts";

/** A process: asks the questions, and ends. */
async function talk(model: LanguageModel, inputs: readonly string[], options: ClerkOptions & { stores?: Stores } = {}) {
  const { stores = memoryStores(), ...definition } = options;
  const runtime = await createRuntime({ agents: [clerkOn(model, definition)], stores });
  const clerk = await runtime.agent("clerk", { agentId: "desk" });
  await clerk.start();
  const statuses: string[] = [];
  for (const input of inputs) statuses.push((await clerk.executeTurn(input).result).status);
  await runtime.shutdown();
  return statuses;
}

const thoughtsOf = ({ requests }: StrictServer): readonly number[] => requests.map(({ thoughts }) => thoughts);

const questions = ["One?", "Two?", "Three?", "Four?"];
const usual = "ccttctt";

interface Scene {
  readonly name: string;
  readonly options: ClerkOptions;
  /** The answers. Default: two rounds in the first turn, one in the third. */
  readonly script?: string;
  /** Whether a change of the prefix makes the server refuse the thinking that is sent in any case. */
  readonly changes: boolean;
}

let day = 0;
const scenes: readonly Scene[] = [
  { name: "a conversation that only grows", options: {}, changes: false },
  { name: "a window", options: { history: windowHistory(3) }, changes: true },
  { name: "a window that moves with each message", options: { history: lastThree }, changes: true },
  { name: "withoutTraces()", options: { history: withoutTraces() }, changes: true },
  { name: "reactHistory()", options: { history: reactHistory({ contextWindowSize: 2 }) }, changes: true },
  {
    name: "a compaction",
    options: { maxMessages: 5, autoCompact: { strategy: dropOldest(), keep: 3 } },
    changes: true,
  },
  {
    name: "a hook that edits a message",
    options: {
      hooks: {
        beforeLlm: (draft) => {
          const [first] = draft.messages;
          if (first && draft.messages.length > 3) draft.edit(first.id, `edited ${draft.messages.length}`);
        },
      },
    },
    changes: true,
  },
  {
    name: "a hook that edits an answer",
    options: {
      hooks: {
        beforeLlm: (draft) => {
          for (const { id, role } of draft.messages) if (role === "assistant") draft.edit(id, "Edited.");
        },
      },
    },
    changes: false,
  },
  {
    name: "a hook that removes a message once",
    options: {
      hooks: {
        beforeLlm: (draft) => {
          const [first] = draft.messages;
          if (first && draft.messages.length === 7) draft.remove(first.id);
        },
      },
    },
    changes: true,
  },
  {
    name: "a hook that adds messages",
    options: { hooks: { beforeLlm: (draft) => draft.add({ role: "system", content: "It is noon." }) } },
    changes: false,
  },
  { name: "instructions of each day", options: { instructions: () => `Day ${(day += 1)}.` }, changes: true },
  { name: "read_artifact", options: {}, script: "ctltt", changes: true },
  {
    name: "the note of a last call",
    options: { budget: { maxSteps: 2, finalAnswer: true } },
    script: "cctt",
    changes: true,
  },
];

describe.each(["messages", "chat"] as const)("a provider that binds thinking to its prefix, by %s", (protocol) => {
  test.each(scenes)("takes every request of $name", async ({ options, script = usual, changes }) => {
    const server = await startStrictServer(thinker(script));
    expect(new Set(await talk(server[protocol](), questions, options))).toEqual(new Set(["completed"]));
    expect(server.refusals).toEqual([]);
    expect(server.leftOut).toEqual([]);
    const careless = await startStrictServer(thinker(script));
    await talk(careless[protocol](undefined, "always"), questions, options);
    expect(careless.refusals.length > 0).toBe(changes);
  });

  test("gets all thinking back while the conversation only grows, over restarts too", async () => {
    const server = await startStrictServer(thinker("ctct"));
    const stores = memoryStores();
    await talk(server[protocol](), ["One?"], { stores });
    await talk(server[protocol](), ["Two?", "Three?"], { stores });
    const each = protocol === "messages" ? [0, 2, 3, 5, 6] : [0, 1, 2, 3, 4];
    expect(thoughtsOf(server)).toEqual(each);
  });

  test("gets its own thinking back after another model has answered", async () => {
    const server = await startStrictServer(thinker(""));
    const stores = memoryStores();
    const first = server[protocol]();
    const second = server[protocol](protocol === "messages" ? "claude-sonnet-5-5" : "anthropic/claude-sonnet-5.5");
    await talk(first, ["One?", "Two?"], { stores });
    await talk(second, ["Three?", "Four?"], { stores });
    await talk(first, ["Five?", "Six?"], { stores });
    expect(thoughtsOf(server)).toEqual([0, 1, 0, 1, 2, 3]);
    expect(server.refusals).toEqual([]);
    expect(server.leftOut).toEqual([]);
  });

  test("gets no thinking that was stored without the hash of its prefix", async () => {
    const server = await startStrictServer(thinker(""));
    const stores = memoryStores();
    await talk(server[protocol](undefined, "always"), ["One?", "Two?"], { stores });
    await talk(server[protocol](), ["Three?", "Four?"], { stores });
    expect(thoughtsOf(server)).toEqual([0, 1, 0, 1]);
    expect(server.refusals).toEqual([]);
  });
});

test("a model that needs its reasoning beside calls gets it back after any prefix", async () => {
  const server = await startModelServer((_body, { index }) =>
    index % 2 === 0
      ? { reasoning: `thought ${index}`, toolCalls: [{ name: "lookup", arguments: { word: "a" } }] }
      : { reasoning: `thought ${index}`, text: `Answer ${index}.` },
  );
  onTestFinished(() => server.stop());
  const model = openaiModel("deepseek-reasoner", { provider: "deepseek", baseURL: server.baseURL, apiKey: "none" });
  await talk(model, questions, { history: windowHistory(4, { upTo: 4 }) });
  const asked = server.requests.flatMap(({ body }) => body.messages.filter(({ tool_calls: calls }) => calls));
  expect(asked.length).toBeGreaterThan(questions.length);
  for (const message of asked) expect(message).toMatchObject({ reasoning_content: expect.any(String) as string });
});

test("a model of one's own leaves out thinking whose prefix has changed, and keeps the rest", async () => {
  const prompts: ModelRequest[] = [];
  const reader = { provider: "own", model: "thinker" };
  const model: LanguageModel = {
    name: reader.model,
    provider: reader.provider,
    countPromptTokens: () => 100,
    generate: (asked) => {
      const { request, hashOf } = bindThinking(asked, reader);
      prompts.push(request);
      const answer = { content: `Answer ${prompts.length}.`, toolCalls: [], reasoning: { thought: prompts.length } };
      const usage = { inputTokens: 100, outputTokens: 10 };
      return Promise.resolve({
        ...answer,
        prefixHash: hashOf(answer),
        usage,
        finishReason: "stop",
        model: reader.model,
      });
    },
  };
  const thoughts = () =>
    prompts.map(({ messages }) => messages.filter((one) => one.role === "assistant" && one.reasoning).length);
  await talk(model, questions);
  expect(thoughts()).toEqual([0, 1, 2, 3]);
  prompts.length = 0;
  await talk(model, questions, { history: lastThree });
  expect(thoughts()).toEqual([0, 1, 0, 0]);
});

test.each([
  ["openaiModel()", (given: object) => openaiModel("m", given)],
  ["aiSdkModel()", (given: object) => aiSdkModel(createAnthropic({ apiKey: "none" })("m"), given)],
])("%s refuses a wrong thinkingReplay", (_name, create) => {
  for (const thinkingReplay of ["never", "", true, null, ["bound"]]) {
    expect(() => create({ thinkingReplay })).toThrow(InvalidInputError);
    expect(() => create({ thinkingReplay })).toThrow("thinkingReplay");
  }
});

test("after kill -9 in the middle of a turn the thinking so far is sent back, and the conversation goes on", async () => {
  const folder = mkdtempSync(join(tmpdir(), "thinker-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "store.db");
  const asked = Promise.withResolvers<void>();
  const never = new Promise<never>(() => undefined);
  const think = thinker("ctcctt");
  const server = await startStrictServer((request) => {
    if (request.index !== 4) return think(request);
    asked.resolve();
    return never;
  });
  const program = startProgram(new URL("killed-thinker.ts", import.meta.url).pathname, [path, server.origin]);
  onTestFinished(() => program.kill());
  await asked.promise;
  program.kill();
  await program.ended;
  const runtime = await createRuntime({ agents: [clerkOn(server.messages())], stores: sqliteStores(path) });
  onTestFinished(() => runtime.shutdown());
  const clerk = await runtime.agent("clerk", { agentId: "desk" });
  await clerk.start();
  expect((await clerk.executeTurn("Three?", { ifBusy: "queue" }).result).status).toBe("completed");
  expect(server.refusals).toEqual([]);
  // The call that was in flight is made again with the same thinking.
  expect(thoughtsOf(server)).toEqual([0, 2, 3, 5, 7, 7, 8]);
});

test.each([
  ["claude-opus-5-5", "bound"],
  ["anthropic/claude-opus-5.5", "bound"],
  ["us.anthropic.claude-sonnet-5-5-20260901-v1:0", "bound"],
  ["claude-fable-5-1@20260801", "bound"],
  ["claude-opus-6", "bound"],
  ["claude-latest", "bound"],
  ["claude-opus-5-20260301", "always"],
  ["claude-opus-4-1-20250805", "always"],
  ["anthropic/claude-sonnet-4.5", "always"],
  ["claude-3-7-sonnet-20250219", "always"],
  ["claude-3-haiku@20240307", "always"],
  ["gemini-3-pro", "always"],
  ["gpt-5.6", "always"],
  ["deepseek-reasoner", "always"],
])("%s: thinking is replayed %s, unless an option sets it", (name, replay) => {
  expect(thinkingReplayOf(name)).toBe(replay);
  expect(thinkingReplayOf(name, "bound")).toBe("bound");
  expect(thinkingReplayOf(name, "always")).toBe("always");
});
