import * as fc from "fast-check";
import type { TroupeEvent } from "troupe";
import { describe, expect, test } from "vitest";
import { TextShown } from "../../../src/server/openai/text-shown.ts";
import { amount } from "../../support/full.ts";

const turnId = "desk#1";
const common = { turnId, agentId: "desk", after: null, cursor: null } as const;
type Body = Pick<TroupeEvent, "type"> & Readonly<Record<string, unknown>>;
const eventOf = (body: Body): TroupeEvent => ({ ...common, ...body }) as unknown as TroupeEvent;

const delta = (step: number, text: string, offset: number, attempt = 1): TroupeEvent =>
  eventOf({ type: "text.delta", step, text, offset, attempt });
const thought = (step: number, text: string, offset: number, attempt = 1): TroupeEvent =>
  eventOf({ type: "reasoning.delta", step, text, offset, attempt });
const snapshot = (step: number, text: string, reasoning: string | null = null, attempt = 1): TroupeEvent =>
  eventOf({ type: "text.snapshot", step, text, reasoning, attempt, offset: text.length });

/** A client's text after some events. */
function heard(shown: TextShown, events: readonly TroupeEvent[]): { text: string; reasoning: string } {
  const taken = events.map((event) => shown.take(event));
  return { text: taken.map(({ text }) => text).join(""), reasoning: taken.map(({ reasoning }) => reasoning).join("") };
}

describe("the text of an answer", () => {
  test("of several steps has an empty line between two of them", () => {
    const shown = new TextShown(turnId);
    const { text } = heard(shown, [delta(1, "One", 0), delta(1, " two.", 3), delta(2, "Three.", 0)]);
    expect(text).toBe("One two.\n\nThree.");
    expect(shown.end("One two.\n\nThree.\n\nFour.")).toBe("\n\nFour.");
  });

  test("that is repeated continues where it was if it begins as before", () => {
    const shown = new TextShown(turnId);
    const { text } = heard(shown, [delta(1, "One t", 0), delta(1, "One", 0, 2), delta(1, " two.", 3, 2)]);
    expect(text).toBe("One two.");
  });

  test("that is repeated differently is sent again", () => {
    const shown = new TextShown(turnId);
    const { text } = heard(shown, [delta(1, "One t", 0), delta(1, "Uno", 0, 2), delta(1, " due.", 3, 2)]);
    expect(text).toBe("One t\n\nUno due.");
    expect(shown.responded({ turnId, step: 1 }, "Uno due.")).toBe("");
  });

  test("after a gap is completed by the snapshot", () => {
    const shown = new TextShown(turnId);
    const { text } = heard(shown, [
      delta(1, "One", 0),
      delta(1, "three", 8),
      snapshot(1, "One two three"),
      delta(1, ".", 13),
    ]);
    expect(text).toBe("One two three.");
  });

  test("that was cut off and became shorter is sent again", () => {
    const shown = new TextShown(turnId);
    expect(heard(shown, [delta(1, "One two", 0), delta(1, "One", 0, 2)]).text).toBe("One two");
    expect(shown.responded({ turnId, step: 1 }, "One")).toBe("\n\nOne");
  });

  test("of stored steps, of other turns and of subagents is not repeated", () => {
    const shown = new TextShown(turnId, 1, "One.");
    const others = [delta(1, "One.", 0), { ...delta(2, "x", 0), turnId: "reader#1" }, delta(2, "Two.", 0)];
    expect(heard(shown, others).text).toBe("\n\nTwo.");
    expect(shown.responded({ turnId, step: 1 }, "One.")).toBe("");
    expect(shown.responded({ turnId: "reader#1", step: 2 }, "x")).toBe("");
  });

  test("and the reasoning are counted separately", () => {
    const shown = new TextShown(turnId);
    const events = [thought(1, "I see", 0), thought(1, ".", 5), delta(1, "One", 0), snapshot(1, "One.", "I see. Yes.")];
    expect(heard(shown, events)).toEqual({ text: "One.", reasoning: "I see. Yes." });
  });
});

const attempt = fc.record({ text: fc.string({ maxLength: 8 }), cuts: fc.array(fc.nat(8), { maxLength: 3 }) });
const step = fc.record({
  failed: fc.array(attempt, { maxLength: 2 }),
  last: attempt,
  /** The client misses the first piece of the last attempt, and gets a snapshot. */
  isLate: fc.boolean(),
  /** A hook has replaced the model's text. */
  stored: fc.option(fc.string({ maxLength: 8 }), { nil: undefined }),
});

function piecesOf({ text, cuts }: { text: string; cuts: number[] }, number: number, of: number): TroupeEvent[] {
  const places = [
    0,
    ...cuts.map((cut) => Math.min(cut, text.length)).toSorted((one, other) => one - other),
    text.length,
  ];
  return places.slice(1).map((end, index) => delta(of, text.slice(places[index], end), places[index] ?? 0, number));
}

test("if steps are repeated, missed or replaced, each step's text is complete and in order, and nothing is retracted", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 4 }), (steps) => {
      const shown = new TextShown(turnId);
      let text = "";
      const wholes: string[] = [];
      for (const [index, { failed, last, isLate, stored }] of steps.entries()) {
        const number = index + 1;
        const before = failed.flatMap((one, place) => piecesOf(one, place + 1, number));
        const pieces = piecesOf(last, failed.length + 1, number);
        const late = isLate ? [...pieces.slice(1), snapshot(number, last.text, null, failed.length + 1)] : pieces;
        text += heard(shown, [...before, ...late]).text;
        const whole = stored ?? last.text;
        text += shown.responded({ turnId, step: number }, whole);
        if (whole.trim() !== "") wholes.push(whole);
      }
      let place = 0;
      for (const whole of wholes) {
        const found = text.indexOf(whole, place);
        expect(found, JSON.stringify({ text, whole })).toBeGreaterThanOrEqual(0);
        place = found + whole.length;
      }
      const isStraight = steps.every(({ failed, stored }) => failed.length === 0 && stored === undefined);
      const joined = wholes.join("\n\n");
      expect(isStraight ? text : joined).toBe(joined);
    }),
    { numRuns: amount(2_000, 300) },
  );
});
