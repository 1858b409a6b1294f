// What plugins keep of agents and owners is deleted with them: before the line is final, and again until it has succeeded.
import { expect, it, onTestFinished } from "vitest";
import { armFaultPoints } from "../../src/base/index.ts";
import {
  type AgentDefinition,
  createRuntime,
  type DataSubject,
  defineAgent,
  InvalidInputError,
  type Plugin,
  type Runtime,
  StoreUnavailableError,
  subagent,
  UnsupportedError,
} from "../../src/index.ts";
import { memory, memoryNotes, type MemoryStore, notes, processMemory } from "../../src/kit/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";

/** A store of memories outside of all processes, whose `forget` can fail. */
class OwnMemories implements MemoryStore {
  readonly #kept = processMemory();
  readonly remember: MemoryStore["remember"] = async (key, one) => await this.#kept.remember(key, one);
  readonly recall: MemoryStore["recall"] = async (key, search) => await this.#kept.recall(key, search);
  readonly forgotten: string[] = [];
  isBroken = false;

  async forget(...[key, which]: Parameters<MemoryStore["forget"]>): Promise<void> {
    if (this.isBroken) throw new Error("the disk is full");
    await this.#kept.forget(key, which);
    this.forgotten.push(`${key.scope} ${key.id}`);
  }

  async of(scope: "agent" | "owner", id: string): Promise<readonly string[]> {
    const found = await this.recall({ tenant: "default", scope, id }, { query: "", limit: 10 });
    return found.map(({ text }) => text);
  }
}

const remember = (text: string) => ({ toolCalls: [{ name: "remember", arguments: { text } }] });

/** A clerk and its subagent, each of which remembers something for itself. */
function clerk(store: MemoryStore, more: readonly Plugin[] = []): AgentDefinition {
  const plugins = [memory({ store, scope: "agent", recall: false }), ...more];
  const reader = defineAgent({ name: "reader", model: scriptedModel([remember("read"), "done"]), plugins });
  const model = scriptedModel((_request, { call }) => {
    if (call?.step === 1) return remember("served");
    return call?.step === 2 ? { toolCalls: [{ name: "reader", arguments: { input: "go" } }] } : "done";
  });
  return defineAgent({ name: "clerk", model, plugins, tools: [subagent(reader, { description: "Reads." })] });
}

const ofOwner = (store: MemoryStore): Plugin => memory({ store, scope: "owner", recall: false, prefix: "own_" });

async function play(runtime: Runtime, agentId: string, ownerId?: string): Promise<string> {
  const agent = await runtime.agent("clerk", { agentId, ownerId });
  await agent.start();
  await agent.executeTurn("go").result;
  const { agents } = await runtime.head(agentId);
  return agents.find((one) => one.agentId !== agentId)?.agentId ?? "";
}

async function isPending(runtime: Runtime): Promise<boolean> {
  return (await runtime.stores.deletions({ tenant: "default", isPending: true })).length > 0;
}

/** Has a process delete, and kills it at a step. */
async function killedAt(
  stage: Stage,
  agents: readonly AgentDefinition[],
  { step, work }: { readonly step: string; readonly work: (runtime: Runtime) => Promise<unknown> },
): Promise<void> {
  const staged = await stage.openProcess({ agents: [...agents] });
  await play(staged.runtime, "desk", "ann");
  const died = Promise.withResolvers<void>();
  const die = (): never => {
    staged.kill();
    died.resolve();
    throw new Error("killed");
  };
  onTestFinished(armFaultPoints([{ name: step, hit: 1, action: die }]));
  // Its calls to the stores never return.
  work(staged.runtime).catch(() => undefined);
  await died.promise;
}

const ownersKey = { tenant: "default", scope: "owner", id: "ann" } as const;

