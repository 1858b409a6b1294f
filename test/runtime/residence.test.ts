import { describe, expect, it } from "vitest";
import { createDeferred } from "../../src/base/index.ts";
import { InvariantError } from "../../src/errors/index.ts";
import { Standing } from "../../src/runtime/agent/actor-tree.ts";
import {
  KEPT_MS,
  LONGEST_KEPT_MS,
  type PutAway,
  type Residence,
  type ResidenceEvent,
  Residences,
  type Rest,
  transition,
  unclaimed,
} from "../../src/runtime/residence/residence.ts";

interface Live {
  readonly key: { readonly tenant: string; readonly agentId: string };
}

const activation: Live = { key: { tenant: "default", agentId: "a" } };
const earlier: Live = { key: activation.key };
const attempt = Promise.resolve(activation);
const over = Promise.resolve();
const waiter = createDeferred<Rest>();
const safePoint = createDeferred();
const claims = { isHeld: false, deliveries: 0, waiter: null, isRetrying: false };
const stay = {
  activation,
  attempt,
  taken: new Set<string>(),
  isPassivating: false,
  safePoint: null,
  keptSince: null,
  keptUntil: Number.NEGATIVE_INFINITY,
};

const remains: PutAway = {
  key: activation.key,
  epoch: 1,
  seq: 2,
  at: 3,
  standing: new Standing(),
  untaken: [],
  letGo: undefined,
};

const states = {
  away: { ...claims, kind: "away" },
  dormant: { ...claims, kind: "dormant" },
  coming: { ...claims, kind: "coming", attempt },
  visited: { ...claims, kind: "visited", over, isShutDown: false },
  here: { ...claims, kind: "here", stay },
  releasing: { ...claims, kind: "releasing", stay, over },
  leaving: { ...claims, kind: "leaving", activation, over, isShutDown: false },
  putAway: { ...claims, kind: "putAway", remains },
} satisfies Record<string, Residence<Live>>;

type State = keyof typeof states;

const settled = { type: "settled", activation, mayPassivate: true, isBetweenTurns: true, now: 1_000 } as const;

/** An event, and where it leads from each state: "same" leaves the record as it is, "-" breaks an invariant. */
const table: readonly (readonly [ResidenceEvent<Live>, ...(State | "same" | "-")[]])[] = [
  //                                             away      dormant   coming  visited here         releasing  leaving   put away
  [{ type: "activate", attempt }, "coming", "coming", "-", "-", "-", "-", "-", "coming"],
  [{ type: "visit", over }, "visited", "visited", "-", "-", "-", "-", "-", "visited"],
  [{ type: "activated", activation }, "-", "-", "here", "-", "-", "-", "-", "-"],
  [{ type: "activation.failed" }, "-", "-", "away", "-", "-", "-", "-", "-"],
  [{ type: "visit.over" }, "-", "-", "-", "away", "-", "-", "-", "-"],
  [{ type: "release", activation, over }, "same", "same", "same", "same", "releasing", "same", "same", "same"],
  [{ type: "release.over", activation }, "same", "same", "same", "same", "here", "here", "same", "same"],
  [
    { type: "leave", activation, over, isShutDown: false },
    "same",
    "same",
    "same",
    "same",
    "leaving",
    "leaving",
    "same",
    "same",
  ],
  [{ type: "leave.over", activation }, "same", "same", "same", "same", "same", "same", "away", "same"],
  [{ type: "lost", activation }, "same", "same", "same", "same", "away", "away", "same", "same"],
  [{ type: "hold" }, "away", "same", "coming", "visited", "here", "releasing", "leaving", "putAway"],
  [{ type: "unhold" }, "away", "dormant", "coming", "visited", "here", "releasing", "leaving", "putAway"],
  [{ type: "delivery" }, "away", "dormant", "coming", "visited", "here", "releasing", "leaving", "putAway"],
  [{ type: "delivery.over" }, "away", "dormant", "coming", "visited", "here", "releasing", "leaving", "putAway"],
  [{ type: "rest.awaited", waiter }, "away", "dormant", "coming", "visited", "here", "releasing", "leaving", "putAway"],
  [{ type: "rest.checked" }, "away", "dormant", "coming", "visited", "here", "releasing", "leaving", "putAway"],
  [{ type: "retry" }, "away", "dormant", "coming", "visited", "here", "releasing", "leaving", "putAway"],
  [{ type: "retry.over" }, "away", "dormant", "coming", "visited", "here", "releasing", "leaving", "putAway"],
  [{ type: "forgotten", remains }, "same", "same", "same", "same", "same", "same", "same", "away"],
  [settled, "same", "same", "same", "same", "here", "releasing", "same", "same"],
  [{ type: "passivation.over", activation }, "same", "same", "same", "same", "here", "releasing", "same", "same"],
  [{ type: "turn.ended", activation, now: 1_000 }, "same", "same", "same", "same", "here", "releasing", "same", "same"],
  [
    { type: "safePoint.awaited", activation, safePoint },
    "same",
    "same",
    "same",
    "same",
    "here",
    "releasing",
    "same",
    "same",
  ],
];

