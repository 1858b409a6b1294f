import { beforeEach, expect, test } from "vitest";
import type { AgentMetadata, Artifact, ArtifactStore, Message, MessageStore, StateStore } from "../../src/index.ts";

const message = (id: string): Message => ({ id, role: "user", content: id, createdAt: 1, origin: "user" });
const summary: Message = { id: "s", role: "user", content: "in short", createdAt: 2, origin: "compaction" };

/** What the runtime requires of a custom message store: every write may arrive twice. */
export function messageStoreContract(open: () => MessageStore): void {
  let store: MessageStore;
  const ids = async (agentId = "a"): Promise<string[]> => (await store.getRecent(agentId)).map(({ id }) => id);
  beforeEach(async () => {
    store = open();
    await store.append("a", ["m1", "m2", "m3", "m4"].map(message));
    await store.append("b", [message("m1")]);
  });

  test("keeps messages complete and in order, separately for each conversation", async () => {
    expect(await store.getRecent("a")).toEqual(["m1", "m2", "m3", "m4"].map(message));
    expect(await ids("b")).toEqual(["m1"]);
    expect(await ids("nobody")).toEqual([]);
  });

  test("returns the newest messages up to a limit, oldest first", async () => {
    const recent = await store.getRecent("a", { maxMessages: 2 });
    expect(recent.map(({ id }) => id)).toEqual(["m3", "m4"]);
    expect(await store.getRecent("a", { maxMessages: 0 })).toEqual([]);
    expect(await store.getRecent("a", { maxMessages: 9 })).toHaveLength(4);
  });

  test("stores a message that arrives twice once, at its first position", async () => {
    await store.append("a", ["m3", "m4", "m5"].map(message));
    expect(await ids()).toEqual(["m1", "m2", "m3", "m4", "m5"]);
  });

  test("puts the summary of a compaction once, before the remaining messages", async () => {
    for (const _time of [1, 2]) await store.compact("a", { through: "m3", summary, kept: ["m2"] });
    expect(await store.getRecent("a")).toEqual([summary, message("m2"), message("m4")]);
    expect(await ids("b")).toEqual(["m1"]);
  });

  test("removes the first summary at a second compaction", async () => {
    await store.compact("a", { through: "m2", summary, kept: [] });
    await store.compact("a", { through: "m3", summary: { ...summary, id: "s2" }, kept: [] });
    expect(await ids()).toEqual(["s2", "m4"]);
    await store.compact("a", { through: "m4", summary: null, kept: [] });
    expect(await ids()).toEqual([]);
  });

  test("ignores a compaction of messages that were already removed", async () => {
    await store.compact("a", { through: "m0", summary, kept: [] });
    expect(await ids()).toEqual(["m1", "m2", "m3", "m4"]);
  });

  test("clears one conversation only", async () => {
    await store.clear?.("a");
    expect(await ids()).toEqual([]);
    expect(await ids("b")).toEqual(["m1"]);
  });
}

const artifact = (name: string, version: number): Artifact => ({
  artifactId: `${name}-${version}`,
  name,
  version,
  contentType: "text/plain",
  size: 3,
  createdAt: 1,
  turnId: "a#1",
  callId: null,
  content: `v${version}`,
});

export function artifactStoreContract(open: () => ArtifactStore): void {
  test("keeps every version, by id and by name, separately for each conversation", async () => {
    const store = open();
    for (const version of [1, 2, 2]) await store.save("a", artifact("plan", version));
    await store.save("b", artifact("plan", 7));
    expect(await store.get("a", "plan-1")).toEqual(artifact("plan", 1));
    expect(await store.get("a", "plan")).toEqual(artifact("plan", 2));
    expect(await store.get("a", "plan", 1)).toEqual(artifact("plan", 1));
    expect(await store.get("a", "plan", 7)).toBeUndefined();
    const list = await store.list("a");
    expect(list.map(({ artifactId }) => artifactId)).toEqual(["plan-1", "plan-2"]);
    expect(list[0]).not.toHaveProperty("content");
    await store.clear?.("a");
    expect(await store.list("a")).toEqual([]);
    expect(await store.list("b")).toHaveLength(1);
  });
}

export function stateStoreContract(open: () => StateStore): void {
  test("keeps the latest state of each agent", async () => {
    const store = open();
    const state: AgentMetadata = {
      agentId: "a",
      createdAt: "2026-01-01T00:00:00.000Z",
      lastActivity: "2026-01-01T00:00:00.000Z",
      turnCount: 0,
      status: "ready",
      metadata: { room: "blue" },
    };
    await store.save("a", state);
    await store.save("a", { ...state, turnCount: 1 });
    await store.save("b", { ...state, agentId: "b" });
    expect(await store.load("a")).toEqual({ ...state, turnCount: 1 });
    expect(await store.load("nobody")).toBeUndefined();
  });
}
