import { describe, expect, onTestFinished, test, vi } from "vitest";
import { StoreUnavailableError } from "../../src/errors/index.ts";
import type { RolledBackTree, Stores } from "../../src/stores/index.ts";
import type { PostgresStoresOptions } from "../../src/stores/postgres.ts";
import { messageOf, note } from "../contracts/entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "../contracts/names.ts";
import { agentKey, elsewhere, here, identityOf, openAgent, Owner } from "../contracts/stores-fixtures.ts";
import { AnswerDropper } from "../support/answer-dropper.ts";
import { postgresProgram } from "../support/postgres-server.ts";
import { ownSchema, postgresStoresOn } from "../support/postgres-stores.ts";
import { postgresOfSuite } from "../support/postgres-suite.ts";

const turn = { input: "go", actorId: null, limits: null, ifBusy: "queue" } as const;
const patient = { timeoutMs: 20_000 } as const;

describe.skipIf(!postgresProgram)("a Postgres that fails", () => {
  // Tests end and restart it.
  const postgres = postgresOfSuite({});

  function opened(options: PostgresStoresOptions = {}): Stores {
    const stores = postgresStoresOn(postgres.server, { ...patient, ...options });
    onTestFinished(() => stores.close());
    return stores;
  }

  async function dropper(): Promise<AnswerDropper> {
    const proxy = await AnswerDropper.start(postgres.server.port);
    onTestFinished(() => proxy.stop());
    return proxy;
  }

  /** Copies the tables, to put them back later: as a standby that took over without the last writes. */
  async function remember(schema: string): Promise<() => Promise<void>> {
    const rows = await postgres.server.query("SELECT tablename FROM pg_tables WHERE schemaname = $1", [schema]);
    const tables = rows.map(({ tablename }) => String(tablename));
    for (const table of tables) {
      await postgres.server.query(`CREATE TABLE "${schema}"."kept_${table}" AS TABLE "${schema}"."${table}"`);
    }
    return async () => {
      const restores = tables.map(
        (table) =>
          `DELETE FROM "${schema}"."${table}"; INSERT INTO "${schema}"."${table}" OVERRIDING SYSTEM VALUE TABLE "${schema}"."kept_${table}"`,
      );
      await postgres.server.query(restores.join(";"));
    };
  }

  test("commits go on when the server is killed and started again, each applied once", async () => {
    const stores = opened();
    const owner = await openAgent(stores);
    for (let count = 0; count < 30; count += 1) {
      const commit = owner.commit({ entries: [note(`entry ${count}`)], messages: [messageOf(`m${count}`)] });
      if (count % 10 === 5) {
        await postgres.server.kill();
        await postgres.server.launch();
      }
      await commit;
    }
    const entries = (await stores.readJournal(agentKey(), 1)).flatMap((row) => row.entries);
    const notes = entries.flatMap((entry) => (entry.type === "warning" ? [entry.message] : []));
    expect(notes).toEqual(Array.from({ length: 30 }, (_, count) => `entry ${count}`));
    expect(await stores.messages(agentKey())).toHaveLength(30);
  });

  test("a write whose answer was lost is applied once", async () => {
    const proxy = await dropper();
    const schema = ownSchema();
    const stores = opened({ schema, url: `postgres://troupe@127.0.0.1:${proxy.port}/postgres` });
    await openAgent(stores);
    const dropped = proxy.dropNext();
    const first = await stores.openTurn(agentKey(), turn, NOW);
    await dropped;
    const second = await stores.openTurn(agentKey(), turn, NOW);
    expect([first, second]).toMatchObject([{ number: 1 }, { number: 2 }]);
    expect(await stores.turns({ tenant: TENANT })).toHaveLength(2);
  });

  test("the same while other processes write to the tree before its writer is back", async () => {
    const proxy = await dropper();
    const schema = ownSchema();
    const stores = opened({ schema, url: `postgres://troupe@127.0.0.1:${proxy.port}/postgres` });
    const [second, third] = [opened({ schema }), opened({ schema })];
    await openAgent(stores);
    const dropped = proxy.dropNext(async () => {
      await second.pause(agentKey(), "ann", NOW);
      await third.resume(agentKey(), "ann", NOW);
      await second.pause(agentKey(), "bob", NOW);
    });
    const outcome = await stores.openTurn(agentKey(), turn, NOW);
    await dropped;
    expect(outcome).toMatchObject({ number: 1 });
    expect(await stores.turns({ tenant: TENANT })).toHaveLength(1);
    expect((await stores.readAgent(agentKey()))?.pause).toMatchObject({ by: "bob" });
  });

  test("a write that is repeated under a lock and whose commit never arrives is applied once, and counts as stored", async () => {
    const proxy = await dropper();
    const stores = opened({ schema: ownSchema(), url: `postgres://troupe@127.0.0.1:${proxy.port}/postgres` });
    const owner = await openAgent(stores);
    const lost: RolledBackTree[] = [];
    stores.onRolledBack((found) => lost.push(found));
    // After three attempts that fail, the next one is in a transaction with a lock.
    proxy.loseRequests(...Array.from({ length: 3 }, () => "trees SET"), "COMMIT");
    await owner.commit({ entries: [note("once")] });
    expect(proxy.losing).toBe(0);
    const entries = (await stores.readJournal(agentKey(), 1)).flatMap((row) => row.entries);
    expect(entries.filter((entry) => entry.type === "warning")).toHaveLength(1);
    expect(lost).toEqual([]);
  });

  test("a server that dies while a connection logs in ends no process", async () => {
    const proxy = await dropper();
    const stores = opened({ schema: ownSchema(), url: `postgres://troupe@127.0.0.1:${proxy.port}/postgres` });
    await stores.createAgent(identityOf("before"), null);
    const fields = Buffer.from("SFATAL\0VFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0");
    const length = Buffer.alloc(4);
    length.writeInt32BE(fields.length + length.length);
    proxy.addToLogin(Buffer.concat([Buffer.from("E"), length, fields]));
    // More works at a time than there are connections.
    const agentIds = ["a", "b", "c", "d"];
    await Promise.all(agentIds.map((agentId) => stores.createAgent(identityOf(agentId), null)));
    expect(await stores.listAgents({ tenant: TENANT })).toHaveLength(5);
    expect(proxy.isLoginAwaited).toBe(false);
  });

  test("a tree that another transaction keeps locked is refused in time, and nothing is written", async () => {
    const schema = ownSchema();
    const stores = opened({ schema, timeoutMs: 2_000 });
    const owner = await openAgent(stores);
    const client = await postgres.server.client();
    await client.query("BEGIN");
    await client.query(`SELECT 1 FROM "${schema}".trees FOR UPDATE`);
    const late = await owner.commit({ entries: [note("late")] }).catch((error: unknown) => error);
    await client.query("ROLLBACK");
    await client.end();
    expect(late).toBeInstanceOf(StoreUnavailableError);
    await vi.waitFor(async () => {
      const [row] = await postgres.server.query(
        "SELECT count(*)::int AS count FROM pg_stat_activity WHERE query LIKE $1 AND state = 'active'",
        [`%"${schema}".trees SET%`],
      );
      expect(row).toEqual({ count: 0 });
    }, 5_000);
  });

  test("heartbeats do not wait for a process that stands still while it writes to the list of processes", async () => {
    const schema = ownSchema();
    const stores = opened({ schema });
    for (const identity of [here, elsewhere]) await stores.registerProcess(identity, NOW, 0);
    const other = await postgres.server.client();
    onTestFinished(() => other.end());
    await other.query("BEGIN");
    await other.query(`SELECT 1 FROM "${schema}".trees FOR UPDATE`);
    const heartbeats = [here, elsewhere].map(({ processId }) => stores.heartbeat(processId, NOW + 1));
    expect(await Promise.all(heartbeats)).toEqual([true, true]);
    await other.query("ROLLBACK");
    expect((await stores.processes()).map(({ heartbeatAt }) => heartbeatAt)).toEqual([NOW + 1, NOW + 1]);
  });

  test("a process that registers again forgets none whose heartbeats came after its first registration", async () => {
    const schema = ownSchema();
    const [mine, theirs] = [opened({ schema }), opened({ schema })];
    const later = NOW + 25 * 3_600_000;
    await theirs.registerProcess(elsewhere, NOW, 0);
    await mine.registerProcess(here, NOW, 0);
    await theirs.heartbeat(elsewhere.processId, later);
    await mine.registerProcess(here, later, later - NOW);
    expect(await theirs.heartbeat(elsewhere.processId, later + 1)).toBe(true);
  });

  test("a server that is away is reported with the reason, without password, once the time is over", async () => {
    const stores = opened({ url: "postgres://app:hunter2@127.0.0.1:1/agents", timeoutMs: 200 });
    const failure = await stores.readAgent(agentKey()).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "store_unavailable", details: { code: "ECONNREFUSED" } });
    expect(JSON.stringify([failure, String(failure)])).not.toContain("hunter2");
  });

  test("more calls than connections wait for one another", async () => {
    const stores = opened({ maxConnections: 2 });
    await Promise.all(Array.from({ length: 40 }, (_, index) => stores.createAgent(identityOf(`a${index}`), null)));
    expect(await stores.listAgents({ tenant: TENANT })).toHaveLength(40);
  });

  describe("and loses acknowledged writes", () => {
    const warned = vi.spyOn(process, "emitWarning");

    function told(stores: Stores): RolledBackTree[] {
      const all: RolledBackTree[] = [];
      stores.onRolledBack((found) => all.push(found));
      warned.mockReset().mockReturnValue();
      return all;
    }

    test("the next write of an owner is refused, and the loss is reported with its times", async () => {
      const schema = ownSchema();
      const stores = opened({ schema });
      const owner = await openAgent(stores);
      await owner.commit({ entries: [note("kept")] });
      const restore = await remember(schema);
      await owner.commit({ entries: [note("lost")] });
      const all = told(stores);
      await restore();
      expect(await stores.commit([owner.batch({ entries: [note("on")] })], NOW)).toEqual([
        { type: "stale", epoch: owner.epoch, seq: owner.seq - 1 },
      ]);
      expect(all).toEqual([
        { tenant: TENANT, rootAgentId: ROOT, hadAt: expect.any(Number), foundAt: expect.any(Number) },
      ]);
      expect(all[0]?.hadAt).toBeGreaterThanOrEqual(all[0]?.foundAt ?? Infinity);
      expect(warned).toHaveBeenCalledExactlyOnceWith(
        expect.stringMatching(new RegExp(`^Postgres has lost acknowledged writes of the trees of ${ROOT} \\(changes`)),
        { code: "TROUPE_POSTGRES_ROLLED_BACK" },
      );
      const next = await new Owner(stores, agentKey()).acquire();
      await next.commit({ entries: [note("on")] });
      expect(all).toHaveLength(1);
    });

    test("the loss is found although another process has written to the rest", async () => {
      const schema = ownSchema();
      const [stores, theirs] = [opened({ schema }), opened({ schema })];
      const owner = await openAgent(stores);
      const restore = await remember(schema);
      await owner.commit({ entries: [note("lost")] });
      const all = told(stores);
      await restore();
      await theirs.pause(agentKey(), "ann", NOW);
      expect(await stores.commit([owner.batch({ entries: [note("on")] })], NOW)).toMatchObject([{ type: "stale" }]);
      expect(all).toMatchObject([{ rootAgentId: ROOT }]);
    });

    test("a process that listens is told without writing, also of a tree that is gone", async () => {
      const schema = ownSchema();
      const stores = opened({ schema });
      stores.onForeignWrite(() => undefined);
      await openAgent(stores);
      const restore = await remember(schema);
      await stores.createAgent(identityOf("gone"), null);
      const all = told(stores);
      await restore();
      expect(await stores.heartbeat("a process that is not registered", NOW)).toBe(false);
      await vi.waitFor(() => expect(all).toMatchObject([{ rootAgentId: "gone", foundAt: null }]), 5_000);
    });
  });
});