const rows = table.flatMap(([event, ...leads]) =>
  Object.entries(states).map(([name, from], at) => ({ name, from: from as Residence<Live>, event, lead: leads[at] })),
);

describe("every event in every state", () => {
  it.each(rows.filter(({ lead }) => lead === "-"))("$event.type, $name: refused", ({ from, event }) => {
    expect(() => transition(from, event)).toThrow(InvariantError);
  });

  it.each(rows.filter(({ lead }) => lead === "same"))("$event.type, $name: nothing changes", ({ from, event }) => {
    expect(transition(from, event).next).toBe(from);
  });

  const about = rows.filter(({ event, lead }) => "activation" in event && event.type !== "activated" && lead);
  it.each(about)("$event.type of an earlier activation, $name: nothing changes", ({ from, event }) => {
    const late = { ...event, activation: earlier } as ResidenceEvent<Live>;
    expect(transition(from, late)).toEqual({ next: from, effects: [] });
  });

  const changed = rows.filter(({ lead }) => lead !== "-" && lead !== "same");
  it.each(changed)("$event.type, $name: $lead", ({ from, event, lead }) => {
    expect(transition(from, event).next.kind).toBe(lead);
  });

  it.each(changed)("$event.type, $name: what others want of the agent is kept", ({ from, event }) => {
    const wanted = { isHeld: false, deliveries: 2, waiter: createDeferred<Rest>(), isRetrying: false };
    const { next, effects } = transition({ ...from, ...wanted }, event);
    const by = { delivery: 1, "delivery.over": -1 } as Record<string, number>;
    expect(next.deliveries).toBe(2 + (by[event.type] ?? 0));
    const isAnswered = effects.some(({ type }) => type === "answer");
    expect(next.waiter).toBe(isAnswered ? null : wanted.waiter);
    expect(next.isRetrying).toBe(event.type === "retry");
  });
});

describe("waiters for rest", () => {
  const waits = { waiter };

  it.each([
    { from: states.coming, event: { type: "activation.failed" } },
    { from: states.visited, event: { type: "visit.over" } },
    { from: states.here, event: { type: "lost", activation } },
    { from: states.releasing, event: { type: "lost", activation } },
    { from: states.leaving, event: { type: "leave.over", activation } },
  ] as const)("are asked for after $event.type in $from.kind", ({ from, event }) => {
    const { next, effects } = transition<Live>({ ...from, ...waits }, event);
    expect(effects).toEqual([{ type: "checkRest" }]);
    expect(transition(next, { type: "rest.checked" }).effects).toEqual([{ type: "answer", waiter, rest: "gone" }]);
  });

  it.each(["coming", "visited", "here", "releasing", "leaving"] as const)("are not answered yet in %s", (kind) => {
    const at: Residence<Live> = { ...states[kind], ...waits };
    expect(transition(at, { type: "rest.checked" })).toEqual({ next: at, effects: [] });
  });

  it.each(["here", "releasing"] as const)("are told that the agent waits, in %s", (kind) => {
    const { next, effects } = transition<Live>({ ...states[kind], ...waits }, settled);
    expect(effects).toEqual([{ type: "answer", waiter, rest: "waits" }, { type: "passivate" }]);
    expect(next).toMatchObject({ waiter: null, stay: { isPassivating: true } });
  });

  it("are answered when a handle holds the agent: it stays here for that", () => {
    const { effects } = transition<Live>({ ...states.here, ...waits }, { type: "hold" });
    expect(effects).toEqual([{ type: "answer", waiter, rest: "waits" }]);
    const held: Residence<Live> = { ...states.here, isHeld: true };
    expect(transition(held, { type: "rest.awaited", waiter }).effects).toEqual(effects);
  });

  it("share one answer", () => {
    const { next } = transition<Live>({ ...states.here, ...waits }, { type: "rest.awaited", waiter: createDeferred() });
    expect(next.waiter).toBe(waiter);
  });
});

