import { initialTransition, type StateValue, transition } from "xstate";
import { describe, expect, it } from "vitest";
import {
  LONGEST_KEPT_MS,
  type PlacementContext,
  type PlacementEvent,
  placementMachine,
} from "../../src/machines/index.ts";

const live = (lease: "kept" | "offered", departure: "staying" | "passivating") => ({ live: { lease, departure } });

const states = {
  away: "away",
  dormant: "dormant",
  activating: "activating",
  changing: "changing",
  staying: live("kept", "staying"),
  offered: live("offered", "staying"),
  passivating: live("kept", "passivating"),
  releasing: live("offered", "passivating"),
  leaving: "leaving",
  passive: "passive",
} as const satisfies Record<string, StateValue>;

type State = keyof typeof states;

const [{ context: fresh }] = initialTransition(placementMachine);

/** The next state, the context changes and the work that an event causes. */
function move(from: State, event: PlacementEvent, given: Partial<PlacementContext> = {}) {
  const context = { ...fresh, ...given };
  const value = states[from] as Parameters<typeof placementMachine.resolveState>[0]["value"];
  const at = placementMachine.resolveState({ value, context });
  const [next, actions] = transition(placementMachine, at, event);
  return {
    value: next.value,
    context: next.context,
    work: actions.map(({ type, params }) => (type === "answerRest" ? (params as { rest: string }).rest : type)),
    can: at.can(event),
  };
}

const settled = { type: "settled", mayLeave: true, isBetweenTurns: true, isDone: false, now: 1_000 } as const;

/** The next state for each event and state; "." where the event has no effect. */
const table: readonly (readonly [PlacementEvent, ...(State | ".")[]])[] = [
  //                                   away  dormant  activating  changing  staying  offered  passivating  releasing  leaving  passive
  [{ type: "activation.started" }, "activating", "activating", ".", ".", ".", ".", ".", ".", ".", "activating"],
  [{ type: "activation.succeeded" }, ".", ".", "staying", ".", ".", ".", ".", ".", ".", "."],
  [{ type: "activation.failed", keepsLease: false }, ".", ".", "away", ".", ".", ".", ".", ".", ".", "."],
  [{ type: "activation.failed", keepsLease: true }, ".", ".", "passive", ".", ".", ".", ".", ".", ".", "."],
  [{ type: "change.started" }, "changing", "changing", ".", ".", ".", ".", ".", ".", ".", "changing"],
  [{ type: "change.ended" }, ".", ".", ".", "away", ".", ".", ".", ".", ".", "."],
  [{ type: "lease.offered" }, ".", ".", ".", ".", "offered", ".", "releasing", ".", ".", "."],
  [{ type: "lease.kept" }, ".", ".", ".", ".", ".", "staying", ".", "passivating", ".", "."],
  [
    { type: "leave.started", isShutDown: false },
    ...([".", ".", ".", ".", "leaving", "leaving", "leaving", "leaving", ".", "."] as const),
  ],
  [{ type: "leave.ended" }, ".", ".", ".", ".", ".", ".", ".", ".", "away", "."],
  [{ type: "lost" }, ".", ".", ".", ".", "away", "away", "away", "away", ".", "away"],
  [settled, ".", ".", ".", ".", "passivating", "releasing", "passivating", "releasing", ".", "."],
  [{ type: "passivation.ended" }, ".", ".", ".", ".", ".", ".", "staying", "offered", ".", "."],
  [{ type: "passivated" }, ".", ".", ".", ".", "passive", ".", ".", ".", ".", "."],
  [
    { type: "turn.ended", now: 1_000, keptMs: 5_000 },
    ...([".", ".", ".", ".", "staying", "offered", "passivating", "releasing", ".", "."] as const),
  ],
  [{ type: "kept.ended" }, ".", ".", ".", ".", "staying", "offered", "passivating", "releasing", ".", "."],
  ...(["handle.opened", "handle.closed", "delivery.started", "delivery.ended"] as const).map(
    (type) => [{ type }, ...(Object.keys(states) as State[])] as const,
  ),
  [{ type: "rest.awaited" }, "away", "dormant", ".", ".", ".", ".", ".", ".", ".", "passive"],
  [{ type: "rest.checked" }, "away", "dormant", ".", ".", ".", ".", ".", ".", ".", "passive"],
];

const rows = table.flatMap(([event, ...leads]) =>
  (Object.keys(states) as State[]).map((from, at) => ({ from, event, lead: leads[at] })),
);

describe("every event in every state", () => {
  it.each(rows.filter(({ lead }) => lead === "."))("$event.type, $from: no effect", ({ from, event }) => {
    expect(move(from, event)).toEqual({ value: states[from], context: fresh, work: [], can: false });
  });

  const moved = rows.flatMap(({ lead, ...row }) => (lead === "." || lead === undefined ? [] : [{ ...row, lead }]));
  it.each(moved)("$event.type, $from: $lead", ({ from, event, lead }) => {
    expect(move(from, event)).toMatchObject({ value: states[lead], can: true });
  });

  const claimed = moved.filter(({ event }) => !/^(handle|delivery)/.test(event.type) && event.type !== "passivated");
  it.each(claimed)("$event.type, $from: handles and deliveries are kept", ({ from, event }) => {
    const wants = { isHeld: false, deliveries: 2 };
    expect(move(from, event, wants).context).toMatchObject(wants);
    expect(move(from, event, { isHeld: true }).context).toMatchObject({ isHeld: true });
  });
});

