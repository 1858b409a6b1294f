import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import * as budget from "../../src/budget/index.ts";
import * as state from "../../src/state/index.ts";
import { amount } from "../support/full.ts";
import { arbitraryOf } from "./arbitrary-of.ts";

function schemasOf(folder: Readonly<Record<string, unknown>>): { name: string; schema: z.ZodType }[] {
  return Object.entries(folder).flatMap(([name, value]) =>
    value instanceof z.ZodType ? [{ name, schema: value }] : [],
  );
}

/** Returns why a value of this schema changes in a JSON round trip, or `undefined` if none does. */
function faultOf(schema: z.ZodType): string | undefined {
  const isKept = fc.property(arbitraryOf(schema), (value) => {
    const read = schema.parse(JSON.parse(JSON.stringify(value)));
    expect(read).toEqual(value);
    expect(schema.parse(read)).toEqual(read);
  });
  return fc.defaultReportMessage(fc.check(isKept, { numRuns: amount(40, 7) }));
}

describe("every schema goes through JSON and back", () => {
  test.each(schemasOf(state))("state: $name", ({ schema }) => {
    expect(faultOf(schema)).toBeUndefined();
  });
  test.each(schemasOf(budget))("budget: $name", ({ schema }) => {
    expect(faultOf(schema)).toBeUndefined();
  });
});

describe("every kind of entry, item, event and timer", () => {
  const unions = {
    entry: state.entrySchema,
    item: state.inboxItemSchema,
    event: state.troupeEventSchema,
    timer: state.timerSchema,
  };
  const kinds = Object.entries(unions).flatMap(([union, { options }]) =>
    options.map((schema) => {
      const { shape } = schema as unknown as { shape: { type?: z.ZodLiteral; kind?: z.ZodLiteral } };
      return { union, kind: String((shape.type ?? shape.kind)?.value), schema: schema as z.ZodType };
    }),
  );

  test("has a schema of its own", () => {
    expect(kinds.length).toBeGreaterThan(75);
    const names = kinds.map(({ union, kind }) => `${union} ${kind}`);
    expect(new Set(names).size).toBe(names.length);
  });

  test.each(kinds)("$union $kind", ({ schema }) => {
    expect(faultOf(schema)).toBeUndefined();
  });
});

describe("stored requests to people", () => {
  const stored = Object.entries(state).filter(([name]) => ["agentRequestSchema", "decisionSchema"].includes(name));
  test("use schemas checked above", () => {
    expect(stored.map(([name]) => name).sort()).toEqual(["agentRequestSchema", "decisionSchema"]);
  });

  test("drop credentials (row L9)", () => {
    const secret = { credentials: "canary", auth: { actorId: "ann", credentials: "canary" } };
    fc.assert(
      fc.property(arbitraryOf(state.agentRequestSchema), arbitraryOf(state.decisionSchema), (request, decision) => {
        const given = { ...(request as object), decision: { ...(decision as object), ...secret }, ...secret };
        const read = state.agentRequestSchema.parse(given);
        expect(Object.keys(read)).not.toContain("credentials");
        expect(Object.keys(read.decision ?? {})).not.toContain("credentials");
        expect({ ...read, decision: null }).toEqual({ ...(request as object), decision: null });
      }),
      { numRuns: amount(60, 10) },
    );
  });

  test("every request kind allows a rejection and an expiry, and all verdicts are used", () => {
    const kinds = state.requestKindSchema.options;
    expect(Object.keys(state.verdictsOf).sort()).toEqual([...kinds].sort());
    for (const kind of kinds) expect(state.verdictsOf[kind]).toEqual(expect.arrayContaining(["rejected", "expired"]));
    const all = new Set(kinds.flatMap((kind) => state.verdictsOf[kind]));
    expect([...all].sort()).toEqual([...state.requestVerdictSchema.options].sort());
  });
});

test("the hook counts of a turn list the hooks in call order", () => {
  expect(Object.keys(state.hookCountsSchema.shape)).toEqual([...state.hookNames]);
  expect(Object.keys(state.noHooks)).toEqual([...state.hookNames]);
});

describe("invalid values", () => {
  const strict = schemasOf(state).filter(({ schema }) => schema instanceof z.ZodObject && "type" in schema.shape);
  test.each(strict)("$name refuses an unknown type", ({ schema }) => {
    expect(schema.safeParse({ type: "nothing.of.ours" }).success).toBe(false);
  });

  test.each([null, "text", 7, [], {}, { type: 1 }, { type: "turn.started" }])("an entry is not %j", (value) => {
    expect(state.entrySchema.safeParse(value).success).toBe(false);
  });

  test("a number must be within its range", () => {
    const entry = { type: "agent.starting", seq: 1, at: 1, epoch: 1 };
    expect(state.entrySchema.safeParse(entry).success).toBe(true);
    for (const wrong of [{ seq: 0 }, { seq: 1.5 }, { seq: "1" }, { epoch: -1 }, { at: Number.NaN }, { at: null }]) {
      expect(state.entrySchema.safeParse({ ...entry, ...wrong }).success, JSON.stringify(wrong)).toBe(false);
    }
  });
});
