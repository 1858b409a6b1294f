import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createRuntime } from "../../src/index.ts";
import type { SeededRandom } from "../seeded-random.ts";
import { storesAt } from "../stores-at.ts";
import { queuesAt } from "../workers/queues-at.ts";
import { systemClock } from "../../src/base/index.ts";
import { audit, type PlayedResult } from "./audit.ts";
import { type Batch, BatchLogs, drawBatch, programsOf, worldOf } from "./batch.ts";
import { castOf } from "./cast.ts";
import { Driver, driveAll } from "./drive.ts";
import { Reach } from "./reach.ts";
import type { ProgramNews, ProgramOrders } from "./worker.ts";

export interface LaneOptions {
  /** Where the batch is kept, as `storesAt` takes it. */
  readonly place: string;
  readonly random: SeededRandom;
  /** Programs at a time. */
  readonly width: number;
  /** A client drives them, and workers that take them from queues play them; on Redis only. */
  readonly isQueued: boolean;
}

/** How often programs reach the world in a process before it is killed, at most; in units of `TOUCHES`. */
const LONGEST_LIFE = 40;
/** It is killed so many milliseconds later, at most: anywhere, and not only where it tells of itself. */
const LATEST_MS = 25;
/** In milliseconds; a process is killed at this age at the latest, busy or not. */
const OLDEST_MS = 15_000;
/** A batch that is not over by then has stuck programs. */
const BATCH_LIMIT_MS = 180_000;
const LAST_MS = 60_000;
const LEASE_MS = 2_000;
/** Of workers, whose time passes by itself: on a busy machine one that lives may not be heard of for a while. */
const WORKERS_LEASE_MS = 5_000;
/** Processes at a time on Redis, where each may run any agent. */
const WORKERS = 2;
/** Deaths in a batch, after which the rest is left in peace: a turn of which two workers died is given up by its queue. */
const MOST_DEATHS_ON_REDIS = 1;
/** Spares the many short-lived processes half their start. */
const environment = () => ({
  ...process.env,
  NO_COLOR: "1",
  NODE_COMPILE_CACHE: join(tmpdir(), "troupe-chaos-compiled"),
});
const program = fileURLToPath(new URL("worker.ts", import.meta.url));

