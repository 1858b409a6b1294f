import { Redis } from "ioredis";
import { Pool } from "pg";
import type { Queues } from "../../src/index.ts";
import { bullmqQueues } from "../../src/queues/bullmq.ts";
import { isOnRedis } from "../stores-at.ts";

/** How long a worker without heartbeats still counts as running its jobs, in leases. */
export const LOCK_LEASES = 1.5;

/** Timeout of commands, long enough for a busy machine, as for the stores. */
const PATIENT_MS = 20_000;

/**
 * The queues on the Redis or Postgres of a store location (`redisPlace`, `postgresPlace`). A death is detected within two leases; with
 * locks of one lease, live workers would lose them whenever the machine is busy.
 */
export function queuesAt(place: string, leaseMs: number): Queues {
  const { url, prefix } = queuesPlace(place);
  const deathCheckMs = Math.max(250, Math.floor(leaseMs / 4));
  const lockMs = Math.ceil(LOCK_LEASES * leaseMs);
  const times = { timeoutMs: PATIENT_MS, lockMs, deathCheckMs, cancelCheckMs: 100 };
  return bullmqQueues({ ...(isOnRedis(place) ? { url } : { postgres: { url } }), prefix, ...times });
}

/** Finds out which agents' wake jobs an exited worker had taken from the queue: it may have died before it could report them. */
export interface TakenJobs {
  takenBy(pid: number): Promise<string[]>;
  close(): Promise<void>;
}

export function takenJobs(place: string): TakenJobs {
  return isOnRedis(place) ? takenOnRedis(place) : takenOnPostgres(place);
}

function takenOnRedis(place: string): TakenJobs {
  const { url, prefix } = queuesPlace(place);
  const client = new Redis(url);
  return {
    takenBy: async (pid) => {
      // Redis has executed all commands of the worker once this is answered.
      await client.ping();
      const base = `{${prefix}wake}:wake:`;
      const ids = await client.lrange(`${base}active`, 0, -1);
      const jobs = await Promise.all(ids.map((id) => client.hmget(`${base}${id}`, "pb", "data")));
      return jobs.flatMap(([by, data]) => agentIn(pid, by, data));
    },
    close: async () => client.disconnect(),
  };
}

function takenOnPostgres(place: string): TakenJobs {
  const { url, prefix } = queuesPlace(place);
  const pool = new Pool({ connectionString: url, max: 1 });
  pool.on("error", () => undefined);
  return {
    takenBy: async (pid) => {
      const { rows } = await pool.query<{ by: string | null; data: string }>(
        `SELECT processed_by AS by, data #>> '{}' AS data FROM bullmq.job WHERE queue = $1 AND state = 'active'`,
        [`${prefix}wake`],
      );
      return rows.flatMap(({ by, data }) => agentIn(pid, by, data));
    },
    close: () => pool.end(),
  };
}

function agentIn(pid: number, by: string | null | undefined, data: string | null | undefined): string[] {
  const [, agentId] = /"agentId":"([^"]+)"/.exec(data ?? "") ?? [];
  return agentId !== undefined && by?.endsWith(`:${pid}`) ? [agentId] : [];
}

function queuesPlace(place: string): { readonly url: string; readonly prefix: string } {
  const [url = "", prefix = ""] = place.split("#");
  return { url, prefix: isOnRedis(place) ? `${prefix}queue:` : `${prefix}.` };
}
