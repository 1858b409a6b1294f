import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type AnyActorRef,
  type AnyActorScope,
  type AnyStateMachine,
  and,
  assign,
  createActor,
  enqueueActions,
  fromCallback,
  initialTransition,
  not,
  or,
  setup,
  spawnChild,
  stopChild,
} from "xstate";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { liveTurnMachine } from "../../src/actors/index.ts";
import { type ChildOptions, compiled, type LightLogic } from "../../src/machines/index.ts";

/*
 * What `src/machines/compiled.ts` and `light-child.ts` there use of XState's inside, each with the words for
 * whoever puts in a newer XState and finds it broken. `npm test -- test/machines/compiled` then says whether the steps are still
 * XState's; a difference there is a change of its rules, and not of its inside.
 */

const MINOR = "5.33";

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => value as Fields;

const machine: AnyStateMachine = setup({
  actors: { idle: fromCallback(() => undefined) },
  guards: { yes: () => true },
  actions: { note: assign(() => ({})) },
}).createMachine({
  id: "m",
  context: { a: 1 },
  initial: "one",
  states: {
    one: { on: { go: { guard: "yes", target: "two", actions: "note" }, "go.*": { reenter: true, target: "one" } } },
    two: {
      tags: ["t"],
      initial: "in",
      entry: "note",
      exit: "note",
      invoke: { src: "idle", id: "child", input: 1 },
      always: { guard: not("yes"), target: "one" },
      on: { back: "one" },
      states: { in: {} },
    },
  },
});

test(`XState is of version ${MINOR}, whose inside was looked at`, () => {
  const { version } = JSON.parse(readFileSync(join(repositoryRoot, "node_modules/xstate/package.json"), "utf8")) as {
    version: string;
  };
  const { dependencies } = JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  const words = `make the tests of test/machines pass with xstate ${version}, then set MINOR here and the range in package.json`;
  expect(version.startsWith(`${MINOR}.`), words).toBe(true);
  expect(dependencies["xstate"], "package.json must take this minor version only").toMatch(`~${MINOR}.`);
});

describe("a machine", () => {
  test("is stepped through its own fields transition and getInitialSnapshot, which can be replaced", () => {
    const copy = machine.provide({});
    const called: string[] = [];
    const transition = copy.transition.bind(copy);
    const getInitialSnapshot = copy.getInitialSnapshot.bind(copy);
    copy.transition = (snapshot, event, scope) => {
      called.push("transition");
      return transition(snapshot, event, scope);
    };
    copy.getInitialSnapshot = (scope, input) => {
      called.push("getInitialSnapshot");
      return getInitialSnapshot(scope, input);
    };
    createActor(copy).start().send({ type: "go" });
    const words = "an actor no longer calls the machine's own functions: compiled() replaces what nobody calls";
    expect(called, words).toEqual(["getInitialSnapshot", "transition"]);
  });

  test("has a tree of states with what a step needs of each", () => {
    const { one, two } = machine.states as Record<string, AnyStateMachine["root"]>;
    if (!one || !two) throw new Error("machine.states has no states");
    expect(one.parent, "a state no longer names its parent").toBe(machine.root);
    expect([machine.root.type, one.type, two.type], "the kinds of states").toEqual(["compound", "atomic", "compound"]);
    expect(
      two.initial.target.map(({ key }) => key),
      "the first inner state",
    ).toEqual(["in"]);
    expect(two.initial.actions, "actions on the way to the first inner state").toEqual([]);
    expect([two.entry, two.exit, two.tags, two.path], "entry, exit, tags and path").toEqual([
      ["note"],
      ["note"],
      ["t"],
      ["two"],
    ]);
    expect(two.invoke, "invoked children").toMatchObject([{ src: "idle", id: "child", input: 1 }]);
    expect([...one.transitions.keys()], "transitions by the event as it is written").toEqual(["go", "go.*"]);
    const [go] = one.transitions.get("go") ?? [];
    const read = [go?.guard, go?.actions, go?.target, go?.source, go?.reenter];
    expect(read, "a transition").toEqual(["yes", ["note"], [two], one, false]);
    expect(
      two.always?.map(({ target }) => target),
      "transitions that wait for no event",
    ).toEqual([[one]]);
  });

  test("has its implementations by name", () => {
    expect(Object.keys(machine.implementations.actors)).toEqual(["idle"]);
    expect(Object.keys(machine.implementations.actions)).toEqual(["note"]);
    expect(Object.keys(machine.implementations.guards)).toEqual(["yes"]);
  });
});

