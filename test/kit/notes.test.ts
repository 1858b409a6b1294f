import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createRuntime, defineAgent, memoryStores } from "../../src/index.ts";
import { fileNotes, memoryNotes, notes, type NotesKey, type NotesStore } from "../../src/kit/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { type Calling, emptyFolder, oneByOne, resultsOf } from "./kit-runs.ts";

const add = (text: string): Calling => ({ name: "add_note", arguments: { text } });
const read = (query?: string): Calling => ({ name: "read_notes", arguments: query === undefined ? {} : { query } });
const remove = (id: string): Calling => ({ name: "remove_note", arguments: { id } });

interface Who {
  readonly ownerId?: string;
  readonly tenant?: string;
  readonly agentId?: string;
}

/** The results of calls of an agent with notes of its owner. */
async function asOwner(store: NotesStore, calls: readonly Calling[], { ownerId, tenant, agentId = "clerk-1" }: Who) {
  const model = scriptedModel(oneByOne(calls));
  const agents = [defineAgent({ name: "clerk", model, plugins: [notes({ scope: "owner", store })] })];
  const runtime = await createRuntime({ agents, ...(tenant === undefined ? {} : { tenant }) });
  const agent = await runtime.agent("clerk", { agentId, ...(ownerId === undefined ? {} : { ownerId }) });
  await agent.start();
  await agent.executeTurn("Go.").result;
  const texts = await toolTextsOf(agent);
  await runtime.shutdown();
  return texts;
}

describe('notes({ scope: "agent" })', () => {
  test("outlast turns and restarts, can be searched and removed, and belong to one agent", async () => {
    const equipment = { plugins: [notes({ scope: "agent" })], runtime: { stores: memoryStores() } };
    const added = await resultsOf([add("Ada likes tea."), add("Ben likes coffee.")], equipment);
    expect(added[0]).toBe("Noted (clerk-1#1:1:0).");
    const [all, tea] = await resultsOf([read(), read("TEA cocoa")], equipment);
    expect(all?.split("\n")).toHaveLength(2);
    expect(tea).toMatch(/^- Ada likes tea\. \(clerk-1#1:1:0, \d{4}-\d\d-\d\d\)$/);
    const [, left, none] = await resultsOf([remove("clerk-1#1:1:0"), read(), read("tea")], equipment);
    expect(left).toMatch(/^- Ben likes coffee\./);
    expect(none).toBe("There are no notes.");
    expect(await resultsOf([read()], { ...equipment, agentId: "clerk-2" })).toEqual(["There are no notes."]);
  });

  test("notes of one answer are all kept", async () => {
    const runtime = await createRuntime({
      agents: [
        defineAgent({
          name: "clerk",
          model: scriptedModel([{ toolCalls: ["a", "b", "c"].map(add) }, { toolCalls: [read()] }, "Done."]),
          plugins: [notes({ scope: "agent" })],
        }),
      ],
    });
    const agent = await runtime.agent("clerk");
    await agent.start();
    await agent.executeTurn("Go.").result;
    expect((await toolTextsOf(agent)).at(-1)?.split("\n")).toHaveLength(3);
    await runtime.shutdown();
  });
});

describe.each([
  { kind: "memoryNotes()", create: () => memoryNotes() },
  { kind: "fileNotes()", create: () => fileNotes(join(emptyFolder(), "new")) },
])('notes({ scope: "owner" }) in $kind', ({ create }) => {
  test("all agents of an owner share them, and no other owner or tenant sees them (S14)", async () => {
    const store = create();
    await asOwner(store, [add("Ada likes tea.")], { ownerId: "ada", agentId: "first" });
    const shared = await asOwner(store, [read()], { ownerId: "ada", agentId: "second" });
    expect(shared[0]).toMatch(/^- Ada likes tea\./);
    const strangers: Who[] = [
      { ownerId: "ben" },
      { ownerId: "ada", tenant: "other" },
      { ownerId: "ada/../ada" },
      { ownerId: "Ada" },
      { ownerId: '","ada' },
    ];
    for (const stranger of strangers) {
      expect(await asOwner(store, [read(), remove("first#1:1:0")], stranger)).toContain("There are no notes.");
    }
    expect(await asOwner(store, [read()], { ownerId: "ada" })).toEqual(shared);
  });

  test("an agent without an owner has none, and adds none", async () => {
    const store = create();
    const results = await asOwner(store, [add("x"), read(), remove("x")], {});
    for (const result of results) expect(result).toContain("This agent has no owner");
    expect(await asOwner(store, [read()], { ownerId: "null" })).toEqual(["There are no notes."]);
  });

  test("adding again changes nothing; what is removed or cleared is gone", async () => {
    const store = create();
    const key: NotesKey = { tenant: "t", scope: "owner", id: "../../../etc" };
    const note = { id: "../1", text: "first", createdAt: 1 };
    await Promise.all([store.add(key, note), store.add(key, note)]);
    await store.add(key, { ...note, text: "second" });
    await store.add(key, { id: "2", text: "two", createdAt: 2 });
    expect((await store.list(key)).map(({ text }) => text).sort()).toEqual(["first", "two"]);
    await store.remove(key, "../1");
    await store.remove(key, "unknown");
    expect(await store.list(key)).toEqual([{ id: "2", text: "two", createdAt: 2 }]);
    await store.clear(key);
    expect(await store.list(key)).toEqual([]);
  });
});

test("fileNotes() writes below its folder only, under hashes, for this user, and keeps no byte of a removed note (S6)", async () => {
  const root = emptyFolder();
  const store = fileNotes(root);
  const key: NotesKey = { tenant: "..", scope: "owner", id: "/etc/passwd\n" };
  await store.add(key, { id: "a/b", text: "canary", createdAt: 1 });
  const files = readdirSync(root, { recursive: true, encoding: "utf8" });
  expect(files.every((name) => /^[0-9a-f]{64}(?:\/[0-9a-f]{64}\.json)?$/.test(name))).toBe(true);
  const [file = ""] = files.filter((name) => name.endsWith(".json"));
  expect(statSync(join(root, file)).mode & 0o077).toBe(0);
  expect(readFileSync(join(root, file), "utf8")).toContain("canary");
  await store.remove(key, "a/b");
  expect(readdirSync(root, { recursive: true, encoding: "utf8" })).toHaveLength(1);
});

test("a scope without its store, or with one too many, is refused at the start", () => {
  expect(() => notes({ scope: "owner" })).toThrow('scope "owner" needs a store');
  expect(() => notes({ scope: "agent", store: memoryNotes() })).toThrow('scope "agent" takes no store');
  for (const wrong of [undefined, null, 1, "", " ", "a\0", {}]) {
    expect(() => fileNotes(wrong as string)).toThrow(/fileNotes\(\) expects the path of a folder/);
  }
});
