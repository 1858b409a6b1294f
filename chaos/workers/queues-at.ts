import type { Queues } from "../../src/index.ts";
import { bullmqQueues } from "../../src/queues/bullmq.ts";

/** How long a worker that is not heard of is still believed to run its jobs, in leases. */
export const LOCK_LEASES = 1.5;

/**
 * The queues on the Redis of a place of stores (`redisPlace`). A death is found within two leases; a lock of one lease would be
 * lost by living workers whenever the machine is busy.
 */
export function queuesAt(place: string, leaseMs: number): Queues {
  const [url = "", prefix = ""] = place.split("#");
  const deathCheckMs = Math.max(250, Math.floor(leaseMs / 4));
  const lockMs = Math.ceil(LOCK_LEASES * leaseMs);
  return bullmqQueues({ url, prefix: `${prefix}queue:`, lockMs, deathCheckMs, cancelCheckMs: 100 });
}
