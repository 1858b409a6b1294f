// Time that passes by itself: `clock.runUntil(promise)` of `createFakeClock()`.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as loopTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  askUser,
  createRuntime,
  defineAgent,
  defineTool,
  ModelError,
  subagent,
} from "../../src/index.ts";
import { type CaseResult, createFakeClock, type FakeClock, runCase, scriptedModel } from "../../src/testing/index.ts";

const HOUR = 3_600_000;
const overloaded = new ModelError("overloaded", {
  retryable: true,
  mayHaveBeenSent: true,
  status: 429,
  retryAfterMs: 20_000,
});
const noArguments = z.object({});

/** A tool that waits for the clock. */
function sleeper(clock: FakeClock, name: string, ms: number, more: { timeoutMs?: number; concurrency?: number } = {}) {
  return defineTool({
    name,
    description: "Waits.",
    parameters: noArguments,
    effect: "none",
    timeoutMs: 2 * HOUR,
    execute: async (_args, { signal }) => {
      await clock.sleep(ms, signal);
      return `${name} at ${clock.now()}`;
    },
    ...more,
  });
}

function calls(...names: readonly string[]) {
  return { toolCalls: names.map((name) => ({ name, arguments: {} })) };
}

async function ran(
  agentOf: (clock: FakeClock) => AgentDefinition,
  options: Parameters<typeof runCase>[2] = {},
): Promise<{ readonly result: CaseResult; readonly clock: FakeClock }> {
  const clock = createFakeClock();
  const result = await clock.runUntil(runCase(agentOf(clock), "Go.", { agentId: "root", ...options, clock }));
  return { result, clock };
}

/** The whole run as it is stored. Only the id of a commit is random, because a store uses it to recognise a commit that is sent twice. */
function storedText({ tree }: CaseResult): string {
  return JSON.stringify(tree, (key, value: unknown) => (key === "lastBatch" ? null : value));
}

