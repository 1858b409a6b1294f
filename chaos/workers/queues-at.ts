import type { Queues } from "../../src/index.ts";
import { bullmqQueues } from "../../src/queues/bullmq.ts";

/** The queues on the Redis of a place of stores (`redisPlace`), which notice a death as fast as the stores do. */
export function queuesAt(place: string, leaseMs: number): Queues {
  const [url = "", prefix = ""] = place.split("#");
  const deathCheckMs = Math.max(250, Math.floor(leaseMs / 4));
  return bullmqQueues({ url, prefix: `${prefix}queue:`, lockMs: leaseMs, deathCheckMs, cancelCheckMs: 100 });
}
