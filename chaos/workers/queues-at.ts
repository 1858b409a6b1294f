import type { Redis } from "ioredis";
import type { Queues } from "../../src/index.ts";
import { bullmqQueues } from "../../src/queues/bullmq.ts";

/** How long a worker that is not heard of is still believed to run its jobs, in leases. */
export const LOCK_LEASES = 1.5;

/** As for the stores: a machine that is busy is not what is tried. */
const PATIENT_MS = 20_000;

/**
 * The queues on the Redis of a place of stores (`redisPlace`). A death is found within two leases; a lock of one lease would be
 * lost by living workers whenever the machine is busy.
 */
export function queuesAt(place: string, leaseMs: number): Queues {
  const { url, prefix } = queuesPlace(place);
  const deathCheckMs = Math.max(250, Math.floor(leaseMs / 4));
  const lockMs = Math.ceil(LOCK_LEASES * leaseMs);
  const times = { timeoutMs: PATIENT_MS, lockMs, deathCheckMs, cancelCheckMs: 100 };
  return bullmqQueues({ url, prefix, ...times });
}

/**
 * Agents whose wakes a worker that has ended had taken from the queue, as Redis knows it: it may have died before it could say
 * so itself.
 */
export async function takenBy(client: Redis, place: string, pid: number): Promise<string[]> {
  // What the worker had sent is done when this is answered.
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
