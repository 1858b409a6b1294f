import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  cursorText,
  type Entry,
  type EntryBody,
  type EntryType,
  type EventSource,
  entrySchema,
  eventsOf,
  parseCursor,
  type TroupeEvent,
  troupeEventSchema,
} from "../../src/state/index.ts";
import {
  hookApplied,
  journalOf,
  modelFailed,
  modelRequested,
  modelResponded,
  refused,
  turnEnded,
} from "../machines/bodies.ts";
import {
  callReviewed,
  cleared,
  contextCompacted,
  contextExpanded,
  contextLoaded,
  hooksSettled,
  messagesReleased,
  outputChecked,
} from "../machines/hook-bodies.ts";
import { requestDecided, requestOpened, turnWaiting } from "../machines/request-bodies.ts";
import { scenarios } from "../machines/scenarios.ts";
import { amount, every, rows } from "../support/full.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { arbitraryOf } from "./arbitrary-of.ts";

const source: EventSource = {
  agentId: "desk",
  parentAgentId: null,
  rootAgentId: "desk",
  sessionId: null,
  definition: { name: "desk", hash: "h" },
};
const messageText = (id: string): string => `text of ${id}`;

function typesOf(...bodies: Parameters<typeof journalOf>[0]): string[] {
  return journalOf(bodies).flatMap((entry) => eventsOf(entry, source, 1, messageText).map(({ type }) => type));
}

/** The only event of an entry. */
function eventOf(body: EntryBody): TroupeEvent | undefined {
  const events = journalOf([body]).flatMap((entry) => eventsOf(entry, source, 1, messageText));
  expect(events).toHaveLength(1);
  return events[0];
}

const kinds = entrySchema.options.map((schema) => {
  const [type] = schema.shape.type.def.values as readonly EntryType[];
  return { type: type as EntryType, schema };
});

describe("the public events of an entry", () => {
  test.each(kinds)("$type: total, pure, and valid against the event schema", ({ schema }) => {
    fc.assert(
      fc.property(arbitraryOf(schema), fc.integer({ min: 1, max: 1e9 }), (given, row) => {
        const entry = given as Entry;
        const before = structuredClone(entry);
        const events = eventsOf(entry, source, row, messageText);
        expect(eventsOf(structuredClone(entry), source, row, messageText)).toEqual(events);
        expect(entry).toEqual(before);
        for (const [index, event] of events.entries()) {
          expect(troupeEventSchema.parse(event)).toEqual(event);
          expect(parseCursor(event.cursor ?? "")).toEqual({ row, seq: entry.seq, index });
          expect(event).toMatchObject({ at: entry.at, agentId: "desk", agentName: "desk" });
        }
      }),
      { numRuns: amount(40, 7) },
    );
  });

  test("a retry restarts its step; only the first attempt starts it", () => {
    expect(typesOf(modelRequested(1, 1))).toEqual(["step.started"]);
    expect(typesOf(modelRequested(1, 2))).toEqual([]);
    expect(typesOf(modelFailed(5_000))).toEqual(["step.restarted"]);
    expect(typesOf(modelFailed(null))).toEqual([]);
    expect(typesOf(modelRequested(2, 1))).toEqual(["step.completed", "step.started"]);
  });

  test("step.completed has the number of the previous step", () => {
    const [entry] = journalOf([modelRequested(3, 1)]);
    const steps = entry && eventsOf(entry, source, 1, messageText).map(({ type, step }) => [type, step]);
    expect(steps).toEqual([
      ["step.completed", 2],
      ["step.started", 3],
    ]);
  });

  test("turn.completed contains the answer's text", () => {
    const [entry] = journalOf([turnEnded("completed", { outputMessageId: "m" })]);
    const [event] = entry ? eventsOf(entry, source, 1, messageText) : [];
    expect(event).toMatchObject({ type: "turn.completed", text: "text of m", stopReason: "completed" });
  });

  test("a request contains its prompt and its decision, never the arguments or the answer", () => {
    expect(eventOf({ ...requestOpened("question"), expiresAt: 9_000 })).toMatchObject({
      type: "request.opened",
      requestId: "desk#1:1:0:1",
      kind: "question",
      callId: "desk#1:1:0",
      name: "look",
      prompt: "may it look?",
      expiresAt: 9_000,
      turnId: "desk#1",
      step: 1,
    });
    for (const verdict of ["edited", "answered"] as const) {
      const event = eventOf({ ...requestDecided(verdict), reason: "so" });
      expect(event).toMatchObject({ type: "request.decided", verdict, by: "ann", reason: "so" });
      expect(event).not.toHaveProperty("arguments");
      expect(event).not.toHaveProperty("result");
    }
    expect(eventOf(requestDecided("expired"))).toMatchObject({ verdict: "expired", by: null });
  });

  test("turn.waiting contains the reason", () => {
    expect(eventOf(turnWaiting("desk#1:1:0:1"))).toMatchObject({ type: "turn.waiting", reason: "request", step: null });
    expect(eventOf(refused("paused"))).toMatchObject({ type: "turn.waiting", reason: "paused" });
    expect(eventOf(refused("mustWait"))).toMatchObject({ type: "turn.waiting", reason: "budget" });
  });

  test("a compaction contains the number of messages, not their ids", () => {
    const dropped = { type: "context.compacted", strategy: "dropOldest", messages: 3 };
    expect(eventOf(contextCompacted())).toMatchObject({ ...dropped, hasSummary: false });
    expect(eventOf(contextCompacted(1, "s"))).toMatchObject({ ...dropped, hasSummary: true });
    expect(eventOf(contextCompacted(1, "s"))).not.toHaveProperty("through");
  });

  test("an artifact has the version from the commit, or version 1 without one", () => {
    const parts = { artifactId: "a", name: "notes", contentType: "text/plain", size: 4 };
    const saved = { type: "artifact.saved", turnId: "desk#1", step: 1, ...parts } as const;
    expect(eventOf({ ...saved, version: 3 })).toMatchObject({ type: "artifact.saved", ...parts, version: 3 });
    expect(eventOf(saved)).toMatchObject({ version: 1 });
  });

  test("conversation.cleared contains author and scope", () => {
    expect(eventOf(cleared)).toMatchObject({ type: "conversation.cleared", by: "user", scope: "all", turnId: null });
  });

  test("internal entries produce no event", () => {
    const inner = [hooksSettled("answer"), messagesReleased("m"), outputChecked("fits"), contextExpanded()];
    expect(typesOf(hookApplied("beforeLlm"), callReviewed(), contextLoaded(["c"]), ...inner)).toEqual([]);
    expect(typesOf(modelResponded())).toEqual(["model.responded"]);
  });
});

