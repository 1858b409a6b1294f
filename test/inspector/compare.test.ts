import { expect, test } from "vitest";
import type { ComparedText, StepContents } from "../../src/inspector/feed/wire.ts";
import { compareRuns } from "../../src/inspector/run-model/compare.ts";
import { type RunAgentRecord, type RunEntry, RunLog } from "../../src/inspector/run-model/run-log.ts";

interface Step {
  readonly agent?: string;
  readonly step?: number;
  readonly promptHash?: string;
  readonly tools?: readonly string[];
  /** The arguments and result of each tool call; default: the same in both runs. */
  readonly given?: string;
  readonly gave?: string;
  /** Hashes of messages, tools and parameters; default: the same in both runs. */
  readonly prompt?: string;
  /** The outcome of its turn; default: the turn is open. */
  readonly ended?: string;
  readonly tokens?: number;
  readonly answer?: string;
}

interface Child {
  readonly name: string;
  readonly step?: number;
}

/** A run of `root` with children `root~0`, `root~1` and so on. */
function runOf(root: string, steps: readonly Step[], children: readonly Child[] = []) {
  const record = (agentId: string, name: string, step: number | null): RunAgentRecord => ({
    agentId,
    name,
    definition: "",
    parentAgentId: step === null ? null : root,
    parentTurnId: step === null ? null : `${root}#1`,
    parentStep: step,
    parentCallId: null,
    isBackground: false,
    depth: step === null ? 0 : 1,
    accountId: null,
    parentAccountId: null,
    sessionId: null,
    createdAt: 0,
  });
  const log = new RunLog();
  log.addAgents([
    record(root, "lead", null),
    ...children.map(({ name, step = 1 }, index) => record(`${root}~${index}`, name, step)),
  ]);
  const contents = new Map<string, StepContents>();
  let cursor = 0;
  for (const { agent = "", step = 1, promptHash = "p", tools = [], tokens = 10, ...said } of steps) {
    const agentId = `${root}${agent}`;
    const place = { at: 0, turnId: `${agentId}#1`, step, attempt: 1, model: "m" };
    const messageId = `${agentId} ${step}`;
    const { given = "{}", gave = "seen", prompt = "P", answer = "", ended } = said;
    const seq = cursor * 9 + 1;
    const calls = tools.map((name, index) => ({ name, callId: `${place.turnId}:${step}:${index}` }));
    const texts = { arguments: compared(given), result: compared(gave) };
    contents.set(`${agentId} ${seq}`, {
      agentId,
      seq,
      prompt,
      answer: compared(answer),
      calls: calls.map(({ callId }) => ({ callId, ...texts })),
    });
    const usage = { inputTokens: tokens, outputTokens: 1 };
    const entries = [
      { type: "model.requested", seq, ...place, promptHash, messageId },
      {
        type: "model.responded",
        seq: seq + 1,
        ...place,
        messageId,
        hasText: answer !== "",
        usage,
        costMicros: tokens,
      },
      ...calls.map((call) => ({ type: "tool.settled", ...place, ...call, outcome: "success" })),
      ...(ended === undefined ? [] : [{ type: "turn.ended", ...place, outcome: "completed", stopReason: ended }]),
    ];
    cursor += 1;
    log.append([{ cursor, agentId, entries: entries as unknown as RunEntry[] }]);
  }
  return { log, contentsOf: (agentId: string, seq: number) => contents.get(`${agentId} ${seq}`) };
}

function compared(text: string): ComparedText {
  return { text, hash: text };
}

const fieldsOf = (compared: ReturnType<typeof compareRuns>) =>
  compared.map(({ name, steps }) => [name, steps.map(({ differs }) => differs)]);

test("two runs with the same steps have no difference", () => {
  const steps = [{ tools: ["look", "write"] }, { step: 2, promptHash: "q", answer: "done" }];
  const compared = compareRuns(
    runOf("a", steps),
    runOf("b", [{ tools: ["write", "look"] }, { step: 2, promptHash: "other ids", answer: "done" }]),
  );
  expect(compared).toMatchObject([{ name: "lead", differences: 0, steps: [{ isSame: true }, { isSame: true }] }]);
});

test("each field that differs is named, and an unknown text is not compared", () => {
  const one = runOf("a", [{ promptHash: "p", tools: ["look"], tokens: 10, answer: "yes" }]);
  const other = runOf("b", [{ promptHash: "q", tools: ["read"], tokens: 11, answer: "no" }]);
  expect(fieldsOf(compareRuns(one, other))).toEqual([
    ["lead", [["prompt", "tools", "arguments", "results", "tokens", "cost", "answer"]]],
  ]);
  const unread = compareRuns(one, { ...other, contentsOf: () => undefined });
  expect(fieldsOf(unread)).toEqual([["lead", [["prompt", "tools", "tokens", "cost"]]]]);
  expect(unread[0]?.steps[0]).toMatchObject({ isRead: false });
});

test.each<readonly [string, Step, readonly string[]]>([
  ["arguments", { given: '{"euros":120}' }, ["arguments"]],
  ["results", { gave: "120 paid" }, ["results"]],
  ["prompts of a call", { prompt: "Q" }, ["prompt"]],
])("runs with different %s differ, even if names and amounts are equal", (_what, change, fields) => {
  const step: Step = { tools: ["pay", "note"] };
  const [lead] = compareRuns(runOf("a", [step]), runOf("b", [{ ...step, ...change }]));
  expect(lead).toMatchObject({ differences: 1, steps: [{ differs: fields, isSame: false, isRead: true }] });
});

test("an agent whose turn ended differently differs", () => {
  const [lead] = compareRuns(runOf("a", [{ ended: "completed" }]), runOf("b", [{ ended: "user_requested" }]));
  expect(lead).toMatchObject({
    differences: 1,
    ends: { one: "completed completed", other: "completed user_requested" },
    steps: [{ isSame: true }],
  });
});

test("agents that differ come first; a step or agent that one run lacks is a difference", () => {
  const one = runOf(
    "a",
    [{}, { agent: "~0" }, { agent: "~1" }, { agent: "~1", step: 2 }],
    [{ name: "clerk" }, { name: "reader" }],
  );
  const other = runOf(
    "b",
    [{}, { agent: "~0" }, { agent: "~1" }],
    [{ name: "reader" }, { name: "clerk" }, { name: "guard" }],
  );
  const compared = compareRuns(one, other);
  expect(compared.map(({ name, differences }) => [name, differences])).toEqual([
    ["reader", 1],
    ["guard", 1],
    ["lead", 0],
    ["clerk", 0],
  ]);
  expect(compared[0]).toMatchObject({ one: { agentId: "a~1" }, other: { agentId: "b~0" } });
  expect(compared[0]?.steps[1]).toMatchObject({ turn: 1, step: 2, other: null, isSame: false });
  expect(compared[1]).toMatchObject({ one: null, other: { agentId: "b~2" } });
});

test("children are paired by the step that spawned them, then by name", () => {
  const one = runOf(
    "a",
    [],
    [
      { name: "reader", step: 1 },
      { name: "reader", step: 2 },
      { name: "reader", step: 3 },
    ],
  );
  const other = runOf(
    "b",
    [],
    [
      { name: "reader", step: 2 },
      { name: "reader", step: 5 },
    ],
  );
  const pairs = compareRuns(one, other).map(({ one: mine, other: its }) => [mine?.agentId, its?.agentId]);
  expect(pairs).toContainEqual(["a~1", "b~0"]);
  expect(pairs).toContainEqual(["a~0", "b~1"]);
  expect(pairs).toContainEqual(["a~2", undefined]);
});
