import type { Queues } from "../../src/index.ts";
import { bullmqQueues } from "../../src/queues/bullmq.ts";

/**
 * The queues on the Redis of a place of stores (`redisPlace`). A death is found within two leases; a lock of one
 * lease would be lost by living workers whenever the machine is busy.
 */
export function queuesAt(place: string, leaseMs: number): Queues {
  const [url = "", prefix = ""] = place.split("#");
  const deathCheckMs = Math.max(250, Math.floor(leaseMs / 4));
  return bullmqQueues({ url, prefix: `${prefix}queue:`, lockMs: Math.ceil(1.5 * leaseMs), deathCheckMs, cancelCheckMs: 100 });
}
