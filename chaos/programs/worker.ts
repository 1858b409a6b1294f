/**
 * A process that plays a batch of random programs: `node chaos/programs/worker.ts`, forked. It waits for its orders as a
 * message, so that a replacement is ready when a process is killed. It continues the work of killed processes and reports
 * when it is done.
 */
import { z } from "zod";
import { systemClock } from "../../src/base/index.ts";
import { createRuntime, type RuntimeOptions, type Stores } from "../../src/index.ts";
import type { PlayedResult } from "./audit.ts";
import { endWithParent } from "../end-with-parent.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { BatchLogs, playInMemory, worldOf } from "./batch.ts";
import { castOf } from "./cast.ts";
import { Driver, driveAll } from "./drive.ts";
import { clockFrom, passTime } from "../../src/testing/simulation/pass-time.ts";
import { work } from "./play.ts";
import { Reach } from "../../src/testing/simulation/reach.ts";
import type { WorldLine } from "./world.ts";

const ordersSchema = z.object({
  /** Location for `storesAt`; or "memory": it plays the batch alone with simulated deaths, and reports the result. */
  place: z.string(),
  seed: z.int(),
  count: z.int().positive(),
  folder: z.string(),
  /** Name of its log. */
  name: z.string(),
  /** Concurrent programs. */
  width: z.int().positive(),
  leaseMs: z.int().positive(),
  /** Whether it drives the programs itself, or works for a driver process. */
  role: z.enum(["all", "worker"]),
  /** Whether it resumes others' work by `runtime.recover()` instead of agent by agent. */
  recovers: z.boolean(),
});
export type ProgramOrders = z.infer<typeof ordersSchema>;

/** Its messages: orders received, another `TOUCHES` touches of the world, and all programs ended. */
export type ProgramNews = "up" | "touched" | "over" | PlayedResult;
/** Touches of the world between two such messages. */
export const TOUCHES = 20;

const told = Promise.withResolvers<ProgramOrders>();
process.once("message", (orders) => told.resolve(ordersSchema.parse(orders)));
endWithParent();
const { place, width, leaseMs, role, recovers, name, ...batch } = await told.promise;
if (place === "memory") {
  process.send?.(await playInMemory(batch, width));
  // Exits explicitly, because handles of simulated dead processes would keep the process alive.
  process.exit();
}
const logs = new BatchLogs(batch);
const clock = role === "all" ? clockFrom(startOf(logs.lines())) : undefined;
const { stores: plain, ...more } = await placeAt();
const reach = new Reach(plain);
const world = worldOf(batch, { name, clock: clock ?? systemClock, reach });
const agents = castOf(world);
const runtime = await createRuntime({
  agents,
  leaseMs,
  role,
  work,
  stores: reach.stores,
  ...more,
  ...(clock && { clock }),
});
const driver = new Driver(runtime, world);
let touches = 0;
world.onTouch = () => {
  touches += 1;
  if (touches % TOUCHES === 0) process.send?.("touched" satisfies ProgramNews);
};
process.send?.("up" satisfies ProgramNews);
if (clock) {
  await passTime({ clock, world, reach }, drive());
  await passTime({ clock, world, reach }, runtime.shutdown());
  leave();
} else {
  process.once("message", () => void runtime.shutdown().then(leave));
}

async function drive(): Promise<void> {
  if (recovers) await runtime.recover();
  const done = new Set(logs.lines().flatMap(({ type, root }) => (type === "done" ? [root] : [])));
  await driveAll(driver, new Map([...world.programs].filter(([root]) => !done.has(root))), width);
}

function leave(): void {
  process.send?.("over" satisfies ProgramNews);
  process.disconnect();
}

/** The start of the clock: one lease after the previous process died. */
function startOf(lines: readonly WorldLine[]): number | undefined {
  const times = lines.flatMap((line) => ("at" in line ? [line.at] : []));
  return times.length === 0 ? undefined : times.reduce((latest, at) => Math.max(latest, at)) + leaseMs;
}

/** The stores and queues. Loads BullMQ only if the queues are shared, because loading takes time. */
async function placeAt(): Promise<Pick<RuntimeOptions, "queues"> & { stores: Stores }> {
  if (!/^(?:redis|postgres):/.test(place)) return { stores: sqliteStores(place) };
  const { storesAt } = await import("../stores-at.ts");
  if (role === "all") return { stores: storesAt(place) };
  const { queuesAt } = await import("../workers/queues-at.ts");
  return { stores: storesAt(place), queues: queuesAt(place, leaseMs) };
}
