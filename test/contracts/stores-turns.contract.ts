import { expect, test } from "vitest";
import { InvalidInputError, UnsupportedError } from "../../src/errors/index.ts";
import { type TurnRecord, turnIdOf } from "../../src/state/index.ts";
import { formatTurnCursor, type Stores, type TurnCommand, type TurnFilter } from "../../src/stores/index.ts";
import { memoryStores } from "../../src/stores/memory.ts";
import { messageOf, note, turnEnded } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { here, identityOf, agentKey, Owner, openAgent, ready } from "./stores-fixtures.ts";
import { exported } from "./team-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

const command: TurnCommand = { input: "go", actorId: null, limits: null, ifBusy: "queue" };
const keyed: TurnCommand = { ...command, key: { text: "k1", hash: "h1" } };

/** An agent that is held by this process, of this owner and session. */
async function agentOf(stores: Stores, agentId: string, of: { ownerId?: string; sessionId?: string }): Promise<Owner> {
  await stores.createAgent(identityOf(agentId, of), null);
  const owner = await new Owner(stores, agentKey(agentId)).acquire();
  await owner.commit({ owned: ready });
  return owner;
}

async function endTurn(owner: Owner, number: number, at: number, changes: Parameters<typeof turnEnded>[0] = {}) {
  const closedTurnId = turnIdOf(owner.key.agentId, number);
  await owner.commit({ entries: [turnEnded({ turnId: closedTurnId, number, ...changes })], closedTurnId }, at);
}

