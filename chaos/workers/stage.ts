import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { RedisServer } from "../../test/support/redis-server.ts";
import { createRuntime, type Runtime } from "../../src/index.ts";
import { withServers } from "../faults/f2.ts";
import type { Stage } from "../faults/f2-round.ts";
import { withPostgres, withRedis } from "../ground.ts";
import { readLines } from "../line-log.ts";
import type { StoreKind } from "../scenario.ts";
import { postgresPlace, redisPlace, storesAt } from "../stores-at.ts";
import type { WitnessLine } from "../witness.ts";
import type { Fault } from "../worker-process.ts";
import { WorkerPool } from "./pool.ts";
import { queuesAt, takenJobs } from "./queues-at.ts";
import { queuedTeam } from "./team.ts";
import type { WorkerOrders } from "./worker.ts";

export interface StageSize {
  readonly workers: number;
  /** Concurrent agents and calls of each worker. */
  readonly agents: number;
  readonly calls: number;
  readonly leaseMs: number;
  /** Whether workers log the stores' answers. Default true. */
  readonly isWitnessed?: boolean | undefined;
  /** Fault at which the next started worker dies. Default: none. */
  readonly nextFault?: (() => Fault | undefined) | undefined;
  /** Number of the crowd's children. */
  readonly crowd?: number | undefined;
  /** Where stores and queues are. Default: in Redis. */
  readonly stores?: StoreKind | undefined;
}

/** Worker processes on their own Redis or Postgres, and a client in this process that runs no agents. */
export interface WorkersStage {
  readonly place: string;
  /** `undefined` on Postgres. */
  readonly server: RedisServer | undefined;
  readonly servers: Pick<Stage, "ledger" | "model">;
  readonly client: Runtime;
  readonly pool: WorkerPool;
  /** All answers of the stores to workers. */
  witnessLines(): WitnessLine[];
}

const DRAIN_MS = 10_000;

export async function withWorkers<Found>(
  folder: string,
  size: StageSize,
  run: (stage: WorkersStage) => Promise<Found>,
): Promise<Found> {
  if (size.stores === "postgres") {
    return await withPostgres(({ url }) => withStage(folder, { ...size, place: postgresPlace(url, "workers") }, run));
  }
  return await withRedis({}, (server) =>
    withStage(folder, { ...size, place: redisPlace(server.url, "workers:"), server }, run),
  );
}

/** `place`: the location of stores and queues. */
async function withStage<Found>(
  folder: string,
  size: StageSize & { readonly place: string; readonly server?: RedisServer },
  run: (stage: WorkersStage) => Promise<Found>,
): Promise<Found> {
  mkdirSync(folder, { recursive: true });
  const { leaseMs, agents, calls, isWitnessed = true, crowd, place, server } = size;
  return await withServers(folder, async (servers) => {
    const [ledger, model] = [servers.ledger.address, servers.model.address];
    const taken = takenJobs(place);
    const ordersOf = (index: number): WorkerOrders => {
      const witness = isWitnessed ? join(folder, `witness-${index}.jsonl`) : null;
      return {
        store: place,
        queues: place,
        ledger,
        model,
        leaseMs,
        agents,
        calls,
        witness,
        drainMs: DRAIN_MS,
        crowd,
      };
    };
    const pool = new WorkerPool({
      program: "workers/worker.ts",
      ordersOf,
      takenBy: (pid) => taken.takenBy(pid),
      nextFault: size.nextFault,
    });
    const client = await createRuntime({
      agents: queuedTeam(ledger, model, crowd),
      stores: storesAt(place),
      queues: queuesAt(place, leaseMs),
      role: "client",
      leaseMs,
    });
    try {
      await pool.start(size.workers);
      const witnessLines = (): WitnessLine[] =>
        readdirSync(folder)
          .filter((name) => name.startsWith("witness-"))
          .flatMap((name) => readLines<WitnessLine>(join(folder, name)));
      return await run({ place, server, servers, client, pool, witnessLines });
    } finally {
      await client.shutdown();
      await pool.drain();
      await taken.close();
    }
  });
}
