import { describe, expect, test } from "vitest";
import {
  agentTransition,
  type EntryBody,
  effectsAt,
  foldTurn,
  initialAgentState,
  nextMove,
  noHooks,
  type ReactInput,
  reactInputsOf,
  startTurn,
  type TurnState,
} from "../../src/state/index.ts";
import {
  at,
  callIdAt,
  hookApplied,
  journalOf,
  modelRequested,
  modelResponded,
  toolSettled,
  turnStarted,
} from "../machines/bodies.ts";
import { contextExpanded, contextLoaded, messagesReleased, outputChecked } from "../machines/hook-bodies.ts";
import { requestDecided, requestOpened } from "../machines/request-bodies.ts";
import { inputOf, stateOf } from "./react/as-state.ts";

/** A turn folded from these entries, and the inputs that its ReAct core received. */
function turnOf(...bodies: readonly EntryBody[]): { turn: TurnState; inputs: ReactInput[] } {
  const first = turnStarted({ hooks: { ...noHooks, afterLlm: 1, onComplete: 1 } });
  let turn = startTurn(at(first, 1));
  const inputs: ReactInput[] = [];
  for (const entry of journalOf([first, ...bodies])) {
    inputs.push(...reactInputsOf(turn, entry).map(inputOf));
    turn = foldTurn(turn, entry);
  }
  return { turn, inputs };
}

const typesOf = (inputs: readonly ReactInput[]): string[] => inputs.map(({ type }) => type);
const replayed = (inputs: readonly ReactInput[]) =>
  inputs.reduce((state, input) => agentTransition(input)(state), initialAgentState());

const final = [modelRequested(), modelResponded()];
const asking = [modelRequested(), modelResponded(1, 1)];
const inputsOfFinal = ["user-message-received", "llm-message-started", "llm-message-completed", "re-act-observed"];

describe("messages of hooks", () => {
  test.each(["afterUserInput", "beforeLlm", "beforeTools", "afterTools"] as const)(
    "of %s make a model call due",
    (hook) => {
      const { turn, inputs } = turnOf(...final, hookApplied(hook, 0, { addedMessageIds: ["h"] }));
      expect(typesOf(inputs)).toEqual([...inputsOfFinal, "user-message-received"]);
      expect(effectsAt(stateOf(turn.react)).callLlm).toBe(true);
    },
  );

  test.each(["afterLlm", "onComplete"] as const)("of %s after a final answer cause no further call", (hook) => {
    const { turn, inputs } = turnOf(...final, hookApplied(hook, 0, { addedMessageIds: ["h", "i"] }));
    const added = ["llm-message-started", "llm-message-completed"];
    expect(typesOf(inputs).slice(4)).toEqual([...added, ...added]);
    expect(effectsAt(stateOf(turn.react)).callLlm).toBe(false);
    expect(nextMove(turn)).toBe("finish");
    expect(turn.react.messages.map(({ id, isStreaming }) => [id, isStreaming])).toContainEqual(["h", false]);
  });

  test("that are held back count only once they are released", () => {
    const held = [{ messageId: "h", role: "user", content: "wait" }] as const;
    const holding = hookApplied("beforeTools", 0, { held: [...held] });
    const before = turnOf(...asking, holding);
    expect(before.turn.react).toEqual(turnOf(...asking).turn.react);
    expect(before.turn.heldMessageIds).toEqual(["h"]);
    const { turn } = turnOf(...asking, holding, toolSettled(), messagesReleased("h"));
    expect(turn.heldMessageIds).toEqual([]);
    expect(turn.react.messages.at(-1)).toMatchObject({ id: "h", role: "user" });
  });

  test("continue() after a final answer makes the next call due, also when its input is replayed alone", () => {
    const { turn, inputs } = turnOf(...final, hookApplied("afterLlm", 0, { continueRequested: true }));
    expect(typesOf(inputs)).toEqual([...inputsOfFinal, "re-act-observed"]);
    expect(effectsAt(stateOf(turn.react))).toEqual({ callLlm: true, runTools: [] });
    expect(replayed(inputs)).toEqual(stateOf(turn.react));
    expect(effectsAt(stateOf(turnOf(...final).turn.react)).callLlm).toBe(false);
  });

  test("continue() with tool calls changes nothing: the results already make a call due", () => {
    const goesOn = hookApplied("afterLlm", 0, { continueRequested: true });
    expect(turnOf(...asking, goesOn).turn.react).toEqual(turnOf(...asking).turn.react);
    expect(effectsAt(stateOf(turnOf(...asking, goesOn, toolSettled()).turn.react)).callLlm).toBe(true);
  });
});

test("a repair is a message that the model has not seen; a check that fits adds none", () => {
  expect(effectsAt(stateOf(turnOf(...final, outputChecked("repair")).turn.react)).callLlm).toBe(true);
  for (const how of ["fits", "misfit"] as const) {
    expect(turnOf(...final, outputChecked(how)).turn.react).toEqual(turnOf(...final).turn.react);
  }
});

test("requests to people do not reach the ReAct core", () => {
  const asked = [...asking, requestOpened(), requestDecided()];
  expect(turnOf(...asked).turn.react).toEqual(turnOf(...asking).turn.react);
});

describe("internal tools (row R6)", () => {
  const internal = { callId: callIdAt(0), name: "load_history", internal: true } as const;
  const external = { callId: callIdAt(1), name: "look" };
  const round = [modelRequested(), modelResponded(1, 0, { calls: [internal, external] })];
  const alone = [modelRequested(), modelResponded(1, 0, { calls: [internal] })];

  test("are not recorded as calls, and their results are not recorded", () => {
    const { turn } = turnOf(...round, toolSettled(0), toolSettled(1));
    expect(Object.keys(stateOf(turn.react).toolCalls)).toEqual([external.callId]);
    expect(turn.react.reActContext.toolCallIds).toEqual([external.callId]);
    const only = turnOf(...alone, toolSettled(0)).turn.react;
    expect([only.toolCalls, only.reActContext.toolCallIds]).toEqual([[], []]);
  });

  test("their effects are inputs of their own", () => {
    const { inputs } = turnOf(...round, contextExpanded(), contextLoaded(["desk#1:1:1"]));
    expect(inputs.slice(-2)).toEqual([
      { type: "context-window-expanded", timestamp: expect.any(Number) },
      { type: "history-tool-calls-added", toolCallIds: ["desk#1:1:1"], timestamp: expect.any(Number) },
    ]);
  });

  test("a round with no other calls makes a model call due, but no tool run", () => {
    const { turn } = turnOf(...alone);
    expect(effectsAt(stateOf(turn.react))).toEqual({ callLlm: true, runTools: [] });
    expect(nextMove(turn), "the internal call still has to run").toBe("runTools");
    expect(nextMove(turnOf(...alone, contextExpanded(), toolSettled(0)).turn)).toBe("think");
  });

  test("they stay in the trace of the step", () => {
    const calls = turnOf(...round).turn.execution.currentStep?.toolExecutions;
    expect(calls?.map(({ name }) => name)).toEqual(["load_history", "look"]);
  });
});

test("the inputs of a turn contain the text of their messages if there is one", () => {
  const [entry] = journalOf([hookApplied("afterTools", 0, { addedMessageIds: ["h"] })]);
  const inputs = entry && reactInputsOf(startTurn(at(turnStarted(), 1)), entry, (id) => `text of ${id}`);
  const [input] = inputs ?? [];
  expect(input).toEqual({ type: "user-message-received", messageId: "h", content: "text of h", timestamp: 1_001 });
});