export function turnsContract(subject: () => Stores): void {
  const listed = (filter: Omit<TurnFilter, "tenant"> = {}): Promise<TurnRecord[]> =>
    subject().turns({ tenant: TENANT, ...filter });
  const idsOf = async (filter: Omit<TurnFilter, "tenant"> = {}): Promise<string[]> =>
    (await listed(filter)).map(({ turnId }) => turnId);

  test("a turn is listed from the command that opens it to long after its end", async () => {
    const owner = await agentOf(subject(), "desk", { ownerId: "ann", sessionId: "s1" });
    await subject().openTurn(agentKey(), keyed, NOW + 1);
    const turn = {
      tenant: TENANT,
      agentId: ROOT,
      turnId: TURN,
      number: 1,
      sessionId: "s1",
      ownerId: "ann",
      key: "k1",
      openedAt: NOW + 1,
    };
    expect(await listed()).toEqual([{ ...turn, status: "open", stopReason: null, changedAt: NOW + 1 }]);
    await endTurn(owner, 1, NOW + 5, { outcome: "stopped", stopReason: "steps_limit" });
    expect(await listed()).toEqual([{ ...turn, status: "stopped", stopReason: "steps_limit", changedAt: NOW + 5 }]);
    await owner.commit({ entries: [note("later")], cleared: "all" }, NOW + 9);
    expect(await listed()).toMatchObject([{ turnId: TURN, status: "stopped", changedAt: NOW + 5 }]);
  });

  test("a look at a turn shows its end, with what the result is made of", async () => {
    const look = (turnId: string, after?: number) => subject().lookAtTurn(agentKey(), turnId, after);
    expect(await look(TURN)).toBeUndefined();
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), command, NOW);
    await subject().openTurn(agentKey(), command, NOW);
    for (const turnId of [TURN, `${ROOT}#2`, `${ROOT}#3`]) {
      expect(await look(turnId, 0)).toMatchObject({ record: { openTurnId: TURN }, past: undefined });
    }
    const before = owner.seq;
    const outputMessageId = `${TURN}:"1"`;
    const messages = [messageOf(`${TURN}:0`), messageOf(outputMessageId)];
    const settling = { messages, closedTurnId: TURN };
    await owner.commit({ entries: [note("it begins"), turnEnded({ outputMessageId })], ...settling });
    await endTurn(owner, 2, NOW + 1);
    for (const after of [undefined, 0, before]) {
      expect(await look(TURN, after)).toMatchObject({
        record: { agentId: ROOT, openTurnId: null },
        past: { entries: [{ type: "turn.ended", turnId: TURN }], answer: messages[1], account: { id: `turn:${TURN}` } },
      });
      const second = await look(`${ROOT}#2`, after);
      expect(second?.past).toMatchObject({ entries: [{ turnId: `${ROOT}#2` }] });
      expect([second?.past?.answer, second?.past?.account]).toEqual([undefined, undefined]);
    }
  });

  test("queued turns begin one after the other, each when the one before it ends", async () => {
    const owner = await agentOf(subject(), "desk", {});
    for (const at of [1, 2, 3]) await subject().openTurn(agentKey(), command, NOW + at);
    expect(await listed()).toMatchObject([
      { turnId: `${ROOT}#3`, status: "queued", openedAt: NOW + 3 },
      { turnId: `${ROOT}#2`, status: "queued" },
      { turnId: TURN, status: "open" },
    ]);
    await endTurn(owner, 1, NOW + 4);
    expect(await listed()).toMatchObject([
      { turnId: TURN, status: "completed", changedAt: NOW + 4 },
      { turnId: `${ROOT}#2`, status: "open", openedAt: NOW + 2, changedAt: NOW + 4 },
      { turnId: `${ROOT}#3`, status: "queued", changedAt: NOW + 3 },
    ]);
    await endTurn(owner, 2, NOW + 5, { outcome: "failed", stopReason: "error" });
    await endTurn(owner, 3, NOW + 6);
    expect(await idsOf({ status: "queued" })).toEqual([]);
    expect(await idsOf({ status: "open" })).toEqual([]);
    expect(await idsOf({ status: "failed" })).toEqual([`${ROOT}#2`]);
    expect(await idsOf({ status: "completed" })).toEqual([`${ROOT}#3`, TURN]);
  });

  test("a turn that the agent began by itself is listed too, turns of subagents are not", async () => {
    const owner = await openAgent(subject());
    const kid = await openChild(owner, "kid");
    await endTurn(kid, 1, NOW + 2);
    await owner.commit({ wake: { childId: `${ROOT}~kid`, actorId: null } }, NOW + 3);
    expect(await listed()).toMatchObject([{ turnId: TURN, status: "open", openedAt: NOW + 3, key: null }]);
  });

  test("filters go together, and a tenant sees its own", async () => {
    const ann = await agentOf(subject(), "a", { ownerId: "ann", sessionId: "s1" });
    await agentOf(subject(), "b", { ownerId: "ann", sessionId: "s2" });
    await agentOf(subject(), "c", { ownerId: "bob", sessionId: "s1" });
    for (const [index, agentId] of ["a", "b", "c"].entries()) {
      await subject().openTurn(agentKey(agentId), command, NOW + index);
    }
    await endTurn(ann, 1, NOW + 9);
    expect(await idsOf()).toEqual(["a#1", "c#1", "b#1"]);
    expect(await idsOf({ ownerId: "ann" })).toEqual(["a#1", "b#1"]);
    expect(await idsOf({ sessionId: "s1" })).toEqual(["a#1", "c#1"]);
    expect(await idsOf({ sessionId: "s1", ownerId: "bob" })).toEqual(["c#1"]);
    expect(await idsOf({ agentId: "b" })).toEqual(["b#1"]);
    expect(await idsOf({ agentId: "b", ownerId: "bob" })).toEqual([]);
    expect(await idsOf({ agentId: "nobody" })).toEqual([]);
    expect(await idsOf({ status: "open", ownerId: "ann" })).toEqual(["b#1"]);
    expect(await idsOf({ ownerId: "nobody" })).toEqual([]);
    expect(await subject().turns({ tenant: "other" })).toEqual([]);
  });

  test("pages come without gap or double, also when turns of one moment are many", async () => {
    for (const agentId of ["a", "b", "c"]) {
      const owner = await agentOf(subject(), agentId, { ownerId: "ann" });
      for (let number = 1; number <= 12; number += 1) {
        await subject().openTurn(agentKey(agentId), command, NOW + Math.floor(number / 4));
        if (number % 3 === 0) await endTurn(owner, number / 3, NOW + 5);
      }
    }
    for (const filter of [{}, { ownerId: "ann" }, { agentId: "b" }, { status: "queued" }] as const) {
      const all = await listed({ ...filter, limit: 1000 });
      const sorted = all.toSorted((a, b) => b.changedAt - a.changedAt || (a.turnId < b.turnId ? -1 : 1));
      expect(all).toEqual(sorted);
      const paged: TurnRecord[] = [];
      for (let after: string | undefined; ; ) {
        const page = await listed({ ...filter, limit: 5, after });
        paged.push(...page);
        const last = page.at(-1);
        if (!last) break;
        after = formatTurnCursor(last);
      }
      expect(paged).toEqual(all);
    }
    expect(await listed({ limit: 0 })).toEqual([]);
    await expect(listed({ after: "desk#1" })).rejects.toThrow(InvalidInputError);
    await expect(listed({ limit: -1 })).rejects.toThrow(InvalidInputError);
  });

  test("a place stays valid when its turn has moved, or never was", async () => {
    const owner = await agentOf(subject(), "desk", {});
    for (const at of [1, 2, 3]) await subject().openTurn(agentKey(), command, NOW + at);
    const [, second] = await listed();
    await endTurn(owner, 1, NOW + 4);
    expect(await idsOf({ after: second && formatTurnCursor(second) })).toEqual([]);
    expect(await idsOf({ after: formatTurnCursor({ changedAt: NOW + 4, turnId: "desk#1" }) })).toEqual([
      "desk#2",
      "desk#3",
    ]);
    expect(await idsOf({ after: formatTurnCursor({ changedAt: NOW + 4, turnId: "gone#7" }) })).toEqual(["desk#3"]);
  });

  test("a batch that is undone or stale moves no turn", async () => {
    const owner = await agentOf(subject(), "desk", {});
    await subject().openTurn(agentKey(), command, NOW);
    const batch = owner.batch({ entries: [turnEnded()], closedTurnId: TURN });
    const [stale] = await subject().commit([{ ...batch, epoch: 99 }], NOW + 1);
    expect(stale).toMatchObject({ type: "stale" });
    await expect(
      subject().commit(
        [{ ...batch, expectedSeq: owner.seq, entries: [turnEnded()({ seq: 7, at: NOW, epoch: 1 })] }],
        NOW + 2,
      ),
    ).rejects.toThrow("seq");
    expect(await listed()).toMatchObject([{ status: "open", changedAt: NOW }]);
    await subject().commit([batch], NOW + 3);
    await subject().commit([batch], NOW + 4);
    expect(await listed()).toMatchObject([{ status: "completed", changedAt: NOW + 3 }]);
  });

  test("go with their tree to another store, in the place of those that were there", async () => {
    const source = memoryStores();
    const owner = await agentOf(source, "desk", { ownerId: "ann" });
    for (const at of [1, 2])
      await source.openTurn(agentKey(), { ...command, key: { text: `k${at}`, hash: "h" } }, NOW + at);
    await endTurn(owner, 1, NOW + 3);
    await agentOf(subject(), "desk", { ownerId: "bob" });
    for (const at of [1, 2, 3]) await subject().openTurn(agentKey(), command, NOW + 10 + at);
    await subject().importTree(JSON.parse(JSON.stringify(await exported(source))), here.processId);
    expect(await listed()).toEqual(await source.turns({ tenant: TENANT }));
    expect(await idsOf({ ownerId: "bob" })).toEqual([]);
    expect(await idsOf({ ownerId: "ann", status: "open" })).toEqual(["desk#2"]);
    expect(await subject().openTurn(agentKey(), { ...command, key: { text: "k1", hash: "h" } }, NOW)).toMatchObject({
      type: "known",
      turnId: "desk#1",
    });
    const tree = await exported(subject());
    const foreign = tree.turns.map((turn) => ({ ...turn, agentId: "other" }));
    await expect(subject().importTree({ ...tree, turns: foreign }, here.processId)).rejects.toThrow("belongs to agent");
  });
}

