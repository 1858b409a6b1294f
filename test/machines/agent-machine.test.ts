import { describe, expect, test } from "vitest";
import { initialTransition, transition } from "xstate";
import { agentMachine, lifecycleOf } from "../../src/machines/index.ts";
import type { EntryBody } from "../../src/state/index.ts";
import {
  budgetFreed,
  childEnded,
  childSpawned,
  journalOf,
  paused,
  pausing,
  refused,
  resumed,
  shutDown,
  started,
  starting,
  turnEnded,
  turnId,
  turnStarted,
} from "./bodies.ts";
import { cleared, contextCompacted } from "./hook-bodies.ts";
import { requestDecided, requestOpened } from "./request-bodies.ts";

function agentAfter(...bodies: readonly EntryBody[]) {
  let [snapshot] = initialTransition(agentMachine);
  for (const entry of journalOf(bodies)) [snapshot] = transition(agentMachine, snapshot, entry);
  return snapshot;
}

const ready = [starting, started];
const busy = [...ready, turnStarted()];
const secondTurn = turnStarted({ turnId: "desk#2", number: 2 });
/** Entries of a pause and a resume between turns. */
const pausingIdle = { type: "agent.pausing", by: "user" } as const;
const resumedIdle = { type: "agent.resumed", by: "user", to: "ready" } as const;

describe("lifecycle (rows L3, L4)", () => {
  test("created, starting, ready", () => {
    expect(agentAfter().value).toBe("created");
    expect(agentAfter(starting).value).toBe("starting");
    expect(agentAfter(...ready).value).toBe("ready");
  });

  test("a turn makes it busy, with the turn as its child", () => {
    const snapshot = agentAfter(...busy);
    expect(snapshot.value).toEqual({ busy: "working" });
    expect(Object.keys(snapshot.children)).toEqual([turnId]);
  });

  test.each(["completed", "stopped"] as const)("a turn that %s leaves it ready", (outcome) => {
    const snapshot = agentAfter(...busy, turnEnded(outcome));
    expect(snapshot.value).toBe("ready");
    expect(snapshot.context).toMatchObject({ turnCount: 1, openTurnId: null });
  });

  test("a failed agent accepts a new turn and shutdown", () => {
    const failed = [...busy, turnEnded("failed")];
    expect(agentAfter(...failed).value).toBe("failed");
    expect(agentAfter(...failed, secondTurn).value).toEqual({ busy: "working" });
    expect(agentAfter(...failed, shutDown).value).toBe("shutdown");
  });

  test("the second turn replaces the first", () => {
    const snapshot = agentAfter(...busy, turnEnded(), secondTurn);
    expect(Object.keys(snapshot.children)).toEqual(["desk#2"]);
    expect(snapshot.context).toMatchObject({ openTurnId: "desk#2", turnCount: 1 });
  });

  test("only a start ends a shutdown", () => {
    expect(agentAfter(...ready, shutDown, secondTurn).value).toBe("shutdown");
    expect(agentAfter(...ready, shutDown, starting, started).value).toBe("ready");
  });

  test("the agent starts no turn before it is ready", () => {
    expect(agentAfter(turnStarted()).value).toBe("created");
    expect(agentAfter(starting, turnStarted()).value).toBe("starting");
  });
});