describe("passivation", () => {
  it.each([
    ["a handle holds the agent", { isHeld: true }, {}, settled],
    ["something is about to be given to it", { deliveries: 1 }, {}, settled],
    ["it is kept after a turn", {}, { keptUntil: 1_001 }, settled],
    ["one is under way", {}, { isPassivating: true }, settled],
    ["it may not leave", {}, {}, { ...settled, mayPassivate: false }],
  ] as const)("does not begin while %s", (_why, claimed, stayed, event) => {
    const at: Residence<Live> = { ...states.here, ...claimed, stay: { ...stay, ...stayed } };
    expect(transition(at, event).effects).toEqual([]);
  });

  it.each([
    ["the time it is kept for is over", { keptUntil: 1_000 }, settled],
    ["it is kept, and a turn is open", { keptUntil: 2_000 }, { ...settled, isBetweenTurns: false }],
  ] as const)("begins when %s", (_why, stayed, event) => {
    const at: Residence<Live> = { ...states.here, stay: { ...stay, ...stayed } };
    expect(transition(at, event).effects).toEqual([{ type: "passivate" }]);
  });

  it("is put off after each turn that somebody waits for, but not for ever", () => {
    const at: Residence<Live> = { ...states.here, waiter };
    const first = transition(at, { type: "turn.ended", activation, now: 0 });
    expect(first.effects).toEqual([{ type: "lookAgain", afterMs: KEPT_MS }]);
    expect(first.next).toMatchObject({ stay: { keptSince: 0, keptUntil: KEPT_MS } });
    const last = transition(first.next, { type: "turn.ended", activation, now: LONGEST_KEPT_MS });
    expect(last.effects).toEqual([]);
    expect(last.next).toMatchObject({ stay: { keptUntil: KEPT_MS } });
    expect(transition<Live>(states.here, { type: "turn.ended", activation, now: 0 }).effects).toEqual([]);
  });

  it("is not put off any longer once another agent may need the place", () => {
    const kept: Residence<Live> = { ...states.here, stay: { ...stay, keptSince: 0, keptUntil: 2_000 } };
    expect(transition(kept, settled).effects).toEqual([]);
    const { next } = transition<Live>(kept, { type: "kept.over", activation });
    expect(transition(next, settled).effects).toEqual([{ type: "passivate" }]);
  });
});

describe("putting away", () => {
  const putAway = { type: "put.away", activation, remains } as const;

  it("keeps the lease of an agent that lives here, and what is claimed of it", () => {
    const { next, effects } = transition<Live>({ ...states.here, isHeld: true }, putAway);
    expect({ next, effects }).toEqual({ next: { ...states.putAway, isHeld: true }, effects: [] });
  });

  it.each([
    ["something is delivered to it", { ...states.here, deliveries: 1 }],
    ["somebody waits for its rest", { ...states.here, waiter }],
    ["it is passivated", { ...states.here, stay: { ...stay, isPassivating: true } }],
    ["a handover waits for it", { ...states.here, stay: { ...stay, safePoint } }],
    ["its lease is offered back", states.releasing],
    ["an earlier one was meant", { ...states.here, stay: { ...stay, activation: earlier } }],
  ] as const)("does not happen while %s", (_why, from) => {
    expect(transition<Live>(from, putAway)).toEqual({ next: from, effects: [] });
  });

  it("is so again after a failed attempt to take the agent up, and whoever waits for its rest is told", () => {
    const coming: Residence<Live> = { ...states.coming, waiter };
    const { next, effects } = transition(coming, { type: "activation.failed", remains });
    expect(next).toEqual(states.putAway);
    expect(effects).toEqual([{ type: "answer", waiter, rest: "waits" }]);
  });

  it.each([{ type: "rest.awaited", waiter }, { type: "rest.checked" }] as const)("answers $type", (event) => {
    const { effects } = transition<Live>({ ...states.putAway, waiter }, event);
    expect(effects).toEqual([{ type: "answer", waiter, rest: "waits" }]);
  });

  it("an earlier lease that is forgotten changes nothing", () => {
    const event = { type: "forgotten", remains: { ...remains } } as const;
    expect(transition<Live>(states.putAway, event).next).toBe(states.putAway);
  });
});

