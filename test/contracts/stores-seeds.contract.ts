import { expect, test } from "vitest";
import type { Message } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { messageOf, note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "./names.ts";
import { accountOf, here, identityOf, agentKey, LEASE_MS, Owner } from "./stores-fixtures.ts";

const seeds: readonly Message[] = [
  messageOf("seed:0", "a\0b \ud800"),
  { id: "seed:1", role: "assistant", content: [{ type: "text", text: "'; --" }], createdAt: NOW, origin: "model" },
  messageOf("seed:2", ""),
];
const seeded = { type: "conversation.seeded", seq: 1, at: NOW, epoch: 1, messageIds: ["seed:0", "seed:1", "seed:2"] };

export function seedsContract(subject: () => Stores): void {
  const rows = async () =>
    (await subject().readTree(TENANT, ROOT, 0, 100)).map(({ agentId, entries }) => [agentId, entries]);

  test("a new agent has its conversation from the start, in the first row of its journal", async () => {
    const account = accountOf(`agent:${ROOT}`, { maxTokens: 9 });
    const { created, record } = await subject().createAgent(identityOf(), account, { messages: seeds });
    expect(created).toBe(true);
    expect(record).toMatchObject({ status: "created", openTurnId: null, turnCount: 0 });
    expect(await subject().messages(agentKey())).toEqual(seeds);
    expect(await subject().messages(agentKey(), { maxMessages: 1 })).toEqual(seeds.slice(2));
    expect(await subject().messagesById(agentKey(), ["seed:1"])).toEqual(seeds.slice(1, 2));
    expect(await rows()).toEqual([[ROOT, [seeded]]]);
    expect((await subject().readJournal(agentKey(), 1)).map(({ entries }) => entries)).toEqual([[seeded]]);
    expect(await subject().accounts(TENANT, ROOT)).toHaveLength(1);
    expect(await subject().unattended(TENANT, { processId: here.processId, leaseMs: LEASE_MS }, NOW)).toEqual([]);
    const [{ cursor } = { cursor: -1 }] = await subject().readJournal(agentKey(), 1);
    expect((await subject().treeHead(TENANT, ROOT))?.cursor).toBe(cursor);
  });

  test("its first owner goes on after that row", async () => {
    await subject().createAgent(identityOf(), null, { messages: seeds });
    await subject().registerProcess(here, NOW);
    const taken = await subject().acquire(agentKey(), here.processId, LEASE_MS, NOW);
    expect(taken).toMatchObject({ type: "acquired", epoch: 1, seq: 1, at: NOW });
    await subject().release(agentKey(), 1);
    const owner = await new Owner(subject(), agentKey()).acquire();
    const { cursor } = await owner.commit({
      entries: [note("next")],
      messages: [messageOf("m1"), messageOf("seed:0")],
    });
    expect(await subject().messages(agentKey())).toEqual([...seeds, messageOf("m1")]);
    expect((await subject().readJournal(agentKey(), 2)).map((row) => row.cursor)).toEqual([cursor]);
    expect(await subject().readJournal(agentKey(), 1)).toHaveLength(2);
  });

  test("an existing agent is not seeded, also after its conversation was cleared", async () => {
    await subject().createAgent(identityOf("bare"), null);
    expect(await subject().createAgent(identityOf("bare"), null, { messages: seeds })).toMatchObject({
      created: false,
    });
    expect(await subject().messages(agentKey("bare"))).toEqual([]);
    expect(await subject().readJournal(agentKey("bare"), 1)).toEqual([]);
    await subject().createAgent(identityOf(), null, { messages: seeds });
    expect(await subject().createAgent(identityOf(), null, { messages: [messageOf("other")] })).toMatchObject({
      created: false,
    });
    expect(await subject().messages(agentKey())).toEqual(seeds);
    const owner = await new Owner(subject(), agentKey()).acquire();
    await owner.commit({ entries: [note("cleared")], cleared: "conversation" });
    await subject().createAgent(identityOf(), null, { messages: seeds });
    expect(await subject().messages(agentKey())).toEqual([]);
    expect(await rows()).toHaveLength(2);
  });

  test("of many concurrent creations of one agent, one seeds it", async () => {
    const all = Array.from({ length: 8 }, (_, index) => [messageOf(`of ${index}`), messageOf(`and ${index}`)]);
    const outcomes = await Promise.all(all.map((own) => subject().createAgent(identityOf(), null, { messages: own })));
    const winner = outcomes.findIndex(({ created }) => created);
    expect(outcomes.filter(({ created }) => created)).toHaveLength(1);
    expect(await subject().messages(agentKey())).toEqual(all[winner]);
    expect(await rows()).toHaveLength(1);
  });

  test("an exported and imported tree keeps the seeded conversation", async () => {
    await subject().createAgent(identityOf(), null, { messages: seeds });
    const tree = await subject().exportTree(TENANT, ROOT);
    if (!tree) throw new Error("the tree is missing");
    expect(tree.rows).toMatchObject([{ entries: [seeded], messages: seeds }]);
    await subject().registerProcess(here, NOW);
    expect(await subject().importTree(JSON.parse(JSON.stringify(tree)), here.processId)).toBe("imported");
    expect(await subject().exportTree(TENANT, ROOT)).toEqual(tree);
    expect(await subject().messages(agentKey())).toEqual(seeds);
    expect(await subject().unattended(TENANT, { processId: here.processId, leaseMs: LEASE_MS }, NOW)).toEqual([]);
  });
}
