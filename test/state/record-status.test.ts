import { expect, it } from "vitest";
import { type Lifecycle, lifecycleSchema, statusOf } from "../../src/state/index.ts";

const mark = { by: "ann", at: 1 };

/** For each status that an owner has written: idle, with a turn, idle and paused, with a turn and paused. */
const table: Record<Lifecycle, readonly [Lifecycle, Lifecycle, Lifecycle, Lifecycle]> = {
  created: ["created", "busy", "created", "busy"],
  starting: ["starting", "starting", "starting", "starting"],
  ready: ["ready", "busy", "paused", "busy"],
  busy: ["ready", "busy", "paused", "busy"],
  paused: ["ready", "busy", "paused", "paused"],
  failed: ["failed", "busy", "paused", "busy"],
  shutdown: ["shutdown", "shutdown", "shutdown", "shutdown"],
};

it.each(lifecycleSchema.options)("a record whose owner wrote %s", (status) => {
  const root = { status, parentAgentId: null };
  expect([
    statusOf({ ...root, openTurnId: null, pause: null }),
    statusOf({ ...root, openTurnId: "a#1", pause: null }),
    statusOf({ ...root, openTurnId: null, pause: mark }),
    statusOf({ ...root, openTurnId: "a#1", pause: mark }),
  ]).toEqual(table[status]);
});

it("a child that its owner calls paused may be held from above, and is paused", () => {
  expect(statusOf({ status: "paused", parentAgentId: "a", openTurnId: "a~b#1", pause: null })).toBe("paused");
});
