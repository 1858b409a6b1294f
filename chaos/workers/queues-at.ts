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
  const [url = "", prefix = ""] = place.split("#");
  const deathCheckMs = Math.max(250, Math.floor(leaseMs / 4));
  const lockMs = Math.ceil(LOCK_LEASES * leaseMs);
  const times = { timeoutMs: PATIENT_MS, lockMs, deathCheckMs, cancelCheckMs: 100 };
  return bullmqQueues({ url, prefix: `${prefix}queue:`, ...times });
}
