import { mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PostgresServer } from "../../test/support/postgres-server.ts";
import type { RedisServer } from "../../test/support/redis-server.ts";
import { withServers } from "../faults/f2.ts";
import type { Stage } from "../faults/f2-round.ts";
import { withPostgres, withRedis } from "../ground.ts";
import { LineReader, readLines } from "../line-log.ts";
import { jsonLinesOf, runProcess } from "../processes.ts";
import { type ChaosOptions, type ChaosReport, reportOf } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { postgresPlace, redisPlace } from "../stores-at.ts";
import type { WitnessLine } from "../witness.ts";
import { auditLoad, type Load, type LoadEnd } from "./audit.ts";
import type { LoadLine, LoadOrders } from "./worker.ts";

/** A server that can be killed and started again. */
export interface LoadServer {
  kill(): Promise<void>;
  launch(): Promise<void>;
}

/** Starts the server of a batch, with the location of its stores, for `storesAt`. */
export type WithServer<Server extends LoadServer> = <Found>(
  options: { readonly folder: string; readonly settings: readonly string[] },
  run: (server: Server, place: string) => Promise<Found>,
) => Promise<Found>;

const onRedis: WithServer<RedisServer> = (options, run) =>
  withRedis(options, (server) => run(server, redisPlace(server.url, "load:")));

/** Always syncs its writes. */
export const onPostgres: WithServer<PostgresServer> = (_, run) =>
  withPostgres((server) => run(server, postgresPlace(server.url, "load")));

/** A disturbance of Redis, or of another server, while two processes use it. */
export interface Disturbance<Server extends LoadServer = RedisServer> {
  readonly name: string;
  readonly rounds: number;
  /** After this many rounds all work is finished and audited. The next batch has a new Redis. */
  readonly roundsABatch: number;
  /** Whether commands may be refused as retryable. */
  readonly mayRefuse: boolean;
  /** Whether Redis may lose acknowledged writes. The audit then checks that losses are reported, and their consequences. */
  readonly mayLose?: boolean | undefined;
  /** Options of the server, as on its command line. */
  readonly settings?: readonly string[] | undefined;
  /** Timeout of the processes' stores. Default: the default of `storesAt`. */
  readonly timeoutMs?: number | undefined;
  /** Disturbs once. Returns violations that it found itself. */
  disturb(scene: Scene<Server>): Promise<readonly string[]>;
}

export interface Scene<Server extends LoadServer = RedisServer> {
  readonly server: Server;
  readonly random: SeededRandom;
  /** Round number from 0, over all batches. */
  readonly round: number;
  /** The server's folder. */
  readonly folder: string;
  /** The location of the processes' stores, for `storesAt`. */
  readonly place: string;
  /** Times of Redis restarts, by `steadyNow`. The code that restarts Redis adds them. */
  readonly restarts: number[];
  /** All answers of the stores so far, by process. */
  readonly witnesses: readonly LineReader<WitnessLine>[];
}

const WORKERS = ["left", "right"] as const;
const LANES = 3;
/** Longest life of a worker after its disturbances, in milliseconds. Turns that have not ended then are stuck. */
const STUCK_MS = 120_000;
export const LOAD_LEASE_MS = 2_000;
const compileCache = join(tmpdir(), "troupe-chaos-compiled");

export function runLoad(options: ChaosOptions, disturbance: Disturbance): Promise<ChaosReport> {
  return runLoadOn(options, disturbance, onRedis);
}

