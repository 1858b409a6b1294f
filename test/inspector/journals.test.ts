import { describe, expect, it } from "vitest";
import { createRuntime, memoryStores, type Stores } from "../../src/index.ts";
import { Feed } from "../../src/inspector/feed/feed.ts";
import { Journals } from "../../src/inspector/feed/journals.ts";
import { transitionsOf } from "../../src/inspector/replay/machines.ts";
import { busyTeam, overheard, storesNames, sharedStoresOf } from "./feed-fixtures.ts";

const tenant = "default";
const key = { tenant, agentId: "desk" };

async function worked(stores: Stores, { turns, steps = 3 }: { turns: number; steps?: number }): Promise<void> {
  const runtime = await createRuntime({ agents: [busyTeam(steps)], stores });
  const agent = await runtime.agent("lead", { agentId: "desk", budget: { maxSteps: 1_000 } });
  await agent.start();
  for (let turn = 0; turn < turns; turn += 1) await agent.executeTurn("go").result;
  await runtime.shutdown();
}

/** The same stores, which record the start of each journal read and the ids of each message read. */
function counted(stores: () => Stores) {
  const reads: number[] = [];
  const messages: unknown[] = [];
  const told = overheard(stores, (name, asked) => {
    if (name === "readJournal") reads.push(Number(asked[1]));
    if (name === "messagesById") messages.push(asked[1]);
    if (name === "messages") messages.push("all");
  });
  return { stores: told, reads, messages };
}

describe.each(storesNames)("journals of a feed over %s", (name) => {
  const newPlace = sharedStoresOf(name);

  it("are read once, and then only the newer entries", async () => {
    const place = newPlace();
    const written = place.open();
    await worked(place.open(), { turns: 1 });
    const { stores, reads } = counted(() => written);
    const feed = new Feed();
    feed.add({ stores, tenant });
    const [first] = await feed.prompts("desk", "desk");
    await feed.messages("desk", "desk", {});
    await feed.prompt("desk", "desk", first?.seq ?? 0);
    await feed.machines("desk", "desk", null);
    expect(reads[0]).toBe(1);
    expect(reads.slice(1)).toHaveLength(3);
    const head = (await written.readJournal(key, 1)).flatMap(({ entries }) => entries).at(-1)?.seq ?? 0;
    expect(reads.slice(1).every((from) => from === head)).toBe(true);
    const calls = (await feed.prompts("desk", "desk")).length;
    await worked(place.open(), { turns: 1 });
    reads.length = 0;
    expect((await feed.prompts("desk", "desk")).length).toBeGreaterThan(calls);
    expect(reads).toEqual([head]);
    const last = (await feed.messages("desk", "desk", {})).items.at(-1);
    expect(last?.message.content).toBe("done");
    if (name !== "memory") await written.close();
  });

  it("a page of messages reads only the messages of that page", async () => {
    const place = newPlace();
    const written = place.open();
    await worked(place.open(), { turns: 2 });
    const { stores, messages } = counted(() => written);
    const feed = new Feed();
    feed.add({ stores, tenant });
    const page = await feed.messages("desk", "desk", { limit: 3 });
    const older = await feed.messages("desk", "desk", { limit: 2, before: page.next ?? "" });
    const read = [older, page].map(({ items }) => items.map(({ message }) => message.id));
    expect(messages).toEqual(read.toReversed());
    expect(read.flat()).toEqual((await written.messages(key)).slice(-5).map(({ id }) => id));
    if (name !== "memory") await written.close();
  });
});

describe("journals", () => {
  it("that two concurrent calls continue contain each row once", async () => {
    const stores = memoryStores();
    await worked(stores, { turns: 1 });
    const journals = new Journals();
    await journals.read(stores, key);
    await worked(stores, { turns: 1 });
    const [one, other] = await Promise.all([journals.read(stores, key), journals.read(stores, key)]);
    expect(one).toBe(other);
    expect(one.rows).toEqual(await stores.readJournal(key, 1));
    const [first, second] = await Promise.all([one.machines(), one.machines()]);
    expect(first).toBe(second);
    expect(first.transitions).toEqual(transitionsOf("desk", one.rows));
  });

  it("of stores with a different history are read again", async () => {
    const [one, other] = [memoryStores(), memoryStores()];
    await worked(one, { turns: 2 });
    await worked(other, { turns: 1, steps: 5 });
    let present: Stores = one;
    const { stores, reads } = counted(() => present);
    const journals = new Journals();
    expect((await journals.read(stores, key)).rows).toEqual(await one.readJournal(key, 1));
    present = other;
    reads.length = 0;
    expect((await journals.read(stores, key)).rows).toEqual(await other.readJournal(key, 1));
    expect(reads.at(-1)).toBe(1);
  });

  it("of agents that were not read for long are dropped", async () => {
    const written = memoryStores();
    const runtime = await createRuntime({ agents: [busyTeam(1)], stores: written });
    const ids = Array.from({ length: 34 }, (_, index) => `desk-${index}`);
    for (const agentId of ids) await (await runtime.agent("lead", { agentId })).start();
    const { stores, reads } = counted(() => written);
    const journals = new Journals();
    for (const agentId of ids) await journals.read(stores, { tenant, agentId });
    reads.length = 0;
    for (const agentId of ids.toReversed()) await journals.read(stores, { tenant, agentId });
    expect(reads.filter((from) => from === 1)).toHaveLength(2);
    await runtime.shutdown();
  });
});
