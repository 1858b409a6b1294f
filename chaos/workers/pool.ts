import { tmpdir } from "node:os";
import { join } from "node:path";
import { jsonLinesOf, type RunEnd, runProcess, signal } from "../processes.ts";
import type { SeededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { steadyNow } from "../witness.ts";
import type { Fault } from "../worker-process.ts";
import type { Weight } from "./weight.ts";
import type { WorkerLine } from "./worker.ts";

/** Longest life of a worker, in milliseconds. */
const LIFE_MS = 3_600_000;
const compileCache = join(tmpdir(), "troupe-chaos-compiled");

/** On a busy machine a live worker may be considered dead. It then warns about each job that another worker may run too. */
const lostLock = /LeaseLostError: job "([^"]+)" of queue "[^"]+" has lost its lock/;
/** Node's hint after its first warning. */
const hint = "node --trace-warnings";

/** A killed worker. */
export interface Kill {
  readonly pid: number;
  /** Time of the kill, by `steadyNow`. */
  readonly at: number;
}

/** Whether it died at a fault point. */
export interface Strike extends Kill {
  readonly fault: Fault;
}

interface Living {
  pid: number | undefined;
  readonly fault: Fault | undefined;
  /** Whether this pool killed it. */
  killed: Kill | undefined;
  /** Called with its next memory report, or without one when it has exited. */
  weighed: ((weight: Weight | undefined) => void) | undefined;
  /** Resolves when it is up, or has exited before. */
  readonly up: Promise<void>;
  readonly end: Promise<RunEnd>;
}

export interface PoolOptions {
  /** Path below `chaos/` of a program that accepts its orders as JSON and writes a `WorkerLine` when it is up. */
  readonly program: string;
  /** Orders of the n-th started process. */
  readonly ordersOf: (index: number) => object;
  /** Agents whose wake jobs a dead worker had taken. */
  readonly takenBy: (pid: number) => Promise<readonly string[]>;
  /** Fault at which the next worker dies. Default: none. */
  readonly nextFault?: (() => Fault | undefined) | undefined;
  /** Called when a worker is up. */
  readonly onUp?: ((line: Extract<WorkerLine, { type: "up" }>) => void) | undefined;
}

/** A constant number of worker processes. A killed worker is replaced at once. */
export class WorkerPool {
  readonly kills: Kill[] = [];
  readonly strikes: Strike[] = [];
  /** Unexpected output and exits of processes that were not killed. */
  readonly faults: string[] = [];
  /** Workers that were ended by SIGKILL, from the pool or from another process. */
  deaths = 0;
  /** Jobs of live workers that were considered dead. */
  locksLost = 0;
  readonly drains: Extract<WorkerLine, { type: "drained" }>[] = [];
  /** Agents whose wake jobs killed workers had taken, by process id. Complete after `drain`. */
  readonly taken = new Map<number, readonly string[]>();
  readonly #options: PoolOptions;
  readonly #looks: Promise<void>[] = [];
  readonly #living: Living[] = [];
  #started = 0;
  #isOver = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Resolves when the requested number is up. */
  async start(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#launch()));
  }

  /** Resolves when every started worker is up. */
  async allUp(): Promise<void> {
    await Promise.all(this.#living.map(({ up }) => up));
  }

  /** Number of workers that are up. */
  get size(): number {
    return this.#living.filter(({ pid }) => pid !== undefined).length;
  }

  /** Kills one of the workers that are up. Returns false if there is none. */
  kill(random: SeededRandom): boolean {
    if (this.size === 0) return false;
    const victim = random.pick(this.#living.filter(({ pid }) => pid !== undefined));
    const pid = victim.pid ?? 0;
    victim.pid = undefined;
    const kill = { pid, at: steadyNow() };
    victim.killed = kill;
    if (!signal(pid, "SIGKILL")) return false;
    this.kills.push(kill);
    return true;
  }

  /** Memory of each worker that is up. */
  async weigh(): Promise<Weight[]> {
    const weights = this.#living.map(async (living) => {
      if (living.pid === undefined || !signal(living.pid, "SIGUSR2")) return [];
      const told = Promise.withResolvers<Weight | undefined>();
      living.weighed = told.resolve;
      return (await told.promise) ?? [];
    });
    return (await Promise.all(weights)).flat();
  }

  /** Sends SIGTERM to all; each must exit by itself. */
  async drain(): Promise<void> {
    this.#isOver = true;
    await this.allUp();
    for (const { pid } of this.#living) if (pid !== undefined) signal(pid, "SIGTERM");
    const ends = await Promise.all(this.#living.map(({ end }) => end));
    await Promise.all(this.#looks);
    for (const end of ends) {
      const drained = jsonLinesOf<WorkerLine>(end.stdout).find((line) => line.type === "drained");
      if (drained?.type === "drained") this.drains.push(drained);
      if (end.exitCode !== 0) this.faults.push(`after SIGTERM it ended with exit code ${end.exitCode}, ${end.signal}`);
    }
  }

  async #launch(): Promise<void> {
    const isUp = Promise.withResolvers<void>();
    const { program, ordersOf, nextFault, onUp } = this.#options;
    const orders = ordersOf(this.#started);
    this.#started += 1;
    const fault = nextFault?.();
    const living: Living = {
      pid: undefined,
      fault,
      killed: undefined,
      weighed: undefined,
      up: isUp.promise,
      end: runProcess(program, [JSON.stringify(orders)], {
        environment: { NODE_COMPILE_CACHE: compileCache, TROUPE_FAULT: fault ? `${fault.name}:${fault.hit}` : "" },
        limitMs: LIFE_MS,
        onLine: (text) => {
          const line = JSON.parse(text) as WorkerLine;
          if (line.type === "up") {
            living.pid = line.pid;
            onUp?.(line);
          }
          if (line.type === "weighed") living.weighed?.(line);
          isUp.resolve();
        },
      }),
    };
    this.#living.push(living);
    void living.end.then((end) => this.#onEnd(living, end)).finally(() => isUp.resolve());
    await isUp.promise;
  }

  #onEnd(living: Living, { signal: by, exitCode, stderr }: RunEnd): void {
    living.weighed?.(undefined);
    const words = stderr.split("\n").filter((line) => line.trim() !== "");
    this.locksLost += new Set(words.flatMap((line) => lostLock.exec(line)?.[1] ?? [])).size;
    const complaints = words.filter((line) => !lostLock.test(line) && !line.includes(hint));
    if (complaints.length > 0) this.faults.push(`a worker complained: ${complaints.join(" ").slice(0, 600)}`);
    if (by === "SIGKILL") this.deaths += 1;
    const { fault, killed } = living;
    const pid = killed?.pid ?? living.pid ?? 0;
    if (by === "SIGKILL" && fault && !killed) this.strikes.push({ pid, at: steadyNow(), fault });
    if (by === "SIGKILL")
      this.#looks.push(this.#options.takenBy(pid).then((agentIds) => void this.taken.set(pid, agentIds)));
    if (this.#isOver) return;
    this.#living.splice(this.#living.indexOf(living), 1);
    if (by !== "SIGKILL") this.faults.push(`a worker ended by itself with exit code ${exitCode}, signal ${by}`);
    void this.#launch();
  }
}
