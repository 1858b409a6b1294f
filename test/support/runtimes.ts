import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import {
  type Agent,
  createRuntime,
  memoryStores,
  type Runtime,
  type RuntimeOptions,
  type Stores,
} from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { createFakeClock, type FakeClock } from "../../src/testing/index.ts";
import { rows } from "./full.ts";
import { dumpOf as dumpOfSchema } from "./postgres-dump.ts";
import { dumpOf } from "./redis-dump.ts";
import { ReachedStores } from "./reached-stores.ts";
import { PostgresServer, postgresProgram } from "./postgres-server.ts";
import { postgresStoresOn, ReusedSchemas } from "./postgres-stores.ts";
import { RedisServer, redisProgram } from "./redis-server.ts";
import { ownPrefix, storesOn } from "./redis-stores.ts";
import { noted } from "./under-way.ts";

export const variantNames = ["memory", "sqlite", "memory, restored", "sqlite, restored"] as const;
export type VariantName = (typeof variantNames)[number];
export type RuntimeVariant = VariantName | "redis" | "postgres";

/** The quick run uses each adapter once, one of them with every agent restored after every commit. */
const usualVariants = rows(variantNames, ["memory", "sqlite, restored"]);

/** Suites that always run on Redis too: what several processes and restarts have to do with the stores. */
const onRedisToo: ReadonlySet<string> = new Set([
  "values that callers pass",
  "ids of turns and trees",
  "follow",
  "two processes on the same stores",
  "keys of turns across processes",
  "states of turns",
  "a crash between commits",
  "every byte of a deleted tree",
  "a deletion whose process dies",
  "a deletion while another process owns the agent",
  "what can be deleted",
  "decisions",
  "pausing an idle agent",
  "waits for others' reservations",
  "requests of subagents",
  "a restart",
  "unfinished agents of dead processes",
  "turns whose process has died",
  "writes of an idle process",
  "a tree after a crash",
  "working time across agents and processes",
  "credentials passed to resume()",
  "an agent with autoSave: false that several processes use",
  "an owner that was silent for longer than its lease",
  "shutdown",
  "every command in every situation",
  "all values passed to user code",
  "the queue for maxConcurrent",
  "schedules",
  "one status in every API",
  "turn.settled, read repeatedly",
  "clientTools of a turn",
  "agents created with messages",
  "calls that are resumed: note(), ask() and bill()",
  "setBudget()",
  "no effect before its intent",
  "steering a turn",
  "steering from another process",
]);

/** Suites that always run on Postgres too. */
const onPostgresToo: ReadonlySet<string> = new Set([
  "two processes on the same stores",
  "keys of turns across processes",
  "decisions",
  "every byte of a deleted tree",
  "a deletion whose process dies",
  "a restart",
  "unfinished agents of dead processes",
  "an owner that was silent for longer than its lease",
]);

const servers: readonly RuntimeVariant[] = ["redis", "postgres"];
/** `TROUPE_RUNTIMES=redis` or `postgres` runs every suite on that server only. */
const onlyOn = servers.find((name) => name === process.env["TROUPE_RUNTIMES"]);

/** A server that the tests of one suite share. */
type SharedServer =
  | { readonly redis: RedisServer }
  | { readonly schemas: ReusedSchemas; readonly postgres: PostgresServer };

/** Lease of every staged process, in milliseconds: a process without a heartbeat for longer is dead. */
export const stageLeaseMs = 10_000;

export type StagedOptions = Omit<RuntimeOptions, "stores" | "clock" | "leaseMs"> & {
  /** Replaces the stage's own stores in this process. */
  readonly through?: ((stores: Stores) => Stores) | undefined;
};

/** A runtime as a separate process, which a test may stop or kill. */
export interface StagedProcess {
  readonly runtime: Runtime;
  /** As SIGSTOP: its calls to the stores wait. */
  freeze(): void;
  /** As SIGCONT: the waiting calls continue, in order. */
  thaw(): void;
  /** As SIGKILL: its later calls to the stores have no effect. Its work outside the process continues, and the results are lost. */
  kill(): void;
}

/** One set of stores and one clock, used by any number of processes. */
export interface Stage {
  readonly variant: RuntimeVariant;
  readonly clock: FakeClock;
  /** A temporary folder of the test, with the file of the stores, if they have one; `undefined` in memory. */
  readonly folder: string | undefined;
  /** All stored bytes as text; empty in memory. Of Redis, also the commands of the past. */
  stored(): string;
  /** What the stores have now, as text: the bytes of the file, or the keys and values of Redis; empty in memory. */
  present(): Promise<string>;
  /** A runtime on the stage's stores; it is shut down after the test. */
  open(options: StagedOptions): Promise<Runtime>;
  openProcess(options: StagedOptions): Promise<StagedProcess>;
  /** Lets the lease of a killed or frozen process expire. */
  expireLeases(): void;
  /** Waits until all of an agent's work so far is committed. */
  committed(agent: Agent): Promise<void>;
  /** Separate stores, for reading from outside. */
  look(): Stores;
}

/**
 * Runs a suite over the stores; in the full run over each twice, once with every agent discarded and restored after every commit
 * (F34). A suite for SQLite only reads its file, and runs on no other stores.
 */
