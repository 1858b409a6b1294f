import { expect, it } from "vitest";
import {
  type Agent,
  type AgentOptions,
  type CompactionInput,
  type CompactionStrategy,
  defineAgent,
  ModelError,
  type ModelRequest,
  summarize,
  type TroupeEvent,
  textOf,
} from "../../src/index.ts";
import { type ModelScript, type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";
import { startAgent } from "../support/deciding.ts";
import { elapse, entriesOfType } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate, eventsOfTurn } from "../support/turn-probes.ts";

const isSummary = ({ messages }: ModelRequest): boolean =>
  textOf(messages.at(-1)?.content ?? "").startsWith("<conversation>");

const refused = new ModelError("content flagged", { retryable: false, mayHaveBeenSent: true, status: 400 });
const overloaded = new ModelError("overloaded", { retryable: true, mayHaveBeenSent: true, status: 503 });
const tooLong = new ModelError("too long", {
  retryable: false,
  mayHaveBeenSent: true,
  status: 400,
  details: { kind: "context_length" },
});

/** Answers each turn with "ok" and each summary with the next answer; the last answer repeats. */
function summarizing(...answers: ScriptedAnswer[]): ModelScript {
  let count = 0;
  return (request) => {
    if (!isSummary(request)) return "ok";
    count += 1;
    return answers[Math.min(count, answers.length) - 1] ?? "never";
  };
}

const warnings = (events: readonly TroupeEvent[]) =>
  events.flatMap((event) => (event.type === "warning" ? [`${event.code}: ${event.message}`] : []));