export function turnKeysContract(subject: () => Stores): void {
  test("the same key gives the same turn, also after it ended and its agent was shut down", async () => {
    const owner = await agentOf(subject(), "desk", {});
    expect(await subject().openTurn(agentKey(), keyed, NOW)).toMatchObject({ type: "opened", turnId: TURN });
    const known = { type: "known", turnId: TURN };
    expect(await subject().openTurn(agentKey(), { ...keyed, ifBusy: "refuse" }, NOW)).toMatchObject(known);
    expect(await subject().openTurn(agentKey(), { ...keyed, ifBusy: "supersede" }, NOW)).toMatchObject(known);
    expect(await subject().readAgent(agentKey())).toMatchObject({ abort: null, nextTurnNumber: 2, queuedTurnIds: [] });
    expect(await subject().inbox(agentKey())).toHaveLength(1);
    await endTurn(owner, 1, NOW + 1);
    await owner.commit({ entries: [note("cleared")], cleared: "all", owned: { ...ready, status: "shutdown" } });
    expect(await subject().openTurn(agentKey(), keyed, NOW + 2)).toMatchObject({
      ...known,
      record: { openTurnId: null, status: "shutdown" },
    });
    expect(await subject().openTurn(agentKey(), command, NOW + 2)).toMatchObject({ type: "refused" });
  });

  test("another hash is a conflict, another key or agent another turn", async () => {
    await agentOf(subject(), "desk", {});
    await agentOf(subject(), "other", {});
    await subject().openTurn(agentKey(), keyed, NOW);
    const other = { ...keyed, key: { text: "k1", hash: "h2" } };
    expect(await subject().openTurn(agentKey(), other, NOW)).toEqual({ type: "conflict", turnId: TURN });
    const next = { ...keyed, key: { text: "k2", hash: "h1" } };
    expect(await subject().openTurn(agentKey(), next, NOW)).toMatchObject({ type: "queued", turnId: `${ROOT}#2` });
    expect(await subject().openTurn(agentKey("other"), other, NOW)).toMatchObject({
      type: "opened",
      turnId: "other#1",
    });
    expect(await subject().openTurn(agentKey(), next, NOW)).toMatchObject({ type: "known", turnId: `${ROOT}#2` });
  });

  test("a command for a known turn only opens none", async () => {
    await agentOf(subject(), "desk", {});
    expect(await subject().openTurn(agentKey(), { ...keyed, onlyKnown: true }, NOW)).toMatchObject({ type: "refused" });
    expect(await subject().turns({ tenant: TENANT })).toEqual([]);
    await subject().openTurn(agentKey(), keyed, NOW);
    expect(await subject().openTurn(agentKey(), { ...keyed, onlyKnown: true }, NOW)).toMatchObject({ type: "known" });
  });

  test("many commands at once open one turn", async () => {
    await agentOf(subject(), "desk", {});
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => subject().openTurn(agentKey(), keyed, NOW)));
    expect(outcomes.filter(({ type }) => type === "opened")).toHaveLength(1);
    expect(outcomes.filter(({ type }) => type === "known")).toHaveLength(19);
    expect(await subject().inbox(agentKey())).toHaveLength(1);
    expect(await subject().turns({ tenant: TENANT })).toHaveLength(1);
  });

  test("subagents take none", async () => {
    const owner = await openAgent(subject());
    await openChild(owner, "kid");
    await expect(subject().openTurn(agentKey(`${ROOT}~kid`), keyed, NOW)).rejects.toThrow(UnsupportedError);
  });
}
