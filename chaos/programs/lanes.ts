import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createRuntime } from "../../src/index.ts";
import type { SeededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { storesAt } from "../stores-at.ts";
import { queuesAt } from "../workers/queues-at.ts";
import { systemClock } from "../../src/base/index.ts";
import { audit, type PlayedResult } from "./audit.ts";
import { type Batch, BatchLogs, drawBatch, programsOf, worldOf } from "./batch.ts";
import { castOf } from "./cast.ts";
import { Driver, driveAll } from "./drive.ts";
import { Reach } from "../../src/testing/simulation/reach.ts";
import type { ProgramNews, ProgramOrders } from "./worker.ts";

export interface LaneOptions {
  /** The location of the batch's stores, for `storesAt`. */
  readonly place: string;
  readonly random: SeededRandom;
  /** Concurrent programs. */
  readonly width: number;
  /** Whether a client drives the programs and workers play them from queues. Redis only. */
  readonly isQueued: boolean;
}

/** Most touches of the world by programs before their process is killed, in units of `TOUCHES`. */
const LONGEST_LIFE = 40;
/** Most delay of the kill, in milliseconds, so that it can occur anywhere and not only at a report. */
const LATEST_MS = 25;
/** Greatest age of a process in milliseconds. It is then killed, busy or not. */
const OLDEST_MS = 15_000;
/** A batch that takes longer has stuck programs. */
const BATCH_LIMIT_MS = 180_000;
const LAST_MS = 60_000;
const LEASE_MS = 2_000;
/** Lease of workers, which use real time: on a busy machine a live worker may miss heartbeats for a while. */
const WORKERS_LEASE_MS = 5_000;
/** Concurrent processes on Redis, where each may run any agent. */
const WORKERS = 2;
/** Most kills per batch, because a queue gives up a turn during which two workers died. */
const MOST_DEATHS_ON_REDIS = 1;
/** The compile cache halves the start time of the many short-lived processes. */
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

  /** Resolves when it is working, or has exited. */
  async begin(orders: ProgramOrders): Promise<void> {
    this.#child.send(orders);
    await Promise.race([once(this.#child, "message"), this.#gone]);
  }

  /** Its result of a batch that it played alone; `undefined` if it exited before. */
  async result(orders: ProgramOrders): Promise<PlayedResult | undefined> {
    this.#child.send(orders);
    const told = once(this.#child, "message") as Promise<[PlayedResult]>;
    const [result] = await Promise.race([told, this.#gone.then(() => [undefined])]);
    await this.#gone;
    return result;
  }

  /** Resolves when it has exited by itself, has lived long enough, or the signal is aborted. */
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

  /** Resolves when it has exited by itself. */
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

  /** Asks a worker to leave. */
  async dismiss(): Promise<void> {
    if (!this.hasEnded) this.#child.send("leave");
    await this.#gone;
  }

  /** Its unexpected warnings. A job lost by a live worker is allowed: another worker has it. */
  get complaint(): string | undefined {
    const words = this.#said
      .join("")
      .split("\n")
      .filter((line) => line.trim() !== "");
    const lines = words.filter((line) => !/has lost its lock|node --trace-warnings/.test(line));
    return lines.length === 0 ? undefined : `a process complained: ${lines.join(" ").slice(0, 600)}`;
  }
}

/** Processes that play batches. The next one is started before it is needed. */
export class Processes {
  readonly complaints: string[] = [];
  #next = new ProgramProcess();
  #started = 0;

  async begin(orders: Omit<ProgramOrders, "name">): Promise<ProgramProcess> {
    const one = this.#take();
    await one.begin({ ...orders, name: `world-${String(this.#started).padStart(6, "0")}` });
    return one;
  }

  /** Plays a batch in memory, in a separate process that is not killed. */
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

/** Plays a batch in processes that are killed repeatedly, and audits the stored data. */
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

/** Runs one process after the other on the batch. Returns how many were killed. */
async function playInTurn(processes: Processes, batch: Batch, options: LaneOptions): Promise<number> {
  const { place, width, random } = options;
  const never = new AbortController().signal;
  const begun = performance.now();
  for (let deaths = 0; ; deaths += 1) {
    const recovers = random.next() < 0.5;
    const one = await processes.begin({ ...batch, place, width, leaseMs: LEASE_MS, role: "all", recovers });
    const isLate = performance.now() - begun > BATCH_LIMIT_MS;
    // The last process is not killed, so that a stuck one can be detected.
    if (isLate) await Promise.race([one.last(), delay(LAST_MS)]);
    else await one.live(random, never);
    const { hasEnded, isOver } = one;
    if (!hasEnded) await one.kill();
    processes.note(one);
    if (isOver || isLate) return deaths;
    if (hasEnded) processes.complaints.push("a process ended by itself before its programs did");
  }
}

/** A client in this process drives the batch; workers that are killed and replaced play it. */
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