describe("shutdown and safe points", () => {
  it("a turn that was open makes the agent dormant, unless a handle holds it again meanwhile", () => {
    const { next } = transition<Live>(states.here, { type: "leave", activation, over, isShutDown: true });
    expect(transition(next, { type: "leave.over", activation }).next.kind).toBe("dormant");
    const held = transition(next, { type: "hold" }).next;
    expect(transition(held, { type: "leave.over", activation }).next.kind).toBe("away");
  });

  it("a visit leaves a dormant agent dormant", () => {
    const { next } = transition<Live>(states.dormant, { type: "visit", over });
    expect(transition(next, { type: "visit.over" }).next.kind).toBe("dormant");
  });

  it.each(["lost", "leave"] as const)("a safe point that is waited for is reached: %s", (type) => {
    const waited = transition<Live>(states.here, { type: "safePoint.awaited", activation, safePoint }).next;
    const event: ResidenceEvent<Live> = { type, activation, over, isShutDown: false };
    expect(transition(waited, event).effects).toEqual([{ type: "reachSafePoint", safePoint }]);
  });

  it("those who wait for a safe point wait for the same one", () => {
    const waited = transition<Live>(states.here, { type: "safePoint.awaited", activation, safePoint }).next;
    expect(transition(waited, { type: "safePoint.awaited", activation, safePoint: createDeferred() }).next).toEqual(
      waited,
    );
  });
});

describe("the agents of a process", () => {
  it("forgets an agent that nobody here wants anything of", () => {
    const agents = new Residences<Live>();
    agents.apply("a", { type: "delivery" });
    expect(agents.of("a")).not.toBe(unclaimed);
    agents.apply("a", { type: "delivery.over" });
    expect(agents.of("a")).toBe(unclaimed);
  });

  it("answers a waiter for an agent that is not here, in the next tick", async () => {
    const agents = new Residences<Live>();
    const asked = createDeferred<Rest>();
    agents.apply("a", { type: "rest.awaited", waiter: asked });
    expect(agents.waiters).toBe(1);
    await expect(asked.promise).resolves.toBe("gone");
    expect(agents.waiters).toBe(0);
  });

  it("gives the activation that is here, and waits until it is decided whether it stays", async () => {
    const agents = new Residences<Live>();
    agents.apply("a", { type: "activate", attempt });
    await expect(agents.present("a")).resolves.toBe(activation);
    agents.apply("a", { type: "activated", activation });
    const decided = createDeferred();
    agents.apply("a", { type: "release", activation, over: decided.promise });
    expect(agents.get("a")).toBe(activation);
    expect(agents.overOf(activation)).toBe(decided.promise);
    expect(agents.overOf(earlier)).toBeUndefined();
    const present = agents.present("a");
    agents.apply("a", { type: "lost", activation });
    decided.resolve();
    await expect(present).resolves.toBeUndefined();
    expect(agents.all()).toEqual([]);
  });

  it("waits for attempts that are under way, and for their failure", async () => {
    const agents = new Residences<Live>();
    const failing = createDeferred<Live>();
    agents.apply("a", { type: "activate", attempt: failing.promise });
    const arrived = agents.arrived();
    failing.reject(new Error("nobody"));
    await expect(arrived).resolves.toBeUndefined();
    await expect(agents.present("a")).resolves.toBeUndefined();
  });
});
