import { describe, expect, it } from "vitest";
import { type MarkAsk, markEffect, type MarkSituation } from "../../src/stores/rules/marks.ts";

const asks: readonly MarkAsk[] = ["pause", "hold", "resume", "end", "endBelow", "none"];
const both = [false, true];

/** A pause mark that no command can have left standing below one that was taken away is none. */
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

describe("the rule of marks", () => {
  it.each([
    ["an idle one", quiet, "pause", { isPaused: true, isEnded: false, items: ["pause"] }],
    [
      "one that is paused",
      { ...quiet, isPaused: true },
      "resume",
      { isPaused: false, isEnded: false, items: ["resume"] },
    ],
    [
      "one that is paused, and held from above too",
      { ...quiet, isPaused: true, heldAbove: { before: true, after: true } },
      "resume",
      { isPaused: false, isEnded: false, items: [] },
    ],
    ["one at work", { ...quiet, hasOpenTurn: true }, "end", { isPaused: false, isEnded: true, items: ["abort"] }],
    [
      "a paused one with a turn",
      { ...quiet, hasOpenTurn: true, isPaused: true },
      "end",
      { isPaused: false, isEnded: true, items: ["abort", "resume"] },
    ],
    ["a paused one without a turn", { ...quiet, isPaused: true }, "end", { isPaused: true, isEnded: false, items: [] }],
    ["one that has ended", quiet, "endBelow", { isPaused: false, isEnded: false, items: [] }],
    [
      "one that a pause above held, which is gone",
      { ...quiet, heldAbove: { before: true, after: false } },
      "none",
      { isPaused: false, isEnded: false, items: ["resume"] },
    ],
    [
      "one that was paused itself as well",
      { ...quiet, isPaused: true, heldAbove: { before: true, after: false } },
      "none",
      { isPaused: true, isEnded: false, items: [] },
    ],
    [
      "one that is shut down with a turn",
      { ...quiet, isAsleep: true, hasOpenTurn: true, isPaused: true },
      "end",
      { isPaused: false, isEnded: true, items: ["abort"] },
    ],
  ] as const)("%s: %o, %s", (_name, at, ask, effect) => {
    expect(markEffect(at, ask)).toEqual(effect);
  });

  it("in every situation: an agent that was held and is held no longer is told so, and no other agent is", () => {
    for (const { at, effect, ask } of table) {
      const isFreed = (at.isPaused || at.heldAbove.before) && !effect.isPaused && !at.heldAbove.after;
      expect({ at, ask, isTold: effect.items.includes("resume") }).toEqual({
        at,
        ask,
        isTold: isFreed && !at.isAsleep,
      });
    }
  });

  it("in every situation: only an open turn is ended, and then no pause of its agent keeps it from its end", () => {
    for (const { at, effect, ask } of table) {
      expect({ at, ask, ended: effect.isEnded }).toEqual({ at, ask, ended: effect.items.includes("abort") });
    }
    const wrong = table.filter(({ at, effect }) => effect.isEnded && (!at.hasOpenTurn || effect.isPaused));
    expect(wrong).toEqual([]);
  });

  it("in every situation: a mark is set by a pause alone, and taken away by what names the agent or ends its turn", () => {
    const wrong = table.filter(({ at, effect, ask }) =>
      at.isPaused ? !effect.isPaused && ask !== "resume" && !effect.isEnded : effect.isPaused !== (ask === "pause"),
    );
    expect(wrong).toEqual([]);
  });
});
