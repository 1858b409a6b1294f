import { describe, expect, test } from "vitest";
import { type EntryBody, hasOpenWork, isResting, openCallsOf } from "../../src/state/index.ts";
import {
  callIdAt,
  childEnded,
  childSpawned,
  modelRequested,
  modelResponded,
  reservation,
  toolSettled,
  toolStarted,
  turnEnded,
  turnId,
} from "../machines/bodies.ts";
import { callReviewed } from "../machines/hook-bodies.ts";
import { requestDecided, requestOpened, turnWaiting } from "../machines/request-bodies.ts";
import { foldOf } from "./fold-of.ts";

const inCall = modelRequested();
const inRound = [inCall, modelResponded(1, 2)];
const reviewDue = { reviewDue: true } as const;

function rests(...bodies: EntryBody[]): boolean {
  return isResting(foldOf({}, ...bodies));
}

function isOpen(...bodies: EntryBody[]): boolean {
  return hasOpenWork(foldOf({}, ...bodies));
}

describe("requests", () => {
  const two = [...inRound, requestOpened("approval", 0), requestOpened("question", 1)];

  test("are open until they are decided, and their calls wait until then", () => {
    const ids = [`${callIdAt(0)}:1`, `${callIdAt(1)}:1`];
    expect(foldOf({}, ...two)).toMatchObject({ openRequestIds: ids, waitingCallIds: [callIdAt(0), callIdAt(1)] });
    const decided = foldOf({}, ...two, requestDecided("approved", "approval", 0));
    expect(decided).toMatchObject({ openRequestIds: [ids[1]], waitingCallIds: [callIdAt(1)] });
    expect(decided.openCallIds).toEqual([callIdAt(0), callIdAt(1)]);
  });

  test("are closed by a result that does not come from a decision", () => {
    const closed = foldOf({}, ...two, toolSettled(0, 1, "interrupted"));
    expect(closed).toMatchObject({ openRequestIds: [`${callIdAt(1)}:1`], waitingCallIds: [callIdAt(1)] });
  });

  test("turn.waiting changes nothing in the turn", () => {
    expect(foldOf({}, ...two, turnWaiting(`${callIdAt(0)}:1`))).toEqual(foldOf({}, ...two));
  });
});

describe("a turn rests when every open call waits for a person or a child", () => {
  const opened = [...inRound, requestOpened("approval", 0)];

  test("for people, for children, or for both", () => {
    expect(rests(...opened)).toBe(false);
    expect(rests(...opened, requestOpened("client", 1))).toBe(true);
    expect(rests(...opened, childSpawned(1))).toBe(true);
    expect(rests(...opened, toolStarted(1))).toBe(false);
    expect(rests(...opened, toolStarted(1), toolSettled(1))).toBe(true);
  });

  test("no longer, once one of them continues", () => {
    const both = [...opened, childSpawned(1)];
    expect(rests(...both, requestDecided())).toBe(false);
    expect(rests(...both, childEnded(1))).toBe(false);
    expect(rests(...both, childEnded(1), toolSettled(1))).toBe(true);
  });

  test("not while hooks review a result or a side call runs", () => {
    const looking = [...opened, { ...toolSettled(1), ...reviewDue }];
    expect(rests(...looking)).toBe(false);
    expect(rests(...looking, callReviewed(1))).toBe(true);
    const side = {
      type: "generate.requested",
      turnId,
      step: 1,
      run: "r",
      index: 0,
      model: "scripted",
      promptHash: "p",
      ask: inCall.ask,
      reservation,
    } as const;
    expect(rests(...opened, toolSettled(1), side)).toBe(false);
  });

  test("not without calls, not during the model call, not after its end", () => {
    expect([rests(), rests(inCall), rests(inCall, modelResponded())]).toEqual([false, false, false]);
    expect(rests(...opened, toolSettled(1), turnEnded("stopped"))).toBe(false);
  });
});

describe("open work", () => {
  test("is a model call, a tool call, or a result without a completed review", () => {
    expect(isOpen()).toBe(false);
    expect(isOpen(inCall)).toBe(true);
    expect(isOpen(inCall, modelResponded())).toBe(false);
    expect(isOpen(...inRound)).toBe(true);
    const last = [inCall, modelResponded(1, 1), { ...toolSettled(0), ...reviewDue }];
    expect(isOpen(...last)).toBe(true);
    expect(isOpen(...last, callReviewed(0))).toBe(false);
  });

  test("the open calls are those without a result, in the answer's order", () => {
    expect(openCallsOf(foldOf({}, ...inRound, toolSettled(0)))).toEqual([{ callId: callIdAt(1), name: "look" }]);
  });
});
