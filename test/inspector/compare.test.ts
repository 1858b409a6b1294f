import { expect, test } from "vitest";
import { compareRuns } from "../../src/inspector/run-model/compare.ts";
import { type RunAgentRecord, type RunEntry, RunLog } from "../../src/inspector/run-model/run-log.ts";

interface Step {
  readonly agent?: string;
  readonly step?: number;
  readonly promptHash?: string;
  readonly tools?: readonly string[];
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
  const texts = new Map<string, string>();
  let cursor = 0;
  for (const { agent = "", step = 1, promptHash = "p", tools = [], tokens = 10, answer = "" } of steps) {
    const agentId = `${root}${agent}`;
    const place = { at: 0, turnId: `${agentId}#1`, step, attempt: 1, model: "m" };
    const messageId = `${agentId} ${step}`;
    texts.set(messageId, answer);
    const usage = { inputTokens: tokens, outputTokens: 1 };
    const entries = [
      { type: "model.requested", seq: cursor * 9 + 1, ...place, promptHash, messageId },
      {
        type: "model.responded",
        seq: cursor * 9 + 2,
        ...place,
        messageId,
        hasText: answer !== "",
        usage,
        costMicros: tokens,
      },
      ...tools.map((name) => ({ type: "tool.settled", ...place, name, outcome: "success" })),
    ];
    cursor += 1;
    log.append([{ cursor, agentId, entries: entries as unknown as RunEntry[] }]);
  }
  return { log, textOf: (id: string) => texts.get(id) };
}

const fieldsOf = (compared: ReturnType<typeof compareRuns>) =>
  compared.map(({ name, steps }) => [name, steps.map(({ differs }) => differs)]);

test("two runs that did the same have no difference", () => {
  const steps = [{ tools: ["look", "write"] }, { step: 2, promptHash: "q", answer: "done" }];
  const compared = compareRuns(
    runOf("a", steps),
    runOf("b", [{ tools: ["write", "look"] }, { step: 2, promptHash: "other ids", answer: "done" }]),
  );
  expect(compared).toMatchObject([{ name: "lead", differences: 0, steps: [{ isSame: true }, { isSame: true }] }]);
});

test("each field that differs is named, and a text that is not known is not compared", () => {
  const one = runOf("a", [{ promptHash: "p", tools: ["look"], tokens: 10, answer: "yes" }]);
  const other = runOf("b", [{ promptHash: "q", tools: ["read"], tokens: 11, answer: "no" }]);
  expect(fieldsOf(compareRuns(one, other))).toEqual([["lead", [["prompt", "tools", "tokens", "cost", "answer"]]]]);
  const unread = { ...other, textOf: () => undefined };
  expect(fieldsOf(compareRuns(one, unread))).toEqual([["lead", [["prompt", "tools", "tokens", "cost"]]]]);
});

test("agents that differ come first; a step and an agent that one run lacks are differences", () => {
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