describe("waiting", () => {
  test("for a child, until the last one has ended", () => {
    const two = [...busy, childSpawned(0), childSpawned(1)];
    expect(agentAfter(...two).value).toEqual({ busy: "waiting" });
    expect(agentAfter(...two, childEnded(1)).value).toEqual({ busy: "waiting" });
    expect(agentAfter(...two, childEnded(1), childEnded(0)).value).toEqual({ busy: "working" });
  });

  test("for others' reservations, until they are free", () => {
    expect(agentAfter(...busy, refused("mustWait")).value).toEqual({ busy: "waiting" });
    expect(agentAfter(...busy, refused("mustWait"), budgetFreed).value).toEqual({ busy: "working" });
  });

  test("not for a limit that has been reached", () => {
    expect(agentAfter(...busy, refused("budget")).value).toEqual({ busy: "working" });
  });

  test("for people's decisions, until the last request is decided", () => {
    const two = [...busy, requestOpened("approval", 0), requestOpened("question", 1)];
    expect(agentAfter(...two).value).toEqual({ busy: "waiting" });
    const answered = requestDecided("answered", "question", 1);
    expect(agentAfter(...two, answered).value).toEqual({ busy: "waiting" });
    expect(agentAfter(...two, answered, requestDecided("expired")).value).toEqual({ busy: "working" });
  });

  test("for a child and a person at once", () => {
    const both = [...busy, requestOpened("approval", 0), childSpawned(1)];
    expect(agentAfter(...both, childEnded(1)).value).toEqual({ busy: "waiting" });
    expect(agentAfter(...both, requestDecided()).value).toEqual({ busy: "waiting" });
    expect(agentAfter(...both, requestDecided(), childEnded(1)).value).toEqual({ busy: "working" });
  });

  test("ends with the turn", () => {
    const snapshot = agentAfter(...busy, childSpawned(0), requestOpened("approval", 1), turnEnded("stopped"));
    expect(snapshot.value).toBe("ready");
    expect(snapshot.context).toMatchObject({ openChildIds: [], openRequestIds: [] });
    expect(agentAfter(...busy, requestOpened(), turnEnded("stopped"), secondTurn).value).toEqual({ busy: "working" });
  });
});

describe("pausing", () => {
  test("a busy agent waits for a safe point first, and resume() continues its turn", () => {
    expect(agentAfter(...busy, pausing).value).toEqual({ busy: "pausing" });
    expect(agentAfter(...busy, pausing, paused).value).toBe("paused");
    expect(agentAfter(...busy, pausing, paused, resumed).value).toEqual({ busy: "working" });
  });

  test("resuming before the safe point cancels the pause", () => {
    expect(agentAfter(...busy, pausing, resumed).value).toEqual({ busy: "working" });
  });

  test("entries are recorded while it is paused", () => {
    const snapshot = agentAfter(...busy, childSpawned(0), pausing, paused, childEnded(0));
    expect(snapshot.value).toBe("paused");
    expect(snapshot.context.openChildIds).toEqual([]);
  });

  test("a turn that still waits is waiting again after the resume", () => {
    const bodies = [...busy, childSpawned(0), pausing, paused, resumed];
    expect(agentAfter(...bodies).value).toEqual({ busy: "waiting" });
  });

  test("an idle agent pauses at once", () => {
    expect(agentAfter(...ready, pausingIdle).value).toBe("paused");
    expect(agentAfter(...ready, pausingIdle, resumedIdle).value).toBe("ready");
    expect(agentAfter(...ready, pausingIdle, shutDown).value).toBe("shutdown");
  });

  test("a turn that ends during the pause leaves the agent paused", () => {
    const late = [...busy, pausing, paused, turnEnded("stopped", { lifecycle: "paused" })];
    expect(agentAfter(...late).value).toBe("paused");
    expect(agentAfter(...late).context).toMatchObject({ turnCount: 1, openTurnId: null });
    expect(agentAfter(...busy, pausing, turnEnded("completed", { lifecycle: "paused" })).value).toBe("paused");
  });
});

describe("the conversation", () => {
  const summary = { through: "old", summaryMessageId: "s", kept: [] };

  test("starts at the last compaction in every later turn", () => {
    const compacted = [...busy, contextCompacted(), contextCompacted(2, "s")];
    expect(agentAfter(...busy).context.compaction).toBeNull();
    expect(agentAfter(...compacted).context.compaction).toEqual(summary);
    expect(agentAfter(...compacted, turnEnded(), secondTurn).context.compaction).toEqual(summary);
  });

  test("starts empty once it is cleared", () => {
    expect(agentAfter(...busy, contextCompacted(), turnEnded(), cleared).context.compaction).toBeNull();
  });
});

test("a decision while the agent is paused is recorded", () => {
  const asleep = [...busy, requestOpened(), pausing, paused];
  expect(agentAfter(...asleep, resumed).value).toEqual({ busy: "waiting" });
  expect(agentAfter(...asleep, requestDecided()).value).toBe("paused");
  expect(agentAfter(...asleep, requestDecided(), resumed).value).toEqual({ busy: "working" });
});

test("the public status is the outermost state", () => {
  expect(lifecycleOf(agentAfter(...busy, pausing).value)).toBe("busy");
  expect(lifecycleOf(agentAfter(...ready).value)).toBe("ready");
});
