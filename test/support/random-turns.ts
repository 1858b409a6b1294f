import * as fc from "fast-check";
import { hookNames } from "../../src/state/index.ts";

/*
 * Random programs for the property that every request to the model is legal (F23): the model's answers, the behaviour of tools,
 * the changes of hooks, interruptions, and the points where processes die. A plan is plain data: it is printed, shrunk and run
 * again from its seed.
 */

type ValueOf<Choice> = Choice extends fc.Arbitrary<infer Value> ? Value : never;

const toolNames = ["look", "send", "keyed", "approve", "client", "ask_user", "login", "helper"] as const;
/** Names that an agent has only with `reactHistory()`, or never. */
const otherNames = ["load_history", "list_tool_calls", "load_tool_results", "nosuch"] as const;
export type ToolName = (typeof toolNames)[number] | (typeof otherNames)[number];

/** The behaviour of a tool's execute. */
export const deeds = [
  "succeed",
  "throw",
  "hang",
  "notStarted",
  "stop",
  "large",
  "generate",
  "spawn",
  "artifact",
  "nothing",
] as const;
export type Deed = (typeof deeds)[number];

const often = <Value>(weight: number, value: fc.Arbitrary<Value>) => ({ weight, arbitrary: value });
const loops = fc.integer({ min: 0, max: 3 });

const plannedCall = fc.record({
  name: fc.oneof(
    often(5, fc.constant<ToolName>("look")),
    often(8, fc.constantFrom<ToolName>(...toolNames)),
    often(2, fc.constantFrom<ToolName>(...otherNames)),
  ),
  does: fc.oneof(often(3, fc.constant<Deed>("succeed")), often(4, fc.constantFrom<Deed>(...deeds))),
  loops,
  arguments: fc.oneof(
    often(8, fc.constant("right" as const)),
    often(1, fc.constantFrom("truncated" as const, "wrong" as const, "poisoned" as const)),
  ),
});
export type PlannedCall = ValueOf<typeof plannedCall>;

const plannedAnswer = fc.oneof(
  often(
    7,
    fc.record({
      kind: fc.constant("calls" as const),
      calls: fc.array(plannedCall, { minLength: 1, maxLength: 8 }),
      hasText: fc.boolean(),
      /** Providers that give all calls of an answer one id, or none. */
      ids: fc.oneof(often(6, fc.constant("own" as const)), often(1, fc.constantFrom("same" as const, "none" as const))),
      loops,
    }),
  ),
  often(2, fc.record({ kind: fc.constant("text" as const), loops })),
  often(
    1,
    fc.record({ kind: fc.constant("fails" as const), how: fc.constantFrom("passing", "tooLong", "for good"), loops }),
  ),
);
export type PlannedAnswer = ValueOf<typeof plannedAnswer>;

export const hookDeeds = [
  "nothing",
  "add user",
  "add system",
  "add assistant",
  "add two",
  "change",
  "deny",
  "edit",
  "remove",
  "continue",
  "generate",
  "stop",
  "throw",
] as const;
export type HookDeed = (typeof hookDeeds)[number];

const mildDeeds: readonly HookDeed[] = hookDeeds.slice(0, -3);

const hookPlan = fc.record({
  hook: fc.constantFrom(...hookNames),
  /** One per call; later calls do nothing. */
  deeds: fc.array(
    fc.oneof(often(12, fc.constantFrom(...mildDeeds)), often(1, fc.constantFrom<HookDeed>(...hookDeeds.slice(-3)))),
    { minLength: 1, maxLength: 5 },
  ),
  loops,
});

/** Where a strike happens: code of the case's own, or a fault point of the runtime. */
const places = ["model", "tool", "hook"] as const;
const faultPoints = [
  "commit.before",
  "commit.after",
  "commit.acknowledged",
  "model.intent",
  "model.effect",
  "model.result",
  "call.gated",
  "tool.intent",
  "tool.effect",
  "tool.result",
  "request.opened",
  "hook.effect",
  "hook.result",
  "compact.effect",
  "compact.result",
  "generate.intent",
  "generate.effect",
  "generate.result",
  "child.intent",
  "child.result",
  "turn.result",
] as const;
export type StrikePoint = (typeof places)[number] | (typeof faultPoints)[number];

export function isFaultPoint(place: StrikePoint): boolean {
  return (faultPoints as readonly StrikePoint[]).includes(place);
}

export interface Strike {
  readonly place: StrikePoint;
  /** The number of the hit at which it strikes, from 1. */
  readonly hit: number;
  readonly action: Action;
}

export const actions = [
  "kill",
  "abort",
  "abortTurn",
  "supersede",
  "queue",
  "steer",
  "pause",
  "pauseNow",
  "restart",
] as const;
export type Action = (typeof actions)[number];

const plannedStrike: fc.Arbitrary<Strike> = fc.record({
  place: fc.oneof(
    often(2, fc.constantFrom<StrikePoint>(...places)),
    often(1, fc.constantFrom<StrikePoint>(...faultPoints)),
  ),
  hit: fc.oneof(often(3, fc.integer({ min: 1, max: 5 })), often(1, fc.integer({ min: 1, max: 25 }))),
  action: fc.oneof(often(2, fc.constant<Action>("kill")), often(3, fc.constantFrom(...actions))),
});

const size = fc.integer({ min: 1, max: 8 });

export const turnPlan = fc.record({
  history: fc.oneof(
    fc.record({ kind: fc.constantFrom("full" as const, "withoutTraces" as const), size: fc.constant(0) }),
    fc.record({ kind: fc.constantFrom("window" as const, "react" as const, "broken" as const), size }),
  ),
  compaction: fc.oneof(
    often(2, fc.constant(null)),
    often(
      3,
      fc.record({
        kind: fc.constantFrom("dropOldest" as const, "summarize" as const, "wild" as const),
        keep: size,
        maxMessages: fc.integer({ min: 1, max: 20 }),
      }),
    ),
  ),
  budget: fc.oneof(
    often(6, fc.constant({})),
    often(
      1,
      fc.constantFrom({ maxToolCalls: 3 }, { maxTokens: 9_000 }, { maxSteps: 2 }, { maxSeconds: 1 }, { maxSteps: 20 }),
    ),
  ),
  /** Concurrent helpers; the others wait. */
  atATime: fc.oneof(often(2, fc.constant(null)), often(3, fc.integer({ min: 1, max: 2 }))),
  answers: fc.array(plannedAnswer, { minLength: 1, maxLength: 9 }),
  hooks: fc.array(hookPlan, { maxLength: 4 }),
  strikes: fc.oneof(
    often(1, fc.constant<Strike[]>([])),
    often(3, fc.array(plannedStrike, { minLength: 1, maxLength: 3 })),
  ),
  /** One for each open request; then all are approved, answered or provided. */
  decisions: fc.array(fc.constantFrom("yes" as const, "no" as const, "edit" as const, "wait" as const), {
    maxLength: 6,
  }),
  turns: fc.array(
    fc.record({
      input: fc.oneof(
        often(3, fc.constant("text" as const)),
        often(1, fc.constantFrom("null" as const, "parts" as const)),
      ),
      before: fc.oneof(
        often(5, fc.constant("nothing" as const)),
        often(1, fc.constantFrom("clear" as const, "reset" as const)),
        // The agent is paused, gets the turn, and this happens to it before it is resumed.
        often(2, fc.constantFrom("abort" as const, "abortTurn" as const, "supersede" as const, "queue" as const)),
      ),
    }),
    { minLength: 1, maxLength: 3 },
  ),
});
export type TurnPlan = ValueOf<typeof turnPlan>;