export function describeRuntimes(
  title: string,
  suite: (stage: () => Stage) => void,
  only: readonly RuntimeVariant[] = usualVariants,
): void {
  const chosen: readonly RuntimeVariant[] = [
    ...only,
    ...(onRedisToo.has(title) ? (["redis"] as const) : []),
    ...(onPostgresToo.has(title) ? (["postgres"] as const) : []),
  ];
  const isOfFile = only.every((name) => name.startsWith("sqlite"));
  const variants = (onlyOn !== undefined && !isOfFile ? [onlyOn] : chosen).filter(
    (name) => (name !== "redis" || redisProgram) && (name !== "postgres" || postgresProgram),
  );
  describe.each(variants.map((variant) => ({ variant })))(`${title} ($variant)`, ({ variant }) => {
    let server: SharedServer | undefined;
    let current: TestStage | undefined;
    beforeAll(async () => {
      if (variant === "redis") server = { redis: await RedisServer.start() };
      if (variant === "postgres") {
        const postgres = await PostgresServer.start();
        server = { postgres, schemas: new ReusedSchemas(postgres) };
      }
    });
    afterAll(() => (server && "redis" in server ? server.redis : server?.postgres)?.stop());
    beforeEach(() => {
      current = new TestStage(variant, server);
    });
    afterEach(async () => {
      await current?.close();
      current = undefined;
    });
    suite(() => {
      if (!current) throw new Error("the stage exists only within a test");
      return current;
    });
  });
}

/** A separate stage in memory, for a test that compares runs; the caller closes it. */
export function memoryStage(): Stage & { close(): Promise<void> } {
  return new TestStage("memory", undefined);
}

class TestStage implements Stage {
  readonly variant: RuntimeVariant;
  readonly clock = createFakeClock();
  readonly #restores: boolean;
  readonly #memory: Stores | undefined;
  readonly folder: string | undefined;
  readonly #onlookers: Stores[] = [];
  readonly #processes: TestProcess[] = [];

  readonly #server: SharedServer | undefined;
  readonly #prefix = ownPrefix();
  readonly #schema: string | undefined;

  constructor(variant: RuntimeVariant, server: SharedServer | undefined) {
    this.variant = variant;
    this.#server = server;
    this.#restores = variant.endsWith("restored");
    if (server && "schemas" in server) this.#schema = server.schemas.take();
    if (variant.startsWith("memory")) this.#memory = memoryStores();
    else this.folder = mkdtempSync(join(tmpdir(), "troupe-runtime-"));
  }

  async open(options: StagedOptions): Promise<Runtime> {
    return (await this.openProcess(options)).runtime;
  }

  async openProcess({ through = (same) => same, ...options }: StagedOptions): Promise<StagedProcess> {
    const staged = new TestProcess(through(this.#connect()));
    this.#processes.push(staged);
    await staged.start({ restoreAfterCommit: this.#restores, ...options }, this.clock);
    return staged;
  }

  async committed(agent: Agent): Promise<void> {
    await agent.saveState();
  }

  expireLeases(): void {
    // In steps, as heartbeats are scheduled one after the other, so that living processes send theirs.
    for (let passed = 0; passed <= stageLeaseMs; passed += 1_000) this.clock.advance(1_000);
  }

  stored(): string {
    if (this.#server) return ("redis" in this.#server ? this.#server.redis : this.#server.postgres).stored();
    const names = this.folder === undefined ? [] : readdirSync(this.folder);
    return names.map((name) => readFileSync(join(this.folder ?? "", name), "latin1")).join("");
  }

  async present(): Promise<string> {
    const server = this.#server;
    if (!server) return this.stored();
    if ("postgres" in server) return dumpOfSchema(server.postgres, this.#schema ?? "");
    const client = server.redis.client();
    try {
      return await dumpOf(client, this.#prefix);
    } finally {
      client.disconnect();
    }
  }

  look(): Stores {
    const onlooker = this.#connect();
    this.#onlookers.push(onlooker);
    return onlooker;
  }

  async close(): Promise<void> {
    for (const staged of this.#processes) await staged.end();
    for (const onlooker of this.#onlookers) await onlooker.close();
    if (this.#server && "schemas" in this.#server && this.#schema) await this.#server.schemas.free(this.#schema);
    if (this.folder !== undefined) rmSync(this.folder, { recursive: true, force: true });
  }

  #connect(): Stores {
    const server = this.#server;
    if (server && "redis" in server) return noted(storesOn(server.redis, { prefix: this.#prefix }));
    if (server) return noted(postgresStoresOn(server.postgres, { schema: this.#schema, maxConnections: 4 }));
    return this.#memory ?? sqliteStores(join(this.folder ?? "", "troupe.db"));
  }
}

class TestProcess implements StagedProcess {
  readonly #reach: ReachedStores;
  #started: Runtime | undefined;
  #isKilled = false;

  constructor(stores: Stores) {
    this.#reach = new ReachedStores(stores);
  }

  get runtime(): Runtime {
    if (!this.#started) throw new Error("the process was not started");
    return this.#started;
  }

  async start(options: Omit<StagedOptions, "through">, clock: FakeClock): Promise<void> {
    const { stores } = this.#reach;
    this.#started = await createRuntime({ ...options, stores, clock, leaseMs: stageLeaseMs });
  }

  freeze(): void {
    this.#reach.freeze();
  }

  thaw(): void {
    this.#reach.thaw();
  }

  kill(): void {
    this.#isKilled = true;
    this.freeze();
  }

  async end(): Promise<void> {
    if (this.#isKilled) return await this.#reach.plain.close();
    this.thaw();
    await this.runtime.shutdown();
  }
}
