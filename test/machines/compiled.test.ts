import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AnyMachineSnapshot, type AnyStateMachine, createActor, type EventObject } from "xstate";
import { liveAgentMachine, liveToolCallMachine, liveTurnMachine } from "../../src/actors/index.ts";
import { compiled } from "../../src/machines/index.ts";
import { bothWays, interpreted, seen } from "../support/both-ways.ts";
import { every, rows } from "../support/full.ts";
import { agentPaths } from "./agent-paths.ts";
import { at } from "./bodies.ts";
import { callPaths, declared } from "./call-paths.ts";
import { longestOf, nameOf, type Path } from "./explored.ts";
import {
  effectsOf,
  persistedCopy,
  recordedAgentMachine,
  recordedCallMachine,
  recordedTurnMachine,
} from "./recorded.ts";
import { telling, walk } from "./stepped.ts";
import { checkedTurn, hookedTurn, plainTurn, turnPaths } from "./turn-paths.ts";

interface Case {
  readonly name: string;
  readonly machine: AnyStateMachine;
  readonly recorded: AnyStateMachine;
  readonly input: unknown;
  readonly paths: readonly Path[];
}

const ours: readonly Case[] = [
  { name: "agent", machine: liveAgentMachine, recorded: recordedAgentMachine, input: undefined, paths: agentPaths() },
  ...[plainTurn, hookedTurn, checkedTurn].map((plan, index) => ({
    name: `turn ${index + 1}`,
    machine: liveTurnMachine,
    recorded: recordedTurnMachine,
    input: { entry: at(plan.first, 1) },
    paths: turnPaths(plan),
  })),
  {
    name: "tool call",
    machine: liveToolCallMachine,
    recorded: recordedCallMachine,
    input: { call: declared },
    paths: callPaths(),
  },
];

/** Each of the entries of these paths once, and one that no machine knows. */
function entriesOf(paths: readonly Path[]): readonly EventObject[] {
  const entries = paths.flatMap((path) => path.entries);
  return [...new Map(entries.map((entry) => [JSON.stringify(entry), entry])).values(), { type: "nobody.hears" }];
}

describe.each(ours)("the compiled steps of the machine of a $name", ({ machine, recorded, input, paths }) => {
  const known = entriesOf(paths);

  test("are XState's on every shortest path, and from its end with every entry there is", () => {
    const chosen = rows(paths, every(25));
    for (const { entries } of chosen) {
      const end = walk(machine, input, entries);
      if (!end) throw new Error("a legal path ended with an error");
      for (const entry of known) {
        const step = bothWays(machine, end, entry);
        expect(step.compiled, `${nameOf(end.value)}, ${entry.type}`).toEqual(step.interpreted);
      }
    }
    expect(chosen.length).toBeGreaterThan(5);
  });

  test("are XState's for entries in any order, errors included", () => {
    const anyOrder = fc.array(fc.constantFrom(...known), { minLength: 1, maxLength: 30 });
    const property = fc.property(anyOrder, (entries) => {
      walk(machine, input, entries);
    });
    fc.assert(property);
  });

  test("leave nothing to XState but its own events", () => {
    const left: string[] = [];
    const counted = compiled(telling(recorded, left));
    for (const { entries } of rows(paths, every(25))) {
      const actor = createActor(counted, { input }).start();
      for (const entry of entries) actor.send(entry);
      actor.stop();
    }
    expect(new Set(left)).toEqual(new Set(["xstate.stop"]));
  });

  test("run the same effects, and are stored the same", () => {
    for (const { entries, end } of rows(longestOf(paths), every(40))) {
      const actors = [recorded, interpreted(recorded)].map((one) => createActor(one, { input }).start());
      for (const entry of entries) {
        for (const actor of actors) actor.send(entry);
        const [one, other] = actors.map((actor) => [
          effectsOf(actor),
          persistedCopy(actor),
          seen(actor.getSnapshot() as AnyMachineSnapshot),
        ]);
        expect(one, `${end} after ${entry.type}`).toEqual(other);
      }
      for (const actor of actors) actor.stop();
    }
  });
});
