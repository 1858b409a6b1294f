import { randomUUID } from "node:crypto";
import { openSync, writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { StoreUnavailableError } from "../../src/errors/index.ts";
import { currentProcess, type Stores } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { batchAt, identityOf, ROOT, ROOT_ACCOUNT, TENANT, type WriterLine, type WriterOrders } from "./f31-team.ts";

const orders = JSON.parse(process.argv[2] ?? "{}") as WriterOrders;
const log = openSync(orders.log, "a");

/** Write the log first, so that it contains everything that was acknowledged to the writer. */
function say(line: WriterLine): void {
  writeSync(log, `${JSON.stringify(line)}\n`);
}

const sharedLimits = { maxTokens: 1_000_000_000 };

async function createTeam(stores: Stores, agentId: string): Promise<void> {
  const account = { id: ROOT_ACCOUNT, agentId: ROOT, turnId: null, parentId: null, limits: sharedLimits };
  await stores.createAgent(identityOf(ROOT), account);
  await stores.createAgent(identityOf(agentId), {
    ...account,
    id: `agent:${agentId}`,
    agentId,
    parentId: ROOT_ACCOUNT,
  });
}

/** Writes batches and logs each one. Stops at the first error that is not retryable. */
async function write({ store, agentId, batches, killAfterMs, pauseMs, maxBytes }: WriterOrders): Promise<void> {
  const stores = sqliteStores(store, maxBytes === null ? {} : { maxBytes });
  const me = currentProcess(randomUUID());
  await createTeam(stores, agentId);
  await stores.registerProcess(me, Date.now());
  const lease = await stores.acquire({ tenant: TENANT, agentId }, me.processId, 60_000, Date.now());
  if (lease.type !== "acquired") throw new Error(`the agent of a dead process was not free: ${JSON.stringify(lease)}`);
  let { seq } = lease;
  for (let count = 0; count < batches; count += 1) {
    const { batch, message } = batchAt(agentId, lease.epoch, seq);
    const [outcome] = await stores.commit([batch], Date.now());
    if (outcome?.type !== "committed") throw new Error(`not committed: ${JSON.stringify(outcome)}`);
    seq += 2;
    say({ type: "acknowledged", seq, messageId: message.id });
    if (count === 0 && killAfterMs !== null) {
      const killer = new Worker(new URL("./f31-killer.ts", import.meta.url), { workerData: { killAfterMs } });
      killer.unref();
    }
    if (pauseMs > 0) await delay(pauseMs);
  }
  await stores.close();
}

try {
  await write(orders);
} catch (error) {
  if (error instanceof StoreUnavailableError) say({ type: "unavailable", code: String(error.details["code"]) });
  else say({ type: "failed", message: error instanceof Error ? error.message : String(error) });
}
