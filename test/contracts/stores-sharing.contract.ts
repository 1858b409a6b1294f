import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { messageOf, modelRequested, note, reservationIn, settled, toolStarted } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { approved, opening, requestOf } from "./request-fixtures.ts";
import { sharingQueuedContract } from "./stores-sharing-queued.contract.ts";
import { elsewhere, here, identityOf, agentKey, LEASE_MS, Owner, openAgent } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

/** Two clients of one storage, as in two processes. */
export interface TwoClients {
  readonly mine: Stores;
  readonly theirs: Stores;
}

const seedsOf = (who: string) => [messageOf("seed:0", who), messageOf("seed:1", who)];

/** Model calls of the agent, one after the other. */
async function use(owner: Owner, times: number): Promise<void> {
  const { agentId } = owner.key;
  const turnId = `${agentId}#1`;
  const request = modelRequested({ accountId: `turn:${turnId}`, agentId }, { turnId });
  for (let count = 0; count < times; count += 1) {
    const reservation = reservationIn(await owner.commit({ entries: [request] }));
    await owner.commit(settled(reservation, { tokens: 10, costMicros: 1 }));
  }
}

export function sharingContract(title: string, open: () => TwoClients): void {
  describe(`two clients of one ${title}`, () => {
    let mine: Stores;
    let theirs: Stores;
    beforeEach(() => {
      ({ mine, theirs } = open());
    });
    afterEach(async () => {
      await mine.close();
      await theirs.close();
    });

    sharingQueuedContract(() => ({ mine, theirs }));

    test("see each other's commands and moves in the next commit", async () => {
      const owner = await openAgent(mine, { budget: { maxTokens: 1000 } });
      const reservation = reservationIn(await owner.commit({ entries: [modelRequested()] }));
      await theirs.pause(agentKey(), "ann", NOW);
      const start = toolStarted();
      expect((await owner.commit({ entries: [start] })).entries).toMatchObject([{ reason: "paused", agentId: ROOT }]);
      await theirs.resume(agentKey(), "ann", NOW);
      expect((await owner.commit({ entries: [start] })).entries).toMatchObject([{ type: "tool.started" }]);

      await theirs.registerProcess(elsewhere, NOW + 2 * LEASE_MS);
      const taken = await new Owner(theirs, agentKey()).acquire(elsewhere, NOW + 2 * LEASE_MS);
      await taken.commit(settled(reservation, { tokens: 900 }));
      expect(await mine.commit([owner.batch({ entries: [note("late")] })], NOW)).toEqual([
        { type: "stale", epoch: taken.epoch, seq: taken.seq },
      ]);
      const back = await new Owner(mine, agentKey()).acquire(undefined, NOW + 9 * LEASE_MS);
      const refused = await back.commit({ entries: [modelRequested()] });
      expect(refused.entries).toMatchObject([{ reason: "budget", limit: "maxTokens" }]);
    });

    test("a cursor is unique among all writers, and a reader that continues from any cursor misses nothing", async () => {
      const root = await openAgent(mine);
      const kid = await openChild(root, "kid");
      const other = await new Owner(theirs, kid.key).acquire();
      const read: number[] = [];
      let isOver = false;
      const reading = (async () => {
        for (let wasOver = false; !wasOver; ) {
          wasOver = isOver;
          read.push(...(await theirs.readTree(TENANT, ROOT, read.at(-1) ?? 0, 7)).map((row) => row.cursor));
        }
      })();
      const cursors: number[] = [];
      const write = async (owner: Owner): Promise<void> => {
        for (let round = 0; round < 60; round += 1) cursors.push((await owner.commit({ entries: [note("x")] })).cursor);
      };
      await Promise.all([write(root), write(other)]);
      isOver = true;
      await reading;
      const all = (await mine.readTree(TENANT, ROOT, 0, 1000)).map((row) => row.cursor);
      expect(new Set(cursors).size).toBe(120);
      expect(all).toEqual(all.toSorted((a, b) => a - b));
      expect(all).toEqual(expect.arrayContaining(cursors));
      // The last read was at most seven rows behind.
      expect(read).toEqual(all.slice(0, read.length));
      expect(all.length - read.length).toBeLessThan(120);
    });

    test("lose no update of a shared account that both write concurrently", async () => {
      const root = await openAgent(mine);
      const kid = await openChild(root, "kid");
      const other = await new Owner(theirs, kid.key).acquire();
      await Promise.all([use(root, 100), use(other, 100)]);
      const accounts = await theirs.accounts(TENANT, ROOT);
      expect(accounts.find((account) => account.id === `turn:${TURN}`)).toMatchObject({
        used: { tokens: 2000, costMicros: 200, treeSteps: 200, steps: 100 },
        reserved: { tokens: 0 },
      });
    });

    test("of many concurrent acquisitions, decisions and turns, one wins each time (F20)", async () => {
      const owner = await openAgent(mine);
      const request = requestOf(owner, 0);
      await owner.commit(opening(request));
      const decided = await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          (index % 2 ? mine : theirs).decide(agentKey(), request.requestId, { ...approved, by: `p${index}` }, NOW),
        ),
      );
      expect(decided.filter((outcome) => outcome.type === "decided")).toHaveLength(1);
      expect(decided.filter((outcome) => outcome.type === "conflict")).toHaveLength(39);
      expect((await theirs.inbox(agentKey())).filter((item) => item.kind === "decision")).toHaveLength(1);

      const created = await Promise.all([mine, theirs, mine, theirs].map((stores) => openTurn(stores, "queue")));
      expect(new Set(created).size).toBe(4);

      await owner.stores.release(agentKey(), owner.epoch, { as: "leaving" });
      await theirs.registerProcess(elsewhere, NOW);
      const outcomes = await Promise.all([
        mine.acquire(agentKey(), here.processId, LEASE_MS, NOW),
        theirs.acquire(agentKey(), elsewhere.processId, LEASE_MS, NOW),
      ]);
      expect(outcomes.map((outcome) => outcome.type).sort()).toEqual(["acquired", "held"]);
    });

    test("a write to a tree that others keep changing eventually succeeds", async () => {
      const root = await openAgent(mine);
      const kids: Owner[] = [];
      for (let index = 0; index < 30; index += 1) kids.push(await openChild(root, `kid${index}`));
      let isOver = false;
      const busy = kids.map(async (kid) => {
        const record = { status: "ready", turnCount: 0, lastActivity: NOW, error: null, checkpoint: null } as const;
        while (!isOver) await kid.commit({ entries: [note("busy")], owned: record });
      });
      // The pause reads every record of the tree, and all of them change continuously.
      const paused = await theirs.pause(agentKey(), "ann", NOW);
      isOver = true;
      await Promise.all(busy);
      expect(paused).toMatchObject({ type: "marked" });
      for (const kid of kids) expect((await mine.inbox(kid.key)).map((item) => item.kind)).toContain("pause");
    });

    test("competing processes never both own an agent, and leave journals without gaps or forks (F3)", async () => {
      const agents = Array.from({ length: 20 }, (_, index) => agentKey(`desk-${index}`));
      for (const { agentId } of agents) await mine.createAgent(identityOf(agentId), null);
      const written = new Map<string, string[]>();
      let time = NOW;
      const fight = async (stores: Stores, processId: string, rounds: number): Promise<number> => {
        const owners = new Map<string, Owner>();
        let stale = 0;
        await stores.registerProcess({ ...elsewhere, processId }, NOW);
        for (let round = 0; round < rounds; round += 1) {
          const key = agents[(round * 7) % agents.length] ?? agentKey();
          // The other process's last heartbeat is now too old to count.
          time += 2 * LEASE_MS;
          let owner = owners.get(key.agentId);
          if (!owner || round % 3 === 0) {
            const taken = await stores.acquire(key, processId, LEASE_MS, time);
            if (taken.type !== "acquired") continue;
            owner = Object.assign(new Owner(stores, key), { epoch: taken.epoch, seq: taken.seq });
            owners.set(key.agentId, owner);
          }
          const id = `${processId} ${round}`;
          const [outcome] = await stores.commit([{ ...owner.batch({ entries: [note(id)] }), id }], NOW);
          if (outcome?.type === "stale") stale += 1;
          else {
            owner.moved(outcome);
            written.set(key.agentId, [...(written.get(key.agentId) ?? []), id]);
          }
        }
        return stale;
      };
      const stale = await Promise.all([fight(mine, "mine", 600), fight(theirs, "theirs", 600)]);
      expect(stale[0] + stale[1]).toBeGreaterThan(50);
      for (const key of agents) {
        const entries = (await theirs.readJournal(key, 1)).flatMap((row) => row.entries);
        expect(entries.map((entry) => entry.seq)).toEqual(entries.map((_, index) => index + 1));
        const epochs = entries.map((entry) => entry.epoch);
        expect(epochs).toEqual(epochs.toSorted((a, b) => a - b));
        const notes = entries.map((entry) => (entry.type === "warning" ? entry.message : ""));
        expect(notes.toSorted()).toEqual((written.get(key.agentId) ?? []).toSorted());
      }
    });

    test("active agents and open requests are read in one consistent snapshot", async () => {
      const root = await openAgent(mine);
      const kid = await openChild(root, "kid");
      const other = await new Owner(theirs, kid.key).acquire();
      const accountId = `turn:${other.key.agentId}#1`;
      const active = (isActive: boolean) => ({ moves: [{ type: "activity", accountId, isActive } as const] });
      let isOver = false;
      const asking = (async () => {
        for (let index = 0; index < 60; index += 1) {
          const request = requestOf(other, index);
          // The agent that asks comes to rest with its request, and goes on after the decision.
          await other.commit({ ...opening(request), ...active(false) });
          // The reader, which never waits either, reads at varying times.
          for (let times = 0; times < index % 8; times += 1) await Promise.resolve();
          await mine.decide(other.key, request.requestId, approved, NOW);
          await other.commit({ acknowledged: [`decision:${request.requestId}`], ...active(true) });
        }
        isOver = true;
      })();
      const seen: number[] = [];
      while (!isOver) {
        const activity = await mine.treeActivity(TENANT, ROOT);
        if (!activity) continue;
        const account = activity.accounts.find(({ id }) => id === accountId);
        seen.push(activity.openRequests.length);
        expect({ open: activity.openRequests.length, active: account?.activeCount }).toEqual({ open: 1, active: 0 });
      }
      await asking;
      expect(seen.length).toBeGreaterThan(0);
    });

    test("of two concurrent creations of one agent one seeds it, and both read the same conversation", async () => {
      for (let round = 0; round < 10; round += 1) {
        const agentId = `agent-${round}`;
        const outcomes = await Promise.all([
          mine.createAgent(identityOf(agentId), null, { messages: seedsOf("mine") }),
          theirs.createAgent(identityOf(agentId), null, { messages: seedsOf("theirs") }),
        ]);
        expect(outcomes.filter(({ created }) => created)).toHaveLength(1);
        const winner = outcomes[0].created ? "mine" : "theirs";
        for (const client of [mine, theirs]) expect(await client.messages(agentKey(agentId))).toEqual(seedsOf(winner));
        expect(await theirs.readJournal(agentKey(agentId), 1)).toHaveLength(1);
      }
    });

    test("the head of a tree is a consistent snapshot with its cursor", async () => {
      const root = await openAgent(theirs);
      let isOver = false;
      const writing = (async () => {
        for (let index = 0; index < 60; index += 1) {
          await root.commit({ ...opening(requestOf(root, index)) });
          await theirs.decide(agentKey(), requestOf(root, index).requestId, approved, NOW);
          await root.commit({ entries: [note("decided")], acknowledged: [] });
        }
        isOver = true;
      })();
      let readings = 0;
      while (!isOver) {
        const head = await mine.treeHead(TENANT, ROOT);
        const rows = (await mine.readTree(TENANT, ROOT, 0, 1_000)).filter(
          ({ cursor }) => cursor <= (head?.cursor ?? 0),
        );
        const last = rows.at(-1)?.entries.at(-1);
        readings += 1;
        const open = head?.openRequests.map(({ requestId }) => requestId) ?? [];
        // A decision adds no row: the request is open or not after the row that opened it, and never open after the next one.
        expect(last?.type === "request.opened" ? [[], [last.requestId]] : [[]]).toContainEqual(open);
      }
      await writing;
      expect(readings).toBeGreaterThan(0);
    });

    test("a write of the other client is reported; own writes are not, nor any after the listener was removed", async () => {
      const owner = await openAgent(mine);
      let calls = 0;
      let news = Promise.withResolvers<void>();
      const end = mine.onForeignWrite(() => {
        calls += 1;
        news.resolve();
      });
      await theirs.pause(agentKey(), "ann", NOW);
      // A write from before the subscription was active is reported once it is active.
      await news.promise;
      news = Promise.withResolvers();
      await owner.commit({ entries: [note("own")] });
      await theirs.resume(agentKey(), "ann", NOW);
      await news.promise;
      end();
      const before = calls;
      const again = Promise.withResolvers<void>();
      const endAgain = mine.onForeignWrite(() => again.resolve());
      await theirs.pause(agentKey(), "ann", NOW);
      await again.promise;
      endAgain();
      expect(calls).toBe(before);
    });
  });
}

async function openTurn(stores: Stores, ifBusy: "queue"): Promise<string> {
  const outcome = await stores.openTurn(agentKey(), { input: "go", actorId: null, limits: null, ifBusy }, NOW);
  if (!("turnId" in outcome)) throw new Error(`no turn: ${outcome.type}`);
  return outcome.turnId;
}
