import { describe, expect, test } from "vitest";
import { type AnyStateMachine, createMachine, fromPromise, raise, sendTo, setup, spawnChild } from "xstate";
import { machineFaults, nodesOf } from "./machine-walk.ts";

const call = fromPromise(() => Promise.resolve(1));
const chart = setup({ actors: { call } });

test("a machine that uses entries only has no faults", () => {
  const machine = setup({ actors: { call }, actions: { answer: raise({ type: "answered" }) } }).createMachine({
    id: "turn",
    initial: "calling",
    on: { "pause.*": {} },
    states: {
      calling: {
        entry: spawnChild("call", { id: "one" }),
        on: { "model.responded": ".ended" },
        initial: "open",
        states: { open: {}, ended: {} },
      },
      waiting: { invoke: { src: "call" }, always: { guard: () => false, target: "calling", actions: "answer" } },
    },
  });
  expect(machineFaults(machine)).toEqual([]);
  expect(nodesOf(machine.root).map((node) => node.id)).toContain("turn.calling.ended");
});

const faulty: readonly { readonly title: string; readonly machine: AnyStateMachine; readonly fault: string }[] = [
  {
    title: "onDone of an invoked actor, in a nested state",
    machine: chart.createMachine({
      id: "m",
      initial: "a",
      states: { a: { initial: "b", states: { b: { invoke: { id: "job", src: "call", onDone: {} } } } } },
    }),
    fault: `m.a.b: has a transition on "xstate.done.actor.job"; outcomes come as entries of the journal`,
  },
  {
    title: "onError of an invoked actor",
    machine: chart.createMachine({ id: "m", invoke: { id: "job", src: "call", onError: {} } }),
    fault: `m: has a transition on "xstate.error.actor.job"; outcomes come as entries of the journal`,
  },
  {
    title: "onDone of a state",
    machine: createMachine({ id: "m", initial: "a", onDone: {}, states: { a: { type: "final" } } }),
    fault: `m: has a transition on "xstate.done.state.m"; outcomes come as entries of the journal`,
  },
  {
    title: "a wildcard, which matches done events",
    machine: createMachine({ id: "m", on: { "*": {} } }),
    fault: `m: has a transition on "*"; outcomes come as entries of the journal`,
  },
  {
    title: "after",
    machine: createMachine({ id: "m", initial: "a", states: { a: { after: { 10: "b" } }, b: {} } }),
    fault: `m.a: waits with "after" (xstate.after.10.m.a); a delay is lost on restoring`,
  },
  {
    title: "a delayed raise behind a name",
    machine: setup({ actions: { later: raise({ type: "due" }, { delay: 5 }) } }).createMachine({
      id: "m",
      entry: "later",
    }),
    fault: `action "later": raise with a delay; a delay is lost on restoring`,
  },
  {
    title: "a delayed send in a transition",
    machine: createMachine({ id: "m", on: { go: { actions: sendTo("child", { type: "due" }, { delay: 5 }) } } }),
    fault: "m: sendTo with a delay; a delay is lost on restoring",
  },
  {
    title: "an inline invoked actor",
    machine: createMachine({ id: "m", invoke: { src: call } }),
    fault: "m: invokes an inline actor; name it in setup({ actors })",
  },
  {
    title: "an inline spawned actor",
    machine: createMachine({ id: "m", on: { go: { actions: spawnChild(call) } } }),
    fault: "m: spawns an inline actor; name it in setup({ actors })",
  },
  {
    title: "an actor that is not provided",
    machine: createMachine({ id: "m", exit: spawnChild("missing") }),
    fault: `m: spawns "missing", which setup({ actors }) does not name`,
  },
];

describe("the walk finds", () => {
  test.each(faulty)("$title", ({ machine, fault }) => {
    expect(machineFaults(machine)).toEqual([fault]);
  });
});
