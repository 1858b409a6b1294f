import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { limitsSchema } from "../../src/budget/index.ts";
import { InvalidInputError } from "../../src/errors/index.ts";
import {
  agentStateJson,
  agentStateSchema,
  agentStepJson,
  agentStepSchema,
  continuationJson,
  continuationSchema,
  executionStateJson,
  executionStateSchema,
  limitsJson,
  messageSchema,
  type Message,
  stepExecutionJson,
  stepExecutionSchema,
  toolExecutionJson,
  toolExecutionSchema,
  withAddedMessages,
} from "../../src/state/index.ts";
import { modelRequested, modelResponded, toolSettled, turnEnded, turnId } from "../machines/bodies.ts";
import { amount } from "../support/full.ts";
import { answer, now, stateAfter, user } from "./agent-values.ts";
import { arbitraryOf } from "./arbitrary-of.ts";

const result: Message = {
  id: `${turnId}:1:0`,
  role: "tool",
  createdAt: now,
  content: "seen",
  origin: "tool",
  callId: `${turnId}:1:0`,
  providerId: "p",
};
const rounds = stateAfter(
  modelRequested(),
  modelResponded(1, 1),
  toolSettled(0),
  modelRequested(2),
  modelResponded(2),
  turnEnded(),
);
const state = withAddedMessages(rounds, [user, answer(""), result, answer("done", `${turnId}:2`)], now);

/** Each object of row S10, made of nothing but its schema, and its way through JSON. */
const objects = [
  { name: "AgentState", schema: agentStateSchema, json: agentStateJson },
  { name: "ExecutionState", schema: executionStateSchema, json: executionStateJson },
  { name: "StepExecution", schema: stepExecutionSchema, json: stepExecutionJson },
  { name: "AgentStep", schema: agentStepSchema, json: agentStepJson },
  { name: "ToolExecution", schema: toolExecutionSchema, json: toolExecutionJson },
  { name: "Continuation", schema: continuationSchema, json: continuationJson },
  { name: "Limits", schema: limitsSchema, json: limitsJson },
] as const;

type ToJson = (value: unknown, messages: readonly Message[]) => unknown;
type FromJson = (stored: unknown) => unknown;

/** The value as a text in which one of its objects, wherever it is, has another key. */
function poisonedAt(value: unknown, where: number, key: string): string {
  const copy = structuredClone(value);
  const found: object[] = [];
  for (const queue: unknown[] = [copy]; queue.length > 0; ) {
    const one = queue.pop();
    if (typeof one !== "object" || one === null) continue;
    if (!Array.isArray(one)) found.push(one);
    queue.push(...Object.values(one));
  }
  Object.assign(found[where % found.length] ?? {}, { "a key for poison": { isAdmin: true } });
  return JSON.stringify(copy).replace("a key for poison", key);
}

describe.each(objects)("$name goes through JSON and back (row S10)", ({ schema, json }) => {
  const toJSON = json.toJSON as ToJson;
  const fromJSON = json.fromJSON as FromJson;
  const messages = fc.array(arbitraryOf(messageSchema) as fc.Arbitrary<Message>, { maxLength: 3 });

  test("as a value and as a text, with nothing lost and nothing shared", () => {
    fc.assert(
      fc.property(arbitraryOf(schema), messages, (value, known) => {
        const before = structuredClone(value);
        const stored = toJSON(value, known);
        expect(value).toEqual(before);
        const read = fromJSON(JSON.parse(JSON.stringify(stored)));
        expect(fromJSON(JSON.stringify(stored))).toEqual(read);
        // What is materialised comes along, beside all that was there before.
        expect(schema.parse(read)).toEqual(value);
        expect(toJSON(read, known)).toEqual(stored);
      }),
      { numRuns: amount(60, 10) },
    );
  });

  test.each(["__proto__", "constructor", "prototype"])("with the key %s anywhere it is refused", (key) => {
    fc.assert(
      fc.property(arbitraryOf(schema), fc.nat(), (value, where) => {
        const poisoned = poisonedAt(toJSON(value, []), where, key);
        expect(() => fromJSON(poisoned)).toThrow(InvalidInputError);
        expect(() => fromJSON(JSON.parse(poisoned))).toThrow(InvalidInputError);
        expect(({} as { isAdmin?: unknown }).isAdmin).toBeUndefined();
      }),
      { numRuns: amount(30, 5) },
    );
  });

  test.each([null, 7, true, [], "", "{", "[1]", '"text"', undefined, new Date(0), new Map(), () => 1])(
    "%s is refused",
    (value) => {
      expect(() => fromJSON(value)).toThrow(InvalidInputError);
    },
  );

  test("something it does not know is refused, with the place", () => {
    fc.assert(
      fc.property(arbitraryOf(schema), (value) => {
        const stored = { ...(toJSON(value, []) as object), $class: "Agent" };
        expect(() => fromJSON(stored)).toThrow(/unknown field: \$class/);
      }),
      { numRuns: 5 },
    );
  });
});