describeRuntimes("data of plugins", (stage) => {
  it("of all agents of a tree is deleted with it; that of others and of the owner stays", async () => {
    const store = new OwnMemories();
    const runtime = await stage().open({ agents: [clerk(store, [ofOwner(store)])] });
    await store.remember(ownersKey, { id: "m", text: "likes tea", createdAt: 1 });
    const child = await play(runtime, "desk", "ann");
    await play(runtime, "shop", "ann");
    expect(await store.of("agent", child)).toEqual(["read"]);
    const { trees } = await runtime.delete("desk");
    expect(trees).toMatchObject([{ agentId: "desk", dataLeft: [] }]);
    expect([await store.of("agent", "desk"), await store.of("agent", child)]).toEqual([[], []]);
    expect([await store.of("agent", "shop"), await store.of("owner", "ann")]).toEqual([["served"], ["likes tea"]]);
    // A plugin that two agents share is asked once for each agent.
    expect(store.forgotten.toSorted()).toEqual(["agent desk", `agent ${child}`].toSorted());
  });

  it("of an owner is deleted with the owner, also of one without agents", async () => {
    const store = new OwnMemories();
    const book = memoryNotes();
    const plugins = [ofOwner(store), notes({ scope: "owner", store: book })];
    const runtime = await stage().open({ agents: [clerk(store, plugins)] });
    for (const id of ["ann", "ben"]) {
      await store.remember({ ...ownersKey, id }, { id: "m", text: "likes tea", createdAt: 1 });
      await book.add({ ...ownersKey, id }, { id: "n", text: "has a cat", createdAt: 1 });
    }
    await play(runtime, "desk", "ben");
    for (const owner of ["ann", "ben", "nobody"]) {
      expect(await runtime.deleteOwner(owner)).toMatchObject({ failed: [] });
      expect(await store.of("owner", owner)).toEqual([]);
      expect(await book.list({ ...ownersKey, id: owner })).toEqual([]);
    }
    expect(await store.of("agent", "desk")).toEqual([]);
  });

  it("that cannot be deleted keeps the deletion unfinished until it can", async () => {
    const store = new OwnMemories();
    const runtime = await stage().open({ agents: [clerk(store, [ofOwner(store)])] });
    const child = await play(runtime, "desk", "ann");
    await store.remember(ownersKey, { id: "m", text: "likes tea", createdAt: 1 });
    store.isBroken = true;
    const failure = await runtime.delete("desk").catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StoreUnavailableError);
    expect((failure as Error).message).toContain(
      'plugin "memory" of agent "clerk" could not forget agent "desk": the disk is full; repeat the deletion',
    );
    expect(await isPending(runtime)).toBe(true);
    await expect(runtime.deleteOwner("ann")).rejects.toThrow('could not forget owner "ann"');
    store.isBroken = false;
    await runtime.recover();
    expect(await isPending(runtime)).toBe(false);
    expect([await store.of("agent", "desk"), await store.of("agent", child)]).toEqual([[], []]);
    await runtime.deleteOwner("ann");
    expect(await store.of("owner", "ann")).toEqual([]);
  });

  it.each(["deletion.begun", "tree.deleted", "copies.deleted", "data.forgotten", "deletion.finished"])(
    "is gone after a deletion whose process was killed at %s is continued",
    async (step) => {
      const store = new OwnMemories();
      const agents = [clerk(store, [ofOwner(store)])];
      await store.remember(ownersKey, { id: "m", text: "likes tea", createdAt: 1 });
      await killedAt(stage(), agents, { step, work: (runtime) => runtime.deleteOwner("ann") });
      const next = await stage().open({ agents });
      // Without another call for the owner: the deletion that was begun has the owner's data too.
      await next.recover();
      expect(await isPending(next)).toBe(false);
      expect(await store.of("agent", "desk")).toEqual([]);
      expect(await store.of("owner", "ann")).toEqual([]);
      expect(await next.deleteOwner("ann")).toMatchObject({ failed: [] });
    },
  );

  it("is not passed over by a process without the definitions that goes on with a deletion", async () => {
    const store = new OwnMemories();
    const agents = [clerk(store)];
    await killedAt(stage(), agents, { step: "tree.deleted", work: (runtime) => runtime.delete("desk") });
    const other = await stage().open({ agents: [defineAgent({ name: "other", model: scriptedModel("fine") })] });
    await expect(other.delete("desk")).rejects.toThrow(UnsupportedError);
    await expect(other.delete("desk")).rejects.toThrow('plugins or tools of "clerk", "reader" keep data');
    expect(await isPending(other)).toBe(true);
    expect(await store.of("agent", "desk")).toEqual(["served"]);
    const next = await stage().open({ agents });
    expect(await next.delete("desk")).toMatchObject({ trees: [{ wasDeleted: true }] });
    expect(await store.of("agent", "desk")).toEqual([]);
    expect(await isPending(next)).toBe(false);
  });

  it("is named as left by a process that deletes a tree without knowing its definitions", async () => {
    const store = new OwnMemories();
    const runtime = await stage().open({ agents: [clerk(store)] });
    await play(runtime, "desk");
    const other = await stage().open({ agents: [defineAgent({ name: "other", model: scriptedModel("fine") })] });
    expect(await other.delete("desk")).toMatchObject({ trees: [{ dataLeft: ["clerk", "reader"] }] });
    expect(await store.of("agent", "desk")).toEqual(["served"]);
  });

  it("of agents goes with the retention, that of owners stays", async () => {
    const store = new OwnMemories();
    const retention = { endedAfterMs: 60_000, everyMs: 1_000 };
    const gone = Promise.withResolvers<void>();
    const told: Plugin = {
      name: "told",
      forget: ({ scope, id }) => (scope === "agent" && id === "desk" ? gone.resolve() : undefined),
    };
    const runtime = await stage().open({ agents: [clerk(store, [ofOwner(store), told])], retention });
    await play(runtime, "desk", "ann");
    await store.remember(ownersKey, { id: "m", text: "likes tea", createdAt: 1 });
    for (let passed = 0; passed < 70; passed += 1) stage().clock.advance(1_000);
    await gone.promise;
    expect(await store.of("agent", "desk")).toEqual([]);
    expect(await store.of("owner", "ann")).toEqual(["likes tea"]);
  });

  it("whose deletion does not end fails after a minute", async () => {
    const asked = Promise.withResolvers<void>();
    const stuck: Plugin = {
      name: "stuck",
      forget: async () => {
        asked.resolve();
        await new Promise(() => undefined);
      },
    };
    const runtime = await stage().open({
      agents: [defineAgent({ name: "desk", model: scriptedModel("fine"), plugins: [stuck] })],
    });
    await runtime.agent("desk", { agentId: "a" });
    const deletion = runtime.delete("a").catch((error: unknown) => error);
    await asked.promise;
    stage().clock.advance(60_000);
    expect(String(await deletion)).toContain("forget() did not end within 60000 ms");
    expect(await isPending(runtime)).toBe(true);
  });
});