describe("handles and deliveries", () => {
  it("are counted", () => {
    expect(move("away", { type: "handle.opened" }).context.isHeld).toBe(true);
    expect(move("away", { type: "handle.closed" }, { isHeld: true }).context.isHeld).toBe(false);
    expect(move("away", { type: "delivery.started" }, { deliveries: 1 }).context.deliveries).toBe(2);
    expect(move("away", { type: "delivery.ended" }, { deliveries: 1 }).context.deliveries).toBe(0);
    expect(move("away", { type: "delivery.ended" }).context.deliveries).toBe(0);
  });
});

describe("waits for rest", () => {
  it.each([
    ["activating", { type: "activation.failed", keepsLease: false }],
    ["changing", { type: "change.ended" }],
    ["staying", { type: "lost" }],
    ["releasing", { type: "lost" }],
    ["leaving", { type: "leave.ended" }],
    ["away", { type: "rest.awaited" }],
    ["dormant", { type: "rest.awaited" }],
  ] as const)("are checked in %s, $type", (from, event) => {
    expect(move(from, event).work).toEqual(["checkRest"]);
  });

  it.each(["away", "dormant"] as const)("resolve as gone, in %s", (from) => {
    expect(move(from, { type: "rest.checked" }).work).toEqual(["gone"]);
  });

  it.each(["rest.awaited", "rest.checked"] as const)("resolve as waiting for a passive agent: %s", (type) => {
    expect(move("passive", { type }).work).toEqual(["waits"]);
  });

  it("resolve as waiting if the agent could not be activated and is passive again", () => {
    expect(move("activating", { type: "activation.failed", keepsLease: true }).work).toEqual(["waits"]);
  });

  it.each(Object.keys(states) as State[])("resolve as waiting if a handle holds the agent: %s", (from) => {
    expect(move(from, { type: "handle.opened" }).work).toEqual(["waits"]);
    expect(move(from, { type: "rest.awaited" }, { isHeld: true }).work).toEqual(["waits"]);
  });

  it.each(["passivating", "releasing"] as const)("resolve as waiting while the agent leaves, in %s", (from) => {
    expect(move(from, settled).work).toEqual(["waits"]);
  });

  it("resolve as waiting if the agent waits for its children in this process", () => {
    const at = move("staying", { ...settled, mayLeave: false });
    expect(at).toMatchObject({ value: states.staying, work: ["waits"] });
  });
});

describe("passivation", () => {
  it("resolves the waits and starts", () => {
    expect(move("staying", settled).work).toEqual(["waits", "passivate"]);
  });

  it.each([
    ["a handle holds the agent", { isHeld: true }],
    ["a delivery is under way", { deliveries: 1 }],
    ["the agent is kept for its next turn", { keptUntil: 1_001 }],
  ])("does not start while %s", (_why, context) => {
    expect(move("staying", settled, context)).toMatchObject({ value: states.staying, work: [] });
  });

  it.each([
    ["the time the agent is kept for has elapsed", { keptUntil: 1_000 }, settled],
    ["the agent is kept and a turn is open", { keptUntil: 2_000 }, { ...settled, isBetweenTurns: false }],
    ["a child is done, even if a handle holds it", { isHeld: true }, { ...settled, isDone: true }],
  ] as const)("starts when %s", (_why, context, event) => {
    expect(move("staying", event, context).value).toEqual(states.passivating);
  });

  it("is postponed after each turn, up to a maximum", () => {
    const turn = { type: "turn.ended", now: 100, keptMs: 5_000 } as const;
    const { context } = move("staying", turn);
    expect(context).toMatchObject({ keptSince: 100, keptUntil: 5_100 });
    const later = move("staying", { ...turn, now: 4_000 }, context).context;
    expect(later).toMatchObject({ keptSince: 100, keptUntil: 9_000 });
    expect(move("staying", { ...turn, now: 100 + LONGEST_KEPT_MS }, later).context).toEqual(later);
    expect(move("staying", { type: "kept.ended" }, later).context.keptUntil).toBe(0);
  });

  it("waits for deliveries if the lease is kept here", () => {
    expect(move("staying", { type: "passivated" }, { deliveries: 1 }).value).toEqual(states.staying);
    expect(move("staying", { type: "passivated" }, { isHeld: true })).toMatchObject({
      value: "passive",
      work: ["waits"],
    });
  });

  it("resets the time for which the agent was kept", () => {
    const kept = { keptSince: 1, keptUntil: 2 };
    expect(move("activating", { type: "activation.succeeded" }, kept).context).toEqual(fresh);
    expect(move("staying", { type: "lost" }, kept).context).toEqual(fresh);
  });
});

describe("shutdown", () => {
  it("with an open turn makes the agent dormant, unless a handle holds it again in the meantime", () => {
    const { context } = move("staying", { type: "leave.started", isShutDown: true });
    expect(context.isShutDown).toBe(true);
    expect(move("leaving", { type: "leave.ended" }, context).value).toBe("dormant");
    const held = move("leaving", { type: "leave.ended" }, { ...context, isHeld: true });
    expect(held).toMatchObject({ value: "away", context: { isShutDown: false } });
  });

  it("is kept by a change and ended by a start", () => {
    expect(move("changing", { type: "change.ended" }, { isShutDown: true }).value).toBe("dormant");
    expect(move("dormant", { type: "activation.started" }, { isShutDown: true }).context.isShutDown).toBe(false);
  });
});
