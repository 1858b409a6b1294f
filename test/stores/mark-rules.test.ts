import { describe, expect, it } from "vitest";
import { type MarkAsk, markEffect, type MarkSituation } from "../../src/stores/rules/marks.ts";

const asks: readonly MarkAsk[] = ["pause", "hold", "resume", "end", "endBelow", "none"];
const both = [false, true];

/** All situations of the flags, including those that no sequence of commands produces. */
const situations: MarkSituation[] = both.flatMap((isAsleep) =>
  both.flatMap((hasOpenTurn) =>
    both.flatMap((isEnding) =>
      both.flatMap((isPaused) =>
        both.flatMap((before) =>
          both.map((after) => ({ isAsleep, hasOpenTurn, isEnding, isPaused, heldAbove: { before, after } })),
        ),
      ),
    ),
  ),
);

const table = situations.flatMap((at) => asks.map((ask) => ({ at, ask, effect: markEffect(at, ask) })));

const quiet: MarkSituation = {
  isAsleep: false,
  hasOpenTurn: false,
  isEnding: false,
  isPaused: false,
  heldAbove: { before: false, after: false },
};

describe("the rule of pause and abort flags", () => {
  it.each([
    ["an idle agent", quiet, "pause", { isPaused: true, isEnded: false, items: ["pause"] }],
    ["a paused agent", { ...quiet, isPaused: true }, "resume", { isPaused: false, isEnded: false, items: ["resume"] }],
    [
      "a paused agent below a paused one",
      { ...quiet, isPaused: true, heldAbove: { before: true, after: true } },
      "resume",
      { isPaused: false, isEnded: false, items: [] },
    ],
    ["an agent at work", { ...quiet, hasOpenTurn: true }, "end", { isPaused: false, isEnded: true, items: ["abort"] }],
    [
      "a paused agent with a turn",
      { ...quiet, hasOpenTurn: true, isPaused: true },
      "end",
      { isPaused: false, isEnded: true, items: ["abort", "resume"] },
    ],
    [
      "a paused agent without a turn",
      { ...quiet, isPaused: true },
      "end",
      { isPaused: true, isEnded: false, items: [] },
    ],
    ["an agent whose turn has ended", quiet, "endBelow", { isPaused: false, isEnded: false, items: [] }],
    [
      "an agent below a pause that was removed",
      { ...quiet, heldAbove: { before: true, after: false } },
      "none",
      { isPaused: false, isEnded: false, items: ["resume"] },
    ],
    [
      "a paused agent below a pause that was removed",
      { ...quiet, isPaused: true, heldAbove: { before: true, after: false } },
      "none",
      { isPaused: true, isEnded: false, items: [] },
    ],
    [
      "an agent that was shut down with a turn",
      { ...quiet, isAsleep: true, hasOpenTurn: true, isPaused: true },
      "end",
      { isPaused: false, isEnded: true, items: ["abort"] },
    ],
  ] as const)("%s: %o, %s", (_name, at, ask, effect) => {
    expect(markEffect(at, ask)).toEqual(effect);
  });

  it("in every situation: an agent that is no longer held gets a resume, and no other agent does", () => {
    for (const { at, effect, ask } of table) {
      const isFreed = (at.isPaused || at.heldAbove.before) && !effect.isPaused && !at.heldAbove.after;
      expect({ at, ask, isTold: effect.items.includes("resume") }).toEqual({
        at,
        ask,
        isTold: isFreed && !at.isAsleep,
      });
    }
  });

  it("in every situation: only an open turn is ended, and no pause of its agent then blocks its end", () => {
    for (const { at, effect, ask } of table) {
      expect({ at, ask, ended: effect.isEnded }).toEqual({ at, ask, ended: effect.items.includes("abort") });
    }
    const wrong = table.filter(({ at, effect }) => effect.isEnded && (!at.hasOpenTurn || effect.isPaused));
    expect(wrong).toEqual([]);
  });

  it("in every situation: only a pause sets the pause flag, and only a resume of the agent or the end of its turn clears it", () => {
    const wrong = table.filter(({ at, effect, ask }) =>
      at.isPaused ? !effect.isPaused && ask !== "resume" && !effect.isEnded : effect.isPaused !== (ask === "pause"),
    );
    expect(wrong).toEqual([]);
  });
});
