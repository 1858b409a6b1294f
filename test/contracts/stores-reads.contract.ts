import { expect, test } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import type { NewArtifact, Stores } from "../../src/stores/index.ts";
import { messageOf, note, starting } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { identityOf, agentKey, type Owner, openAgent } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

/** Texts that a store without proper escaping would change. */
const hostileTexts = ["", "a\0b", "\ud800 half", "\u2028\u2029", "'; DROP TABLE agents; --", "🙂".repeat(3), "\\u0041"];

function artifactOf(artifactId: string, content: string): NewArtifact {
  return {
    artifactId,
    name: artifactId,
    contentType: "text/plain",
    size: content.length,
    createdAt: NOW,
    turnId: TURN,
    callId: `${TURN}:1:0`,
    content,
  };
}

async function writeNotes(owner: Owner, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) await owner.commit({ entries: [note(`note ${index}`)] });
}

export function readsContract(subject: () => Stores): void {
  test("a single account and a single timer read alone equal those in the lists", async () => {
    await openAgent(subject(), { turnBudget: { deadline: NOW + 500 } });
    for (const account of await subject().accounts(TENANT, ROOT)) {
      expect(await subject().account(TENANT, account.id)).toEqual(account);
    }
    const timers = await subject().dueTimers(NOW + 500, 10);
    expect(timers.length).toBeGreaterThan(0);
    for (const timer of timers) expect(await subject().timer(timer, timer.id)).toEqual(timer);
    expect(await subject().account(TENANT, "agent:nobody")).toBeUndefined();
    expect(await subject().account("another", `agent:${ROOT}`)).toBeUndefined();
    expect(await subject().timer(agentKey(), "none")).toBeUndefined();
    expect(await subject().timer(agentKey("nobody"), timers[0]?.id ?? "")).toBeUndefined();
  });

  test("of many agents those with a non-empty inbox are returned, in the given tenant", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `agent-${index}`);
    for (const name of names) await openAgent(subject(), { agentId: name });
    const keys = [
      ...names.map((name) => agentKey(name)),
      agentKey("nobody"),
      { tenant: "another", agentId: "agent-3" },
    ];
    expect(await subject().posted(keys)).toEqual([]);
    expect(await subject().posted([])).toEqual([]);
    for (const name of ["agent-3", "agent-7", "agent-9"]) await subject().pause(agentKey(name), "ann", NOW);
    expect(await subject().posted(keys)).toEqual([agentKey("agent-3"), agentKey("agent-7"), agentKey("agent-9")]);
    expect(await subject().posted([agentKey("agent-9"), agentKey("agent-1")])).toEqual([agentKey("agent-9")]);
  });

  test("an agent reads back as it was created", async () => {
    const identity = identityOf("full", {
      rootAgentId: "root",
      parentAgentId: "root",
      parentTurnId: "root#1",
      parentStep: 2,
      parentCallId: "root#1:2:0",
      depth: 1,
      ownerId: "ann",
      sessionId: "s1",
      parentAccountId: "turn:root#1",
      grantedTools: ["search"],
      turnLimits: { maxSteps: 3 },
      metadata: { nested: { list: [1, null, "x"] }, constructor: "plain data" },
    });
    await subject().createAgent(identityOf("root"), null);
    const { record } = await subject().createAgent(identity, null);
    expect(record).toMatchObject(identity);
    expect(await subject().readAgent(agentKey("full"))).toEqual(record);
    expect(await subject().readAgent(agentKey("nobody"))).toBeUndefined();
  });

  test("agents are listed by their ids, in pages, and by root, session, owner and rank", async () => {
    const mine = { ownerId: "ann", sessionId: "s1" };
    for (const agentId of ["c", "a", "b", "d"]) await subject().createAgent(identityOf(agentId, mine), null);
    const child = { ...mine, rootAgentId: "a", parentAgentId: "a", parentTurnId: "a#1", depth: 1 };
    await subject().createAgent(identityOf("a~1", child), null);
    await subject().createAgent(identityOf("e", { ownerId: "bob", sessionId: "s2" }), null);
    const list = async (filter: object) =>
      (await subject().listAgents({ tenant: TENANT, ...filter })).map((record) => record.agentId);
    expect(await list({})).toEqual(["a", "a~1", "b", "c", "d", "e"]);
    expect(await list({ limit: 2 })).toEqual(["a", "a~1"]);
    expect(await list({ limit: 2, after: "a~1" })).toEqual(["b", "c"]);
    expect(await list({ limit: 0 })).toEqual([]);
    expect(await list({ rootAgentId: "a" })).toEqual(["a", "a~1"]);
    expect(await list({ rootAgentId: "unknown" })).toEqual([]);
    expect(await list({ ownerId: "bob" })).toEqual(["e"]);
    expect(await list({ sessionId: "s1", rootsOnly: true })).toEqual(["a", "b", "c", "d"]);
    expect(await list({ sessionId: "s1", ownerId: "bob" })).toEqual([]);
    await expect(list({ limit: -1 })).rejects.toThrow(InvalidInputError);
    await expect(list({ limit: 1.5 })).rejects.toThrow(/limit is 1.5/);
  });

  test("a journal is read from any seq, in complete rows", async () => {
    const owner = await openAgent(subject());
    await owner.commit({ entries: [note("2"), note("3")] });
    await owner.commit({ entries: [note("4")] });
    const seqs = async (from: number) =>
      (await subject().readJournal(agentKey(), from)).map((row) => row.entries.map((entry) => entry.seq));
    expect(await seqs(1)).toEqual([[1], [2, 3], [4]]);
    expect(await seqs(3)).toEqual([[2, 3], [4]]);
    expect(await seqs(4)).toEqual([[4]]);
    expect(await seqs(5)).toEqual([]);
    expect(await subject().readJournal(agentKey("nobody"), 1)).toEqual([]);
  });

  test("a tree is read in pages after any cursor, without gaps or duplicates, over all its agents", async () => {
    const root = await openAgent(subject());
    const kid = await openChild(root, "kid");
    await openAgent(subject(), { agentId: "other" });
    for (let round = 0; round < 4; round += 1) {
      await writeNotes(root, 1);
      await writeNotes(kid, 2);
    }
    const all = await subject().readTree(TENANT, ROOT, 0, 1000);
    expect(all.map((row) => row.agentId).slice(-3)).toEqual([ROOT, kid.key.agentId, kid.key.agentId]);
    expect(all.map((row) => row.cursor)).toEqual(all.map((row) => row.cursor).toSorted((a, b) => a - b));
    const paged = [];
    for (let after = 0; ; ) {
      const page = await subject().readTree(TENANT, ROOT, after, 4);
      if (page.length === 0) break;
      paged.push(...page);
      after = page.at(-1)?.cursor ?? after;
    }
    expect(paged).toEqual(all);
    expect(await subject().readTree(TENANT, ROOT, all.at(-1)?.cursor ?? 0, 10)).toEqual([]);
  });

  test("messages are returned in order; the newest few also in order; by id in the requested order", async () => {
    const owner = await openAgent(subject());
    await owner.commit({ entries: [starting], messages: [messageOf("z"), messageOf("a")] });
    await writeNotes(owner, 2);
    await owner.commit({ entries: [starting], messages: [messageOf("m"), messageOf("a", "a second time")] });
    const ids = async (maxMessages?: number) =>
      (await subject().messages(agentKey(), maxMessages === undefined ? {} : { maxMessages })).map(({ id }) => id);
    expect(await ids()).toEqual(["z", "a", "m"]);
    expect(await ids(2)).toEqual(["a", "m"]);
    expect(await ids(99)).toEqual(["z", "a", "m"]);
    expect(await ids(0)).toEqual([]);
    const found = await subject().messagesById(agentKey(), ["m", "unknown", "z", "a"]);
    expect(found).toEqual([messageOf("m"), messageOf("z"), messageOf("a")]);
    await expect(ids(-1)).rejects.toThrow(/maxMessages is -1/);
  });

  test("any text reads back unchanged", async () => {
    const owner = await openAgent(subject());
    const messages = hostileTexts.map((text, index) => messageOf(`m${index}`, text));
    const artifacts = hostileTexts.map((text, index) => artifactOf(`a${index}`, text));
    await owner.commit({ entries: hostileTexts.map(note), messages, artifacts });
    expect(await subject().messages(agentKey())).toEqual(messages);
    expect(await subject().artifact(agentKey(), "a1")).toEqual({ ...artifacts[1], version: 1 });
    const [row] = await subject().readJournal(agentKey(), 2);
    expect(row?.entries.map((entry) => entry.type === "warning" && entry.message)).toEqual(hostileTexts);
  });

  test("artifacts are listed without content; one saved again replaces the first", async () => {
    const owner = await openAgent(subject());
    await owner.commit({ entries: [starting], artifacts: [artifactOf("b", "old"), artifactOf("a", "x")] });
    await owner.commit({ entries: [starting], artifacts: [artifactOf("b", "newer")] });
    const { content: _content, ...description } = artifactOf("b", "newer");
    expect(await subject().artifacts(agentKey())).toMatchObject([description, { artifactId: "a" }]);
    expect(JSON.stringify(await subject().artifacts(agentKey()))).not.toContain('content"');
    expect(await subject().artifact(agentKey(), "b")).toEqual({ ...artifactOf("b", "newer"), version: 1 });
    expect(await subject().artifact(agentKey(), "unknown")).toBeUndefined();
    expect(await subject().artifacts(agentKey("nobody"))).toEqual([]);
  });
}