describe("wrong types are refused, with the place (row S10)", () => {
  const stored = agentStateJson.toJSON(state);
  const withPart = (path: string, value: unknown): unknown => {
    const copy = structuredClone(stored) as unknown as Record<string, unknown>;
    const keys = path.split(".");
    const last = keys.pop() ?? "";
    const holder = keys.reduce<Record<string, unknown>>((one, key) => one[key] as Record<string, unknown>, copy);
    holder[last] = value;
    return copy;
  };

  test.each([
    { path: "agentId", value: 7 },
    { path: "createdAt", value: "2026-01-01" },
    { path: "updatedAt", value: 1.5 },
    { path: "executionCount", value: -1 },
    { path: "parentAgentId", value: {} },
    { path: "llmConfig", value: { provider: "p" } },
    { path: "context.messages", value: {} },
    { path: "context.messages.0.role", value: "root" },
    { path: "context.messages.0.content", value: { type: "text", text: "x" } },
    { path: "context.messages.0.metadata", value: { is_trace: "yes" } },
    { path: "context.metadata", value: [1] },
    { path: "context.responseFormat", value: { type: "xml" } },
    { path: "execution.status", value: "sleeping" },
    { path: "execution.startedAt", value: null },
    { path: "execution.continuation.stopSignals", value: [{ reason: "bored", message: "", source: "" }] },
    { path: "execution.stepExecutions.0.step.toolExecutions.0.outcome", value: "perhaps" },
    { path: "execution.stepExecutions.0.step.inference.usage.inputTokens", value: -1 },
    { path: "execution.stepExecutions.0.step.inputMessages", value: null },
  ])("$path", ({ path, value }) => {
    const wrong = withPart(path, value);
    const before = structuredClone(wrong);
    expect(() => agentStateJson.fromJSON(wrong)).toThrow(InvalidInputError);
    expect(() => agentStateJson.fromJSON(wrong)).toThrow(path.replace(/\.inputMessages$/, ""));
    expect(wrong).toEqual(before);
  });

  test.each(["agentId", "context", "execution", "updatedAt"])("a missing %s", (key) => {
    const { [key]: _left, ...rest } = stored as unknown as Record<string, unknown>;
    expect(() => agentStateJson.fromJSON(rest)).toThrow(new RegExp(`does not fit its schema: .* at ${key}`));
  });

  test("objects with behaviour", () => {
    const withGetter = { ...stored, metadata: undefined, context: new Proxy({}, {}) };
    expect(() => agentStateJson.fromJSON(withGetter)).toThrow(InvalidInputError);
    class Agent {
      readonly agentId = "x";
    }
    expect(() => agentStateJson.fromJSON(new Agent())).toThrow(/a Agent is not a JSON value/);
  });

  test("what contains itself, or is nested too deep", () => {
    const loop: Record<string, unknown> = {};
    loop["loop"] = loop;
    expect(() => agentStateJson.fromJSON(loop)).toThrow(InvalidInputError);
    expect(() => agentStateJson.fromJSON("[".repeat(100_000))).toThrow(InvalidInputError);
    expect(() => agentStateJson.fromJSON(`${'{"a":'.repeat(300)}1${"}".repeat(300)}`)).toThrow(/nested deeper/);
  });
});

describe("steps bring their messages", () => {
  test("each as it stands in the conversation", () => {
    const { execution } = agentStateJson.toJSON(state);
    const steps = execution?.stepExecutions.map(({ step }) => step) ?? [];
    expect(steps.map(({ outputMessages }) => outputMessages)).toEqual([
      [answer(""), result],
      [answer("done", `${turnId}:2`)],
    ]);
    expect(steps[1]?.inputMessages).toEqual([result]);
  });

  test("a message that is not known is left out, and its id stays", () => {
    const step = rounds.execution?.stepExecutions[0]?.step;
    const stored = step && agentStepJson.toJSON(step, [result]);
    expect(stored?.outputMessages).toEqual([result]);
    expect(stored?.outputMessageIds).toEqual([`${turnId}:1`, `${turnId}:1:0`]);
  });

  test("what is read can be asked and changed like what was written", () => {
    const read = agentStateJson.fromJSON(JSON.stringify(agentStateJson.toJSON(state)));
    expect(read).toEqual(state);
    expect(withAddedMessages(read, [user], 9_000).context.messages).toHaveLength(5);
  });
});
