import { StoreUnavailableError, UnsupportedError } from "../../errors/index.ts";
import { DEFAULT_TENANT } from "../../state/index.ts";
import type { StorePlace } from "./store-place.ts";

/**
 * Has workers take agents up to which something was posted, and that nobody runs; false where there are no workers. Without it
 * a worker finds them too, somewhat later.
 */
export async function wakeWorkers({ openQueues }: StorePlace, agentIds: readonly string[]): Promise<boolean> {
  if (openQueues === undefined) return false;
  const queues = await openQueues();
  try {
    if ((await queues.workers()) === 0) return false;
    for (const agentId of agentIds) await queues.wake({ tenant: DEFAULT_TENANT, agentId });
    return true;
  } catch (error) {
    if (error instanceof StoreUnavailableError || error instanceof UnsupportedError) return false;
    throw error;
  } finally {
    await queues.close();
  }
}