describeRuntimes("a compaction that fails", (stage) => {
  const open = async (script: ModelScript, options: Partial<AgentOptions> = {}): Promise<Agent> => {
    const autoCompact = { strategy: summarize(), keep: 2 };
    const clerk = defineAgent({ name: "clerk", model: scriptedModel(script), maxMessages: 4, autoCompact, ...options });
    return await startAgent(await stage().open({ agents: [clerk] }), "clerk", "c");
  };
  const ask = async (agent: Agent, input = "go") => {
    const turn = agent.executeTurn(input);
    const events = eventsOfTurn(turn);
    const result = await elapse(stage().clock, turn.result);
    return { result, warned: warnings(await events) };
  };
  const reserved = async () => (await stage().look().accounts("default", "c")).map((one) => one.reserved.tokens);

  it("a summary gets as many attempts as a step, and each attempt is reserved and journalled", async () => {
    const agent = await open(summarizing({ error: overloaded }, { error: overloaded }, "short"));
    await ask(agent);
    await ask(agent);
    const { result, warned } = await ask(agent);
    expect(result).toMatchObject({ status: "completed", text: "ok" });
    expect(warned).toEqual([]);
    const types = ["generate.requested", "generate.failed", "generate.responded", "context.compacted"] as const;
    const counts = await Promise.all(
      types.map(async (type) => (await entriesOfType(stage().look(), "c", type)).length),
    );
    expect(counts).toEqual([3, 2, 1, 1]);
    expect(await reserved()).toEqual([0, 0, 0]);
  });

  it.each<[string, ScriptedAnswer, number, string]>([
    ["is refused", { error: refused }, 1, "content flagged"],
    ["fails at each attempt", { error: overloaded }, 3, "overloaded"],
    ["is too long itself", { error: tooLong }, 1, "too long"],
    ["is cut", { text: "half of", finishReason: "length" }, 1, "The summary was cut at 1024 output tokens"],
    ["is empty", " ", 1, "The model returned an empty summary."],
  ])(
    "is a warning if the summary %s: the turn continues, and the next turn tries again",
    async (_how, answer, tries, why) => {
      const answers = [...Array.from({ length: tries }, () => answer), "short"];
      const agent = await open(summarizing(...answers));
      await ask(agent);
      await ask(agent);
      const third = await ask(agent);
      expect(third.result).toMatchObject({ status: "completed", text: "ok", error: null });
      expect(third.warned).toHaveLength(1);
      const words =
        'the strategy "summarize" could not compact the conversation; the turn continues with the whole conversation: ';
      expect(third.warned[0]).toContain(`compaction_failed: ${words}${why}`);
      expect(await entriesOfType(stage().look(), "c", "context.compacted")).toHaveLength(0);
      const fourth = await ask(agent);
      expect(fourth).toMatchObject({ result: { status: "completed" }, warned: [] });
      expect(await entriesOfType(stage().look(), "c", "context.compacted")).toHaveLength(1);
      expect(await reserved()).toEqual([0, 0, 0, 0]);
    },
  );

  it("is tried once per turn, regardless of the number of steps", async () => {
    let tries = 0;
    const strategy = {
      name: "own",
      compact: () => {
        tries += 1;
        throw new TypeError("no pen");
      },
    };
    let steps = 0;
    const model = scriptedModel(() => ((steps += 1) < 3 ? { toolCalls: [{ name: "gone" }] } : "done"));
    const agent = await open("never", { model, maxMessages: 1, autoCompact: { strategy } });
    const { result, warned } = await ask(agent);
    expect(result).toMatchObject({ status: "completed", steps: 3 });
    expect(tries).toBe(1);
    expect(warned).toEqual([expect.stringMatching(/^compaction_failed: the strategy "own" .*: no pen$/)]);
  });

  it.each<[string, (input: CompactionInput) => unknown, RegExp]>([
    ["a text", () => "short", /cannot be taken: \(root\): /],
    ["a number as its summary", ({ messages }) => ({ through: messages[0]?.id, summary: 5 }), /: summary: /],
    ["an empty summary", ({ messages }) => ({ through: messages[0]?.id, summary: " " }), /summary is empty; use null/],
    ["a message that is not there", () => ({ through: "c#9", summary: null }), /through is "c#9"; expected the id of/],
    [
      "a getter that throws",
      () => ({
        get summary() {
          throw new Error("no pen");
        },
      }),
      /summary: cannot be read/,
    ],
  ])("a custom strategy that returns %s fails as if it had thrown", async (_what, compact, words) => {
    const strategy = { name: "own", compact: compact as CompactionStrategy["compact"] };
    const agent = await open("done", { maxMessages: 2, autoCompact: { strategy } });
    await ask(agent);
    const { result, warned } = await ask(agent);
    expect(result).toMatchObject({ status: "completed", text: "done" });
    expect(warned).toEqual([
      expect.stringMatching(/^compaction_failed: the strategy "own" .* the result of the compaction strategy "own" /),
    ]);
    expect(warned[0]).toMatch(words);
    expect(await entriesOfType(stage().look(), "c", "context.compacted")).toEqual([]);
  });

  it("the oldest messages are dropped instead if the model refused the prompt as too long", async () => {
    const most = 5;
    const model = scriptedModel((request) => {
      if (isSummary(request)) return { error: refused };
      return request.messages.length > most ? { error: tooLong } : "ok";
    });
    const agent = await open("never", {
      model,
      maxMessages: undefined,
      autoCompact: { strategy: summarize(), keep: 20 },
    });
    for (let turn = 0; turn < 3; turn += 1) expect((await ask(agent)).warned).toEqual([]);
    const { result, warned } = await ask(agent);
    expect(result).toMatchObject({ status: "completed", text: "ok" });
    const words = "the oldest messages are left out instead: content flagged";
    expect(warned).toEqual([
      `compaction_failed: the strategy "summarize" could not compact the conversation; ${words}`,
    ]);
    const [compacted] = await entriesOfType(stage().look(), "c", "context.compacted");
    expect(compacted).toMatchObject({ strategy: "dropOldest", summaryMessageId: null });
  });

  it("a summary whose process dies is settled and made again, with all its attempts", async () => {
    const gate = createGate<string>();
    let count = 0;
    const model = scriptedModel((request) => {
      if (!isSummary(request)) return "ok";
      count += 1;
      if (count === 2) return gate.pass();
      return count < 5 ? { error: overloaded } : "short";
    });
    const agents = [
      defineAgent({ name: "clerk", model, maxMessages: 2, autoCompact: { strategy: summarize(), keep: 1 } }),
    ];
    const first = await stage().openProcess({ agents });
    const before = await startAgent(first.runtime, "clerk", "c");
    await before.executeTurn("one").result;
    await before.executeTurn("two").id;
    await elapse(stage().clock, gate.reached());
    first.kill();
    stage().expireLeases();
    const agent = await startAgent((await stage().openProcess({ agents })).runtime, "clerk", "c");
    expect(await elapse(stage().clock, agent.turn("c#2").result)).toMatchObject({ status: "completed", text: "ok" });
    const requests = await entriesOfType(stage().look(), "c", "generate.requested");
    const failures = await entriesOfType(stage().look(), "c", "generate.failed");
    expect(requests).toHaveLength(5);
    expect(failures.map(({ error }) => error.code)).toEqual([
      "model_error",
      "interrupted",
      "model_error",
      "model_error",
    ]);
    expect(await entriesOfType(stage().look(), "c", "context.compacted")).toHaveLength(1);
    expect(await reserved()).toEqual([0, 0]);
  });
});
