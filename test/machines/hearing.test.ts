import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { initialTransition, transition } from "xstate";
import { onEveryEntry } from "../../src/machines/entry-routing.ts";
import {
  agentHears,
  agentMachine,
  foldAgent,
  newAgentContext,
  toolCallMachine,
  turnHears,
  turnMachine,
} from "../../src/machines/index.ts";
import {
  declareCall,
  type Entry,
  type EntryType,
  entrySchema,
  foldCall,
  foldTurn,
  startTurn,
} from "../../src/state/index.ts";
import { arbitraryOf } from "../state/arbitrary-of.ts";
import { amount } from "../support/full.ts";
import { at, callIdAt, turnStarted } from "./bodies.ts";

const kinds = entrySchema.options.map((schema) => {
  const [type] = schema.shape.type.def.values as readonly EntryType[];
  return { type: type as EntryType, entries: arbitraryOf(schema) as fc.Arbitrary<Entry> };
});
const turn = startTurn(at(turnStarted(), 1));
const call = declareCall(callIdAt(0), "look");

describe("the entry families in onEveryEntry()", () => {
  const families = Object.keys(onEveryEntry({ actions: [] }));

  test("contain every kind of entry and no other", () => {
    const needed = kinds.map(({ type }) => (type.includes(".") ? `${type.split(".")[0]}.*` : type));
    expect(families.sort()).toEqual([...new Set(needed)].sort());
  });

  test("match no event of XState itself", () => {
    expect(families.filter((family) => family === "*" || family.startsWith("xstate"))).toEqual([]);
  });
});

describe.each(kinds)("$type", ({ entries }) => {
  test("changes nothing in a machine that does not handle it", () => {
    const isPassedOver = fc.property(entries, (entry) => {
      const agent = agentHears(entry) ? newAgentContext : foldAgent(newAgentContext, entry);
      const heardByTurn = turnHears(entry) ? turn : foldTurn(turn, entry);
      expect(agent).toBe(newAgentContext);
      expect(heardByTurn).toBe(turn);
    });
    expect(fc.check(isPassedOver, { numRuns: amount(20, 5) })).toMatchObject({ failed: false });
  });

  test("updates the fold of every machine that receives it, in any state", () => {
    fc.assert(
      fc.property(entries, (entry) => {
        const [agent] = initialTransition(agentMachine);
        expect(transition(agentMachine, agent, entry)[0].context).toEqual(foldAgent(agent.context, entry));
        const [receiving] = initialTransition(turnMachine, { entry: at(turnStarted(), 1) });
        const { turn: before } = receiving.context;
        expect(transition(turnMachine, receiving, entry)[0].context.turn).toEqual(foldTurn(before, entry));
        const [declared] = initialTransition(toolCallMachine, { call });
        expect(transition(toolCallMachine, declared, entry)[0].context.call).toEqual(foldCall(call, entry));
      }),
      { numRuns: amount(20, 5) },
    );
  });
});
