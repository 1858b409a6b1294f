import { describe, expect, test } from "vitest";
import { type AnyActorRef, createActor, type Snapshot } from "xstate";
import { agentMachine, toolCallMachine, turnMachine } from "../../src/machines/index.ts";
import { addressOf, type Entry } from "../../src/state/index.ts";
import { agentPaths } from "./agent-paths.ts";
import { at } from "./bodies.ts";
import { callPaths, declared } from "./call-paths.ts";
import { leavesOf, longestOf } from "./explored.ts";
import {
  effectsOf,
  persistedCopy,
  RecordedTree,
  recordedCallMachine,
  recordedTurnMachine,
  snapshotOf,
  startRecorded,
} from "./recorded.ts";
import { checkedTurn, hookedTurn, plainTurn, type TurnPlan, turnPaths } from "./turn-paths.ts";
import { amount, every, rows } from "../support/full.ts";

/** A machine with recording effects, and the delivery of entries to it and its child machines. */
interface Rig {
  readonly actor: AnyActorRef;
  deliver(entry: Entry): void;
}

function startCall(snapshot?: Snapshot<unknown>): Rig {
  const input = { call: declared };
  const actor = createActor(recordedCallMachine, { id: "call", input, ...(snapshot ? { snapshot } : {}) });
  startRecorded(actor);
  return { actor, deliver: (entry) => actor.send(entry) };
}

function startTurn({ first }: TurnPlan) {
  return (snapshot?: Snapshot<unknown>): Rig => {
    const input = { entry: at(first, 1) };
    const actor = createActor(recordedTurnMachine, { id: "turn", input, ...(snapshot ? { snapshot } : {}) });
    startRecorded(actor);
    return {
      actor,
      deliver(entry) {
        actor.send(entry);
        const { callId } = addressOf(entry);
        if (callId !== null) snapshotOf(actor).children[callId]?.send(entry);
      },
    };
  };
}

function startAgent(snapshot?: Snapshot<unknown>): Rig {
  const tree = new RecordedTree(snapshot);
  return { actor: tree.root, deliver: (entry) => tree.deliver(entry) };
}

/** The states of a machine and of all machines below it. */
function wholeView(actor: AnyActorRef): unknown {
  const { value, context, children } = snapshotOf(actor);
  const below = Object.entries(children).filter(([, child]) => child && "value" in (child.getSnapshot() as object));
  return { value, context, children: Object.fromEntries(below.map(([id, child]) => [id, child && wholeView(child)])) };
}

const turnEnds = { ends: ["done", "stopped", "failed"], waits: ["receiving", "waiting", "held"] };
const turns = [
  { name: "turn", plan: plainTurn },
  { name: "turn with every hook", plan: hookedTurn },
  { name: "turn whose answer is checked", plan: checkedTurn },
].map(({ name, plan }) => ({ name, paths: turnPaths(plan), start: startTurn(plan), ...turnEnds }));

const agent = {
  name: "agent",
  paths: agentPaths(),
  start: startAgent,
  ends: ["shutdown"],
  waits: ["created", "starting", "ready", "failed", "paused", "busy.waiting"],
};
const toolCall = {
  name: "tool call",
  paths: callPaths(),
  start: startCall,
  ends: ["settled", "outcomeUnknown"],
  waits: ["held", "awaitingChild", "awaitingReports", "awaitingDecision"],
};

test.each([
  { name: "agent", machine: agentMachine, paths: agent.paths },
  { name: "turn", machine: turnMachine, paths: turns.flatMap(({ paths }) => paths) },
  { name: "tool call", machine: toolCallMachine, paths: toolCall.paths },
])("the $name machine reaches all of its states", ({ machine, paths }) => {
  expect(new Set(paths.map(({ end }) => end))).toEqual(new Set(leavesOf(machine)));
});

describe.each([agent, ...turns, toolCall])("the machine of a $name", ({ paths, start, ends, waits }) => {
  test("reaches its final states", () => {
    expect(paths.map(({ end }) => end)).toEqual(expect.arrayContaining(ends));
  });

  test("runs an effect in every state that is neither final nor waiting", () => {
    const silent = rows(paths, every(3)).flatMap(({ entries, end }) => {
      const rig = start();
      for (const entry of entries) rig.deliver(entry);
      const effects = effectsOf(rig.actor);
      rig.actor.stop();
      return effects.length === 0 ? [end] : [];
    });
    const expected = new Set([...ends, ...waits]);
    expect(silent.filter((end) => !expected.has(end))).toEqual([]);
  });

  test("stored and restored in any state, runs the same effects and takes the same transitions (F32)", () => {
    let restorations = 0;
    const chosen = rows(longestOf(paths), every(10));
    for (const { entries, end } of chosen) {
      const never = start();
      const restored = [start(persistedCopy(never.actor))];
      for (const entry of entries) {
        for (const rig of [never, ...restored]) rig.deliver(entry);
        const again = start(persistedCopy(never.actor));
        expect(effectsOf(again.actor), `${end} after ${entry.type}`).toEqual(effectsOf(never.actor));
        expect(wholeView(again.actor), `${end} after ${entry.type}`).toEqual(wholeView(never.actor));
        restored.push(again);
      }
      for (const [count, { actor }] of restored.entries()) {
        expect(wholeView(actor), `${end}, restored after ${count} entries`).toEqual(wholeView(never.actor));
        expect(effectsOf(actor), `${end}, restored after ${count} entries`).toEqual(effectsOf(never.actor));
        actor.stop();
      }
      restorations += restored.length;
      never.actor.stop();
    }
    expect(restorations).toBeGreaterThan(amount(paths.length, chosen.length));
  });
});
