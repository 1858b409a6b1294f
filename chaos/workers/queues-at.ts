import type { Redis } from "ioredis";
import type { Queues } from "../../src/index.ts";
import { bullmqQueues } from "../../src/queues/bullmq.ts";

/** How long a worker without heartbeats still counts as running its jobs, in leases. */
export const LOCK_LEASES = 1.5;

/** Timeout of commands, long enough for a busy machine, as for the stores. */
const PATIENT_MS = 20_000;

/**
 * The queues on the Redis of a store location (`redisPlace`). A death is detected within two leases; with locks of one
 * lease, live workers would lose them whenever the machine is busy.
 */
export function queuesAt(place: string, leaseMs: number): Queues {
  const { url, prefix } = queuesPlace(place);
  const deathCheckMs = Math.max(250, Math.floor(leaseMs / 4));
  const lockMs = Math.ceil(LOCK_LEASES * leaseMs);
  const times = { timeoutMs: PATIENT_MS, lockMs, deathCheckMs, cancelCheckMs: 100 };
  return bullmqQueues({ url, prefix, ...times });
}

/**
 * Agents whose wake jobs an exited worker had taken from the queue, read from Redis, because it may have died before it
 * could report them.
 */
export async function takenBy(client: Redis, place: string, pid: number): Promise<string[]> {
  // Redis has executed all commands of the worker once this is answered.
  await client.ping();
  const { prefix } = queuesPlace(place);
  const base = `{${prefix}wake}:wake:`;
  const ids = await client.lrange(`${base}active`, 0, -1);
  const jobs = await Promise.all(ids.map((id) => client.hmget(`${base}${id}`, "pb", "data")));
  return jobs.flatMap(([by, data]) => {
    const [, agentId] = /"agentId":"([^"]+)"/.exec(data ?? "") ?? [];
    return agentId !== undefined && by?.endsWith(`:${pid}`) ? [agentId] : [];
  });
}

function queuesPlace(place: string): { readonly url: string; readonly prefix: string } {
  const [url = "", prefix = ""] = place.split("#");
  return { url, prefix: `${prefix}queue:` };
}
