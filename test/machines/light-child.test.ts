import { expect, test, vi } from "vitest";
import { type AnyActorRef, type AnyStateMachine, assign, createActor, fromCallback, setup } from "xstate";
import { compiled, lightCallback } from "../../src/machines/index.ts";

interface Told {
  readonly told: readonly string[];
}

/** A parent with a machine as its child, which has a callback as its child; all of them write down what happens to them. */
function familyOf(log: string[]) {
  const begin = ({ input }: { readonly input: unknown }) => {
    log.push(`begins with ${JSON.stringify(input)}`);
    return () => void log.push("ends");
  };
  const work = lightCallback(
    fromCallback<{ readonly type: string }, unknown>((given) => begin(given)),
    begin,
  );
  const child: AnyStateMachine = setup({
    types: { context: {} as Told },
    actors: { work },
    actions: {
      say: ({ event }) => void log.push(`says ${event.type}`),
      tellItself: ({ self }) => {
        self.send({ type: "later" });
        log.push("has told itself");
      },
      note: assign(({ context, event }) => ({ told: [...context.told, event.type] })),
      fail: assign(() => {
        throw new Error("the child fails");
      }),
      throwLate: () => {
        throw new Error("late");
      },
    },
  }).createMachine({
    context: ({ input }) => ({ told: [JSON.stringify(input)] }),
    initial: "idle",
    on: { fail: { actions: "fail" }, late: { actions: "throwLate" }, end: ".over", "*": { actions: ["note", "say"] } },
    states: {
      idle: { on: { go: { target: "working", actions: ["tellItself", "note"] } } },
      working: { invoke: { src: "work", input: ({ context }: { readonly context: Told }) => context.told.length } },
      over: { type: "final" },
    },
    output: ({ context }) => context.told.length,
  });
  const hears =
    (words: (end: { readonly output?: unknown; readonly error?: unknown }) => string) =>
    ({ event }: { readonly event: object }) =>
      void log.push(words(event));
  const parent = (made: AnyStateMachine): AnyStateMachine =>
    setup({ actors: { child: made } }).createMachine({
      initial: "open",
      states: {
        open: {
          invoke: {
            src: "child",
            id: "child",
            input: { a: 1 },
            onDone: { target: "closed", actions: hears(({ output }) => `hears of its end: ${String(output)}`) },
            onError: { target: "closed", actions: hears(({ error }) => `hears of ${String(error)}`) },
          },
          on: { close: "closed" },
        },
        closed: { on: { open: "open" } },
      },
    });
  return { xstate: parent(child), light: compiled(parent(compiled(child.provide({})))) };
}

/** What these events to the child, or to its parent (`^`), leave behind. */
function playedBy(kind: "xstate" | "light", events: readonly string[]): unknown {
  const log: string[] = [];
  const actor = createActor(familyOf(log)[kind]);
  const childOf = (): AnyActorRef | undefined => actor.getSnapshot().children["child"] as AnyActorRef | undefined;
  childOf()?.send({ type: "early" });
  actor.start();
  let last = childOf();
  for (const event of events) {
    if (event.startsWith("^")) actor.send({ type: event.slice(1) });
    else (childOf() ?? last)?.send({ type: event });
    last = childOf() ?? last;
    log.push(`${event}: ${JSON.stringify([actor.getPersistedSnapshot(), last?.getSnapshot()])}`);
  }
  actor.stop();
  return { log, status: actor.getSnapshot().status };
}

test.each([
  ["hears, and steps again when its step is over", ["a", "go", "b"]],
  ["is stopped with its own child", ["go", "^close", "a"]],
  ["begins again", ["go", "^close", "^open", "go"]],
  ["tells its parent of its end", ["go", "end", "a"]],
  ["tells its parent of an error", ["go", "fail", "a"]],
  ["tells its parent of an error of an action", ["late", "a"]],
  ["is stopped with its parent", ["go"]],
])("a light child %s as an actor of XState does", (_what, events) => {
  // XState says of an event to an actor that has ended what nobody says of one to a light child.
  const warned = vi.spyOn(console, "warn").mockReturnValue();
  expect(playedBy("light", events)).toEqual(playedBy("xstate", events));
  for (const [message] of warned.mock.calls) expect(message).toContain("was sent to stopped actor");
  warned.mockRestore();
});

test("a light child is no actor of XState", () => {
  const { xstate, light } = familyOf([]);
  const kinds = [xstate, light].map(
    (machine) => createActor(machine).getSnapshot().children["child"]?.constructor.name,
  );
  expect(kinds).toEqual(["Actor", "LightMachine"]);
});