it("notes of an agent are artifacts and are deleted with it", async () => {
  const model = scriptedModel([{ toolCalls: [{ name: "add_note", arguments: { text: "has a cat" } }] }, "Noted."]);
  const runtime = await createRuntime({
    agents: [defineAgent({ name: "clerk", model, plugins: [notes({ scope: "agent" })] })],
  });
  await play(runtime, "desk");
  expect(await runtime.delete("desk")).toMatchObject({ trees: [{ counts: { artifacts: 1 }, dataLeft: [] }] });
  expect(await runtime.stores.artifacts({ tenant: "default", agentId: "desk" })).toEqual([]);
  await runtime.shutdown();
});

it("a plugin of a class forgets with its own fields, and gets a subject of its own", async () => {
  class Shelf implements Plugin {
    readonly name = "shelf";
    readonly subjects: DataSubject[] = [];
    forget(subject: DataSubject): void {
      this.subjects.push(subject);
      Object.assign(subject, { id: "changed" });
    }
  }
  const shelves = [new Shelf(), new Shelf()];
  const agents = shelves.map((shelf, index) =>
    defineAgent({ name: `clerk${index}`, model: scriptedModel("fine"), plugins: [shelf] }),
  );
  const runtime = await createRuntime({ agents });
  await runtime.agent("clerk0", { agentId: "desk", ownerId: "ann" });
  await runtime.delete("desk");
  expect(shelves.map(({ subjects }) => subjects.length)).toEqual([1, 1]);
  await expect(runtime.find("desk")).rejects.toThrow('agent "desk" was deleted');
  await runtime.shutdown();
});

it("forget must be a function", () => {
  const wrong = { name: "shelf", forget: "all" } as unknown as Plugin;
  const define = (): unknown => defineAgent({ name: "clerk", model: scriptedModel("fine"), plugins: [wrong] });
  expect(define).toThrow(InvalidInputError);
  expect(define).toThrow('plugins[0]: forget is the text "all"; expected a function');
});