export async function runLoadOn<Server extends LoadServer>(
  options: ChaosOptions,
  disturbance: Disturbance<Server>,
  withServer: WithServer<Server>,
): Promise<ChaosReport> {
  const { name, rounds, roundsABatch } = disturbance;
  const random = seededRandom(options.seed);
  const batches: (Load & { readonly violations: readonly string[] })[] = [];
  for (let done = 0; done < rounds; done += roundsABatch) {
    const folder = join(options.folder, `batch-${batches.length + 1}`);
    mkdirSync(folder);
    const last = Math.min(rounds, done + roundsABatch);
    const batch = await withServers(folder, (servers) =>
      withServer({ folder, settings: disturbance.settings ?? [] }, (server, place) =>
        runBatch({ folder, servers, server, place, disturbance, random }, done, last),
      ),
    );
    batches.push(batch);
    const state = batch.violations.length === 0 ? "ok" : `VIOLATED\n  ${batch.violations.join("\n  ")}`;
    options.progress(`${last}/${rounds}: ${batch.turns} turns, ${batch.acknowledged} commits: ${state}`);
  }
  const sum = (of: (load: Load) => number): number => batches.reduce((total, one) => total + of(one), 0);
  return reportOf(
    { name, seed: options.seed },
    {
      operations: sum(({ turns }) => turns),
      succeeded: sum(({ completed }) => completed),
      violations: batches.flatMap(({ violations }) => violations),
    },
    {
      rounds,
      acknowledgedCommits: sum(({ acknowledged }) => acknowledged),
      refusedCommands: sum(({ refused }) => refused),
      callsTriedAgain: sum(({ again }) => again),
      ...(disturbance.mayLose ? { lostCommits: sum(({ lost }) => lost) } : {}),
      peakMegabytes: Math.max(0, ...batches.map(({ peakMegabytes }) => peakMegabytes)),
    },
  );
}

interface Batch<Server extends LoadServer> {
  readonly folder: string;
  readonly servers: Pick<Stage, "ledger" | "model">;
  readonly server: Server;
  readonly place: string;
  readonly disturbance: Disturbance<Server>;
  readonly random: SeededRandom;
}

async function runBatch<Server extends LoadServer>(batch: Batch<Server>, from: number, to: number) {
  const { folder, servers, server, place, disturbance, random } = batch;
  const stopFile = join(folder, "stop");
  const paths = WORKERS.map((name) => join(folder, `${name}.jsonl`));
  const ordersOf = (name: string, witness: string): LoadOrders => ({
    store: place,
    ledger: servers.ledger.address,
    model: servers.model.address,
    name,
    lanes: LANES,
    leaseMs: LOAD_LEASE_MS,
    timeoutMs: disturbance.timeoutMs,
    mayLose: disturbance.mayLose ?? false,
    witness,
    stopFile,
  });
  const atWork = WORKERS.map(() => Promise.withResolvers<void>());
  const runs = WORKERS.map((name, index) =>
    runWorker(ordersOf(name, paths[index] ?? ""), () => atWork[index]?.resolve()),
  );
  // A worker that has exited never works again; the audit reports why.
  await Promise.all(runs.map((run, index) => Promise.race([atWork[index]?.promise, run])));
  const violations: string[] = [];
  const restarts: number[] = [];
  const witnesses = paths.map((path) => new LineReader<WitnessLine>(path));
  for (let round = from; round < to; round += 1) {
    const found = await disturbance.disturb({ server, random, round, folder, place, restarts, witnesses });
    violations.push(...found.map((text) => `round ${round + 1}: ${text}`));
  }
  writeFileSync(stopFile, "");
  const ends = await Promise.all(runs);
  for (const [index, { stderr }] of ends.entries()) writeFileSync(join(folder, `${WORKERS[index]}.stderr`), stderr);
  const { mayRefuse, mayLose = false } = disturbance;
  const processes = ends.map((end, index) => ({ end, lines: readLines<WitnessLine>(paths[index] ?? "") }));
  const load = await auditLoad({ folder, place, servers, processes, mayRefuse, mayLose, restarts });
  return { ...load, violations: [...violations, ...load.violations].map((text) => `${disturbance.name}: ${text}`) };
}

async function runWorker(orders: LoadOrders, onFirstTurn: () => void): Promise<LoadEnd> {
  const end = await runProcess("load/worker.ts", [JSON.stringify(orders)], {
    environment: { NODE_COMPILE_CACHE: compileCache },
    limitMs: 600_000 + STUCK_MS,
    onLine: (line) => {
      if (line.includes('"turn"')) onFirstTurn();
    },
  });
  return { ...end, lines: jsonLinesOf<LoadLine>(end.stdout) };
}
