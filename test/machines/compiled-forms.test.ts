import { expect, test, vi } from "vitest";
import {
  type AnyActorRef,
  type AnyStateMachine,
  and,
  assign,
  emit,
  type EventObject,
  enqueueActions,
  fromCallback,
  not,
  or,
  raise,
  sendTo,
  setup,
  spawnChild,
  stopChild,
} from "xstate";
import { compiled } from "../../src/machines/index.ts";
import { telling, walk } from "./stepped.ts";

interface Notes {
  readonly notes: readonly string[];
}

/** Writes a word into the context, and the event. Typed as fitting anywhere: the charts here are of any form. */
const note = (word: string): never =>
  assign<Notes, EventObject, undefined, EventObject, never>(({ context, event }) => ({
    notes: [...context.notes, `${word} at ${event.type}`],
  })) as never;
const has = (word: string): never =>
  (({ context }: { readonly context: Notes }) => context.notes.some((one) => one.startsWith(word))) as never;
const idle = fromCallback(() => undefined);
const context: Notes = { notes: [] };
const made = setup({
  types: { context: {} as Notes },
  actors: { idle },
  actions: { noteGo: note("go"), own: () => undefined },
  guards: { hasGo: has("go") },
});

/** Charts of any form, whatever the types of XState say of them. */
const chart = (config: object): AnyStateMachine => made.createMachine(config as never) as unknown as AnyStateMachine;

interface Form {
  readonly name: string;
  readonly machine: AnyStateMachine;
  readonly events: readonly string[];
}

/** What the table is made of: nothing of these is left to XState. */
const compiledForms: readonly Form[] = [
  {
    name: "states in states, left and entered in order",
    machine: chart({
      context,
      initial: "one",
      entry: note("enters all"),
      on: { out: ".one", again: ".two" },
      states: {
        one: { entry: note("enters one"), exit: note("leaves one"), on: { in: "two.deep", self: "one", inner: {} } },
        two: {
          initial: "shallow",
          entry: [note("enters two"), "noteGo"],
          exit: note("leaves two"),
          tags: ["second"],
          on: {
            reset: { target: "two" },
            whole: { target: "two", reenter: true },
            inside: ".deep",
            outside: "two.deep",
          },
          states: {
            shallow: { tags: ["flat"], entry: note("enters shallow"), exit: note("leaves shallow") },
            deep: {
              initial: "deepest",
              invoke: [
                { src: "idle", id: "diver" },
                { src: "idle", input: ({ event }: { readonly event: EventObject }) => event.type },
              ],
              entry: note("enters deep"),
              exit: note("leaves deep"),
              on: { again: { target: "deep", reenter: true }, up: "shallow" },
              states: { deepest: { exit: note("leaves deepest"), on: { far: "#deep" } } },
              id: "deep",
            },
          },
        },
      },
    }),
    events: [
      "in",
      "again",
      "up",
      "inside",
      "reset",
      "inside",
      "whole",
      "in",
      "far",
      "outside",
      "self",
      "out",
      "self",
      "inner",
      "?",
    ],
  },
  {
    name: "states that are passed through",
    machine: chart({
      context,
      initial: "start",
      states: {
        start: { on: { go: { target: "first", actions: "noteGo" }, stay: { target: "first" } } },
        first: { invoke: { src: "idle" }, always: [{ guard: "hasGo", target: "second", actions: note("passes") }] },
        second: { entry: note("enters second"), always: { guard: has("passes"), target: "third" } },
        third: { on: { back: "start" }, always: { guard: not("hasGo"), target: "start" } },
      },
    }),
    events: ["stay", "go", "?", "back", "go"],
  },
  {
    name: "families of events, and guards of guards",
    machine: chart({
      context,
      on: {
        "*": { guard: has("any"), actions: note("star") },
        "a.*": [
          { guard: and(["hasGo", not(has("b"))]), actions: note("b") },
          { guard: "hasGo", actions: note("family") },
        ],
        "a.b": [{ guard: or([has("family"), has("nothing")]), actions: note("exact") }],
        "a.b.*": { guard: not("hasGo"), actions: ["noteGo", note("any")] },
      },
    }),
    events: ["a", "a.b", "a.b", "a.b.c", "a.c", "ab", "a", "a.b", "b"],
  },
  {
    name: "actions that enqueue others",
    machine: chart({
      context,
      on: {
        spawn: {
          actions: enqueueActions(({ enqueue, event, context: { notes } }) => {
            enqueue.stopChild("child-2");
            enqueue.stopChild(
              (({ self }: { readonly self: AnyActorRef }) => self.getSnapshot().children["child-1"]) as never,
            );
            enqueue.spawnChild("idle", { id: `child-${notes.length}`, input: { event } });
            enqueue.assign(({ context: before }) => ({ notes: [...before.notes, "enqueued"] }));
            enqueue("noteGo");
            enqueue(note("inline"));
          }),
        },
        plain: { actions: [spawnChild("idle", { id: "plain", input: 1 }), stopChild("child-0"), stopChild("nobody")] },
      },
    }),
    events: ["spawn", "plain", "spawn", "plain", "spawn"],
  },
];

