/**
 * A process that plays a batch of random programs: `node chaos/programs/worker.ts`, forked. It waits for its orders as a message,
 * so that a new one is at hand when an old one is killed, goes on where earlier ones have been killed, and tells when it is done.
 */
import { z } from "zod";
import { createRuntime, type RuntimeOptions } from "../../src/index.ts";
import { endWithParent } from "../end-with-parent.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { work, worldOf, writtenIn } from "./batch.ts";
import { castOf } from "./cast.ts";
import { Driver, driveAll } from "./drive.ts";

const ordersSchema = z.object({
  /** As `storesAt` takes it. */
  place: z.string(),
  seed: z.int(),
  count: z.int().positive(),
  folder: z.string(),
  /** Of its log. */
  name: z.string(),
  /** Programs at a time. */
  width: z.int().positive(),
  leaseMs: z.int().positive(),
  /** Whether it drives the programs itself, or works for somebody who does. */
  role: z.enum(["all", "worker"]),
  /** Takes up what others have left by `runtime.recover()`, and not agent by agent. */
  recovers: z.boolean(),
});
export type ProgramOrders = z.infer<typeof ordersSchema>;

/** What it tells: it has its orders, its programs have reached the world so often once more, and all are at their ends. */
export type ProgramNews = "up" | "touched" | "over";
/** How often its programs reach the world between two such messages. */
export const TOUCHES = 20;

const told = Promise.withResolvers<ProgramOrders>();
process.once("message", (orders) => told.resolve(ordersSchema.parse(orders)));
endWithParent();
const { place, width, leaseMs, role, recovers, name, ...batch } = await told.promise;
const world = worldOf(batch, name);
const runtime = await createRuntime({ agents: castOf(world), leaseMs, role, work, ...(await placeAt()) });
const driver = new Driver(runtime, world);
let touches = 0;
world.onTouch = () => {
  touches += 1;
  if (touches % TOUCHES === 0) process.send?.("touched" satisfies ProgramNews);
};
process.send?.("up" satisfies ProgramNews);
if (role === "worker") {
  process.once("message", () => void leave());
} else {
  if (recovers) await runtime.recover();
  const done = new Set(writtenIn(batch).flatMap(({ type, root }) => (type === "done" ? [root] : [])));
  await driveAll(driver, new Map([...world.programs].filter(([root]) => !done.has(root))), width);
  await leave();
}

async function leave(): Promise<void> {
  await runtime.shutdown();
  process.send?.("over" satisfies ProgramNews);
  process.disconnect();
}

/** One that drives its programs needs nothing of Redis, nor the time that it takes to load it. */
async function placeAt(): Promise<Pick<RuntimeOptions, "stores" | "queues">> {
  if (role === "all") return { stores: sqliteStores(place) };
  const [{ storesAt }, { queuesAt }] = await Promise.all([
    import("../stores-at.ts"),
    import("../workers/queues-at.ts"),
  ]);
  return { stores: storesAt(place), queues: queuesAt(place, leaseMs) };
}