/** A process that waits for its orders. */
class ProgramProcess {
  readonly #child: ChildProcess = fork(program, [], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: environment(),
    execArgv: [],
  });
  readonly #gone = once(this.#child, "exit");
  readonly #said: string[] = [];
  #touched = 0;
  #onTouched: () => void = () => undefined;
  isOver = false;

  constructor() {
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => this.#said.push(text));
    this.#child.on("message", (news: ProgramNews) => {
      if (news === "over") this.isOver = true;
      if (news === "touched") this.#touched += 1;
      this.#onTouched();
    });
  }

  /** Resolves when it is at work, or has ended. */
  async begin(orders: ProgramOrders): Promise<void> {
    this.#child.send(orders);
    await Promise.race([once(this.#child, "message"), this.#gone]);
  }

  /** What it tells of a batch that it has played alone; undefined where it ended before. */
  async result(orders: ProgramOrders): Promise<PlayedResult | undefined> {
    this.#child.send(orders);
    const told = once(this.#child, "message") as Promise<[PlayedResult]>;
    const [result] = await Promise.race([told, this.#gone.then(() => [undefined])]);
    await this.#gone;
    return result;
  }

  /** Resolves when it has ended by itself, has lived for long enough, or when the signal says so. */
  async live(random: SeededRandom, ended: AbortSignal): Promise<void> {
    const most = random.between(1, LONGEST_LIFE);
    const [grown, stop] = [Promise.withResolvers<void>(), new AbortController()];
    this.#onTouched = () => (this.#touched >= most ? grown.resolve() : undefined);
    const signal = AbortSignal.any([stop.signal, ended]);
    const old = delay(OLDEST_MS, undefined, { signal }).catch(() => undefined);
    await Promise.race([this.#gone, grown.promise, old]);
    stop.abort();
    if (!ended.aborted) await Promise.race([this.#gone, delay(random.next() * LATEST_MS)]);
  }

  /** Resolves when it has ended by itself. */
  async last(): Promise<void> {
    await this.#gone;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#gone;
  }

  /** Asks one that works for others to leave. */
  async dismiss(): Promise<void> {
    if (!this.hasEnded) this.#child.send("leave");
    await this.#gone;
  }

  /** What it complained of; a job that is lost by one who lives is another's. */
  get complaint(): string | undefined {
    const words = this.#said
      .join("")
      .split("\n")
      .filter((line) => line.trim() !== "");
    const lines = words.filter((line) => !/has lost its lock|node --trace-warnings/.test(line));
    return lines.length === 0 ? undefined : `a process complained: ${lines.join(" ").slice(0, 600)}`;
  }
}

/** Processes that play batches: the next one is started before it is needed. */
export class Processes {
  readonly complaints: string[] = [];
  #next = new ProgramProcess();
  #started = 0;

  async begin(orders: Omit<ProgramOrders, "name">): Promise<ProgramProcess> {
    const one = this.#take();
    await one.begin({ ...orders, name: `world-${String(this.#started).padStart(6, "0")}` });
    return one;
  }

  /** Plays a batch in memory, in a process of its own that is not killed. */
  async playInMemory(batch: Batch, width: number): Promise<PlayedResult> {
    const one = this.#take();
    const orders = {
      ...batch,
      place: "memory",
      name: "world",
      width,
      leaseMs: LEASE_MS,
      role: "all",
      recovers: false,
    } as const;
    const result = await one.result(orders);
    this.note(one);
    if (result) return result;
    throw new Error(`a process ended before its programs did: ${one.complaint ?? "it said nothing"}`);
  }

  #take(): ProgramProcess {
    const one = this.#next;
    this.#next = new ProgramProcess();
    this.#started += 1;
    return one;
  }

  note({ complaint }: ProgramProcess): void {
    if (complaint !== undefined) this.complaints.push(complaint);
  }

  async close(): Promise<void> {
    await this.#next.kill();
  }
}

/** Plays a batch to its end, in processes that are killed again and again, and audits what they have left. */
export async function playKilled(processes: Processes, batch: Batch, options: LaneOptions): Promise<PlayedResult> {
  await drawBatch(batch);
  const { isQueued, place } = options;
  const deaths = await (isQueued ? playOnWorkers : playInTurn)(processes, batch, options);
  const stores = storesAt(place);
  try {
    const [programs, lines] = [programsOf(batch), new BatchLogs(batch).lines()];
    return await audit({ stores, programs, lines, deaths, isQueued });
  } finally {
    await stores.close();
  }
}

/** One process after the other has the batch, and drives it. Gives how many were killed. */
async function playInTurn(processes: Processes, batch: Batch, options: LaneOptions): Promise<number> {
  const { place, width, random } = options;
  const never = new AbortController().signal;
  const begun = performance.now();
  for (let deaths = 0; ; deaths += 1) {
    const recovers = random.next() < 0.5;
    const one = await processes.begin({ ...batch, place, width, leaseMs: LEASE_MS, role: "all", recovers });
    const isLate = performance.now() - begun > BATCH_LIMIT_MS;
    // The last one is left in peace, and told apart from one that is stuck.
    if (isLate) await Promise.race([one.last(), delay(LAST_MS)]);
    else await one.live(random, never);
    const { hasEnded, isOver } = one;
    if (!hasEnded) await one.kill();
    processes.note(one);
    if (isOver || isLate) return deaths;
    if (hasEnded) processes.complaints.push("a process ended by itself before its programs did");
  }
}

/** A client in this process drives the batch, and workers that come and go play it. */
async function playOnWorkers(processes: Processes, batch: Batch, options: LaneOptions): Promise<number> {
  const { place, width, random } = options;
  const orders = { ...batch, place, width, leaseMs: WORKERS_LEASE_MS, role: "worker", recovers: false } as const;
  const reach = new Reach(storesAt(place));
  const world = worldOf(batch, { name: "client", clock: systemClock, reach });
  const queues = queuesAt(place, WORKERS_LEASE_MS);
  const client = await createRuntime({
    agents: castOf(world),
    stores: reach.stores,
    queues,
    role: "client",
    leaseMs: WORKERS_LEASE_MS,
  });
  const pool = await Promise.all(Array.from({ length: WORKERS }, () => processes.begin(orders)));
  let deaths = 0;
  const ended = new AbortController();
  const over = driveAll(new Driver(client, world), world.programs, width).finally(() => ended.abort());
  const late = delay(BATCH_LIMIT_MS, undefined, { signal: ended.signal }).catch(() => undefined);
  const killing = (async (): Promise<void> => {
    while (deaths < MOST_DEATHS_ON_REDIS) {
      const at = random.between(0, WORKERS - 1);
      await pool[at]?.live(random, ended.signal);
      if (ended.signal.aborted) return;
      await pool[at]?.kill();
      deaths += 1;
      const next = await processes.begin(orders);
      pool.splice(at, 1, next);
    }
  })();
  try {
    await Promise.race([over, late]);
  } finally {
    ended.abort();
    await killing;
    await client.shutdown();
    for (const one of pool) {
      await one.dismiss();
      processes.note(one);
    }
  }
  return deaths;
}