const onGo = (go: object, more: object = {}) =>
  chart({
    context,
    initial: "a",
    on: { go },
    states: { a: { on: { b: "b" } }, b: { on: { a: "a" } }, ...more },
  });

/** What is left to XState, which makes the same of it as ever. The way is `b go go a`. */
const otherForms: readonly Omit<Form, "events">[] = [
  { name: "an action of one's own", machine: onGo({ actions: "own" }) },
  { name: "an action with parameters", machine: onGo({ actions: { type: "noteGo", params: 1 } }) },
  { name: "a guard with parameters", machine: onGo({ guard: { type: "hasGo", params: 1 }, actions: "noteGo" }) },
  { name: "an assignment field by field", machine: onGo({ actions: assign({ notes: () => ["one"] }) }) },
  {
    name: "an assignment that spawns",
    machine: onGo({
      actions: assign(({ spawn }) => {
        spawn("idle" as never, { id: "x" } as never);
        return {};
      }),
    }),
  },
  { name: "an event to itself", machine: onGo({ actions: [note("raises"), raise({ type: "a" })] }) },
  {
    name: "an enqueued event to itself",
    machine: onGo({ actions: enqueueActions(({ enqueue }) => enqueue.raise({ type: "a" })) }),
  },
  {
    name: "a check among what is enqueued",
    machine: onGo({
      actions: enqueueActions(({ check, enqueue }) => check("hasGo" as never) && enqueue("noteGo" as never)),
    }),
  },
  { name: "an event to another actor", machine: onGo({ actions: sendTo(({ self }) => self, { type: "a" }) }) },
  { name: "an emitted event", machine: onGo({ actions: emit({ type: "told" }) }) },
  {
    name: "a child with a name in its system",
    machine: onGo({ actions: spawnChild("idle", { id: "x", systemId: "y" } as never) }),
  },
  {
    name: "a child whose snapshots are events",
    machine: onGo({ actions: spawnChild("idle", { id: "x", syncSnapshot: true } as never) }),
  },
  {
    name: "a child that nobody provided",
    machine: onGo({ actions: spawnChild("nobody" as never, { id: "x" } as never) }),
  },
  { name: "a final state", machine: onGo({ target: ".end" }, { end: { type: "final" } }) },
  {
    name: "a parallel state",
    machine: onGo({ target: ".both" }, { both: { type: "parallel", states: { l: {}, r: {} } } }),
  },
  {
    name: "a history state",
    machine: onGo({ target: ".old.h" }, { old: { initial: "x", states: { x: {}, h: { history: "deep" } } } }),
  },
  { name: "a delay", machine: onGo({ target: ".late" }, { late: { after: { 1: "a" } } }) },
  {
    name: "an action on the way into inner states",
    machine: onGo({ target: ".c" }, { c: { initial: { target: "x", actions: note("in") }, states: { x: {} } } }),
  },
  {
    name: "several targets",
    machine: onGo(
      { target: [".both.l.y", ".both.r.y"] },
      {
        both: {
          type: "parallel",
          states: { l: { initial: "x", states: { x: {}, y: {} } }, r: { initial: "x", states: { x: {}, y: {} } } },
        },
      },
    ),
  },
  { name: "the whole machine entered again", machine: onGo({ target: ".b", reenter: true }) },
  {
    name: "a guard that throws",
    machine: onGo({
      guard: () => {
        throw new Error("no guard");
      },
    }),
  },
  {
    name: "an assignment that throws",
    machine: onGo({
      actions: [
        spawnChild("idle", { id: "x" }),
        assign(() => {
          throw new Error("no assignment");
        }),
      ],
    }),
  },
];

/** The events of which XState made the step. */
function leftBy(machine: AnyStateMachine, events: readonly string[]): readonly string[] {
  const left: string[] = [];
  const counted = compiled(telling(machine, left));
  walk(
    counted,
    undefined,
    events.map((type) => ({ type })),
  );
  return [...new Set(left)];
}

test.each(compiledForms)("$name: compiled, as XState does it", ({ machine, events }) => {
  expect(leftBy(machine, events)).toEqual([]);
});

test.each(otherForms)("$name: left to XState", ({ machine }) => {
  const warned = vi.spyOn(console, "warn").mockReturnValue();
  expect(leftBy(machine, ["b", "go", "go", "a"])).toContain("go");
  for (const [message] of warned.mock.calls) expect(message).toContain("Actor type 'nobody' not found");
  warned.mockRestore();
});