describe("cursors", () => {
  const cursor = fc.record({
    row: fc.nat({ max: 999_999_999 }),
    seq: fc.nat({ max: 999_999_999 }),
    index: fc.nat({ max: 9_999 }),
  });

  test("convert to text and back", () => {
    fc.assert(
      fc.property(cursor, (one) => {
        expect(parseCursor(cursorText(one))).toEqual(one);
      }),
    );
  });

  test("have different texts if they differ", () => {
    fc.assert(
      fc.property(cursor, cursor, (one, other) => {
        const same = one.row === other.row && one.seq === other.seq && one.index === other.index;
        expect(cursorText(one) === cursorText(other)).toBe(same);
      }),
    );
  });

  test.each(["", "1", "1.2", "1.2.3.4", "a.b.c", "1.2.-3", "1.2.3 ", " 1.2.3", "1.2.3\n", "1e3.2.3", "1..3"])(
    "%j is not a cursor",
    (text) => {
      expect(parseCursor(text)).toBeUndefined();
    },
  );

  test("parsing never throws", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(() => parseCursor(text)).not.toThrow();
      }),
    );
  });
});

describeRuntimes(
  "the events of a tree",
  (stage) => {
    test.each(rows(scenarios, every(4)))("$name: are in cursor order, without duplicates", async ({ run }) => {
      const runtime = await run(stage(), {});
      const rows = await runtime.stores.readTree("default", "desk", 0, 10_000);
      const events: TroupeEvent[] = rows.flatMap(({ entries, cursor }) =>
        entries.flatMap((entry) => eventsOf(entry, source, cursor, messageText)),
      );
      const places = events.map(({ cursor }) => parseCursor(cursor ?? ""));
      const order = places.map((place) => (place ? place.row * 1e8 + place.seq * 1e3 + place.index : 0));
      expect(order.length).toBeGreaterThan(0);
      expect(order).toEqual([...new Set(order)].sort((one, other) => one - other));
    });
  },
  ["memory"],
);