test("a snapshot has these fields, of which a step replaces five", () => {
  const [snapshot] = initialTransition(machine);
  const words = "a snapshot has other fields: look whether a step must change the new ones, and put them here";
  expect(Object.keys(snapshot), words).toEqual([
    "status",
    "output",
    "error",
    "machine",
    "context",
    "_nodes",
    "value",
    "tags",
    "children",
    "historyValue",
    "matches",
    "hasTag",
    "can",
    "getMeta",
    "toJSON",
  ]);
  const ids = (fieldsOf(snapshot)["_nodes"] as { id: string }[]).map(({ id }) => id);
  expect(ids, "its states go from the root inwards: the last is the innermost").toEqual(["m", "m.one"]);
});

describe("a built-in action is a function with fields", () => {
  test.each([
    { name: "assign", one: assign({}), other: assign({}), fields: ["assignment", "resolve"] },
    {
      name: "enqueueActions",
      one: enqueueActions(() => undefined),
      other: enqueueActions(() => undefined),
      fields: ["collect", "resolve"],
    },
    {
      name: "spawnChild",
      one: spawnChild("a"),
      other: spawnChild("b"),
      fields: ["id", "src", "input", "systemId", "syncSnapshot", "resolve", "execute"],
    },
    { name: "stopChild", one: stopChild("a"), other: stopChild("b"), fields: ["actorRef", "resolve", "execute"] },
  ])("$name", ({ name, one, other, fields }) => {
    const words = `${name} keeps what it does elsewhere: compiled() cannot read it, and leaves its transitions to XState`;
    expect(Object.keys(one), words).toEqual(expect.arrayContaining(fields));
    expect(fieldsOf(one)["resolve"], `two of ${name} no longer share their way: compiled() knows it by that`).toBe(
      fieldsOf(other)["resolve"],
    );
  });
});

test.each([
  ["and", and(["yes"]), and([])],
  ["or", or(["yes"]), or([])],
  ["not", not("yes"), not("no")],
])("the guard %s is a function with its parts, and is known by its way", (name, one, other) => {
  expect(fieldsOf(one)["guards"], `${name} keeps its parts elsewhere`).toEqual(["yes"]);
  expect(fieldsOf(one)["check"], `two of ${name} no longer share their way`).toBe(fieldsOf(other)["check"]);
});

const born = { id: "child", src: "idle", parent: createActor(machine), input: 1 };
const lightEffect = (liveTurnMachine.implementations.actors["think"] as unknown as LightLogic).light(born);
const lightMachine = compiled(machine.provide({})).light(born);

test("XState asks of a child nothing that a light effect does not have", () => {
  const asked = new Set<string>();
  const get = (from: object, key: string | symbol): unknown => {
    asked.add(String(key));
    return Reflect.get(from, key);
  };
  const light = ({ id, src, parent, input }: ChildOptions): AnyActorRef => {
    const child = {
      id,
      src,
      _parent: parent,
      system: parent.system as unknown,
      sessionId: "",
      systemId: undefined,
      _syncSnapshot: false,
      _processingStatus: 0,
      start(): void {
        this._processingStatus = 1;
      },
      _stop(): void {
        this._processingStatus = 2;
      },
      getSnapshot: () => ({ status: "active", output: undefined, error: undefined, input }),
      getPersistedSnapshot: () => ({ status: "active", output: undefined, error: undefined, input }),
      toJSON: () => ({ id }),
    };
    return new Proxy(child, { get }) as unknown as AnyActorRef;
  };
  const idle = Object.assign(
    fromCallback(() => undefined),
    { light },
  );
  const actor = createActor(compiled(machine.provide({ actors: { idle } }))).start();
  actor.send({ type: "go" });
  JSON.stringify([actor.getSnapshot(), actor.getPersistedSnapshot()]);
  actor.send({ type: "back" });
  actor.send({ type: "go" });
  actor.stop();
  expect(asked.size, "the light child was not made").toBeGreaterThan(5);
  for (const child of [lightEffect, lightMachine]) {
    const missing = [...asked].filter((key) => !(key in child));
    expect(missing, "XState now asks this of a child: LightChild in light-child.ts must have it").toEqual([]);
  }
});

test("XState asks of the scope of a step nothing that a light machine does not have", () => {
  const asked = new Set<string>();
  const get = (from: object, key: string | symbol): unknown => {
    asked.add(String(key));
    return Reflect.get(from, key);
  };
  const actor = createActor(machine).start() as unknown as { readonly _actorScope: object };
  const scope = new Proxy(actor._actorScope, { get }) as AnyActorScope;
  let snapshot = machine.getInitialSnapshot(scope);
  for (const type of ["go", "back", "go", "xstate.stop"]) snapshot = machine.transition(snapshot, { type }, scope);
  expect(asked.size, "the scope was not asked").toBeGreaterThan(3);
  const missing = [...asked].filter((key) => !(key in lightMachine));
  expect(missing, "XState now asks this of a scope: LightMachine in light-child.ts must have it").toEqual([]);
});