/** A server that answers after `turns` turns of the event loop. */
async function slowServer(turns: number): Promise<string> {
  const answer = async (response: ServerResponse): Promise<void> => {
    for (let turn = 0; turn < turns; turn += 1) await loopTurn();
    response.end("the page");
  };
  const server = createServer((_request, response) => void answer(response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** A tool that asks a server, and must not be cut by its time limit. */
function fetching(url: string) {
  return defineTool({
    name: "read",
    description: "Reads.",
    parameters: noArguments,
    effect: "none",
    timeoutMs: 1_000,
    execute: async (_args, { signal }) => await (await fetch(url, { signal })).text(),
  });
}

describe("a run with long waits", () => {
  test("ends at once, in the order of its timers, and is the same each time", async () => {
    const team = (clock: FakeClock): AgentDefinition => {
      const helper = defineAgent({
        name: "helper",
        tools: [sleeper(clock, "nap", 90_000)],
        model: scriptedModel([{ error: overloaded }, calls("nap"), "I have slept."]),
      });
      return defineAgent({
        name: "lead",
        tools: [subagent(helper), sleeper(clock, "long", HOUR), sleeper(clock, "late", 60_000, { timeoutMs: 5_000 })],
        model: scriptedModel([
          { error: overloaded },
          { toolCalls: [{ name: "helper", arguments: { input: "Sleep." } }, ...calls("long", "late").toolCalls] },
          { error: new ModelError("no answer", { retryable: true, mayHaveBeenSent: true }) },
          "All have slept.",
        ]),
      });
    };
    const [one, other] = [await ran(team), await ran(team)];
    expect(one.result.text).toBe("All have slept.");
    expect(one.result.toolCalls.map(({ name, isError }) => [name, isError])).toEqual([
      ["helper", false],
      ["long", false],
      ["late", true],
      ["nap", false],
    ]);
    expect(one.result.durationMs).toBeGreaterThan(HOUR);
    expect(one.result.durationMs).toBeLessThan(HOUR + 60_000);
    expect(storedText(other.result)).toBe(storedText(one.result));
    expect(other.result.durationMs).toBe(one.result.durationMs);
  });

  test("is ended by its limit of working time", async () => {
    const { result } = await ran(
      (clock) =>
        defineAgent({
          name: "desk",
          tools: [sleeper(clock, "long", HOUR)],
          model: scriptedModel([calls("long"), "Done."]),
        }),
      { budget: { maxSeconds: 60 } },
    );
    expect([result.status, result.stopReason]).toEqual(["stopped", "time_limit"]);
    expect(result.durationMs).toBeLessThan(90_000);
  });

  test("goes on when calls wait for each other's slot, and for a child in the code of a tool", async () => {
    const { result } = await ran((clock) => {
      const helper = defineAgent({
        name: "helper",
        tools: [sleeper(clock, "nap", HOUR)],
        model: scriptedModel([calls("nap"), "I have slept."]),
      });
      const asks = defineTool({
        name: "ask_helper",
        description: "Asks.",
        parameters: noArguments,
        effect: "none",
        timeoutMs: 3 * HOUR,
        execute: async (_args, run) => (await (await run.spawn(helper, "Sleep.", { key: "one" })).result).text,
      });
      const one = sleeper(clock, "one", HOUR, { concurrency: 1 });
      return defineAgent({
        name: "lead",
        tools: [asks, one, subagent(helper)],
        model: scriptedModel([calls("one", "one", "ask_helper"), "Done."]),
      });
    });
    expect(result.toolCalls.filter(({ isError }) => isError)).toEqual([]);
    expect(result.toolCalls.map(({ result: text }) => text)).toContain("I have slept.");
    expect(result.durationMs).toBeGreaterThanOrEqual(2 * HOUR);
  });
});

describe("real work", () => {
  test("is not cut short: time stands still meanwhile", async () => {
    const url = await slowServer(200);
    const { result, clock } = await ran((time) =>
      defineAgent({
        name: "desk",
        tools: [fetching(url), sleeper(time, "long", HOUR)],
        model: scriptedModel([calls("read"), calls("read", "long"), "Done."]),
      }),
    );
    expect(result.toolCalls.map(({ name, result: text }) => `${name}: ${text}`)).toEqual([
      "read: the page",
      "read: the page",
      `long: long at ${clock.now()}`,
    ]);
    expect(result.durationMs).toBe(HOUR);
  });

  test("of a model, a hook and decide() holds the time too", async () => {
    const url = await slowServer(50);
    const reads = async (count = 0): Promise<number> => {
      await (await fetch(url)).text();
      return count;
    };
    const model = scriptedModel(async ({ messages }) => {
      await reads();
      const isAsked = messages.some(({ role }) => role === "tool");
      return isAsked ? "Done." : { toolCalls: [{ name: "ask_user", arguments: { question: "Which?" } }] };
    });
    const counted = {
      ...model,
      provider: "openai",
      name: "gpt-5-mini",
      countPromptTokens: async () => await reads(10),
    };
    const warnings: string[] = [];
    const { result } = await ran(
      () =>
        defineAgent({
          name: "desk",
          tools: [askUser()],
          hooks: { beforeLlm: async () => void (await reads()) },
          model: counted,
        }),
      {
        // The prompt is counted, and the price is looked up in a list that is loaded.
        budget: { maxTokens: 100_000, maxCost: 1 },
        onEvent: (event) => (event.type === "warning" ? warnings.push(event.code) : undefined),
        async decide() {
          await reads();
          return { verdict: "answered", result: "The first." };
        },
      },
    );
    expect([result.text, result.durationMs, warnings]).toEqual(["Done.", 0, []]);
  });
});

test("code that goes on after its call was cut off does not hold the time", async () => {
  const { result } = await ran((clock) => {
    const never = defineTool({
      name: "never",
      description: "Never ends.",
      parameters: noArguments,
      effect: "none",
      timeoutMs: 5_000,
      // It waits for the clock once, and ignores its signal.
      execute: async () => {
        await clock.sleep(6_000);
        await new Promise(() => undefined);
      },
    });
    const tools = [never, sleeper(clock, "long", HOUR)];
    return defineAgent({ name: "desk", tools, model: scriptedModel([calls("never"), calls("long"), "Done."]) });
  });
  expect([result.text, result.toolCalls.map(({ isError }) => isError)]).toEqual(["Done.", [true, false]]);
  expect(result.durationMs).toBe(HOUR + 5_000);
});

describe("runUntil()", () => {
  test("rejects for a promise that waits for something other than time", async () => {
    const clock = createFakeClock();
    const model = scriptedModel([{ toolCalls: [{ name: "ask_user", arguments: { question: "Which?" } }] }, "Done."]);
    const runtime = await createRuntime({ agents: [defineAgent({ name: "desk", tools: [askUser()], model })], clock });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent("desk", { agentId: "desk" });
    await agent.start();
    const turn = agent.executeTurn("Go.");
    await expect(clock.runUntil(turn.result)).rejects.toThrow(
      /waits for something other than time, such as a decision/,
    );
    await agent.abort();
    expect((await turn.result).status).toBe("stopped");
  });

  test("returns the value or the error of the promise, and refuses what is none", async () => {
    const clock = createFakeClock(0);
    expect(await clock.runUntil(clock.sleep(5).then(() => clock.now()))).toBe(5);
    await expect(clock.runUntil(Promise.reject(new Error("no")))).rejects.toThrow("no");
    for (const wrong of [undefined, null, 5, "turn", {}, () => undefined]) {
      await expect(clock.runUntil(wrong as never)).rejects.toThrow(/runUntil\(.*\): expected a promise/);
    }
  });
});
