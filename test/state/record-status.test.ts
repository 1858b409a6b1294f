import { expect, it } from "vitest";
import { type Lifecycle, lifecycleSchema, statusOf } from "../../src/state/index.ts";

const mark = { by: "ann", at: 1 };

/** For each status written by an owner: idle, with a turn, idle and paused, with a turn and paused. */
const table: Record<Lifecycle, readonly [Lifecycle, Lifecycle, Lifecycle, Lifecycle]> = {
  created: ["created", "busy", "created", "busy"],
  starting: ["starting", "starting", "starting", "starting"],
  ready: ["ready", "busy", "paused", "busy"],
  busy: ["ready", "busy", "paused", "busy"],
  paused: ["ready", "busy", "paused", "paused"],
  failed: ["failed", "busy", "paused", "busy"],
  shutdown: ["shutdown", "shutdown", "shutdown", "shutdown"],
};

it.each(lifecycleSchema.options)("statusOf() a record with the stored status %s", (status) => {
  const root = { status, parentAgentId: null };
  expect([
    statusOf({ ...root, openTurnId: null, pause: null }),
    statusOf({ ...root, openTurnId: "a#1", pause: null }),
    statusOf({ ...root, openTurnId: null, pause: mark }),
    statusOf({ ...root, openTurnId: "a#1", pause: mark }),
  ]).toEqual(table[status]);
});

it("a child with the stored status paused may be held by its parent, and is paused", () => {
  expect(statusOf({ status: "paused", parentAgentId: "a", openTurnId: "a~b#1", pause: null })).toBe("paused");
});
