import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import type { Stores } from "../../src/index.ts";
import type { DaysDeployment, DaysProcess } from "./schedule-days.ts";
import type { DaysMessage } from "./schedule-days-process.ts";

const program = fileURLToPath(new URL("schedule-days-process.ts", import.meta.url));
const bundled = "program.mjs";

/** The points at which a process is killed by itself, besides those at which the test kills it from outside. */
const deaths = [
  "schedule.created:1",
  "schedule.opened:1",
  "schedule.opened:2",
  "schedule.moved:1",
  "turn.result:1",
  "commit.acknowledged:1",
  "commit.acknowledged:2",
] as const;

/** Processes of the operating system over one store. The next one is started in advance. */
export class ProcessDeployment implements DaysDeployment {
  readonly stores: Stores;
  readonly #args: readonly string[];
  readonly #folder: string;
  readonly #children = new Set<ChildProcess>();
  #spare: Promise<ChildProcess>;

  private constructor(stores: Stores, args: readonly string[], folder: string) {
    this.stores = stores;
    this.#args = args;
    this.#folder = folder;
    this.#spare = this.#fork();
  }

  /** `args`: a SQLite file, or the URL of a Redis and a prefix. */
  static async create(stores: Stores, args: readonly string[]): Promise<ProcessDeployment> {
    const folder = mkdtempSync(join(tmpdir(), "troupe-days-program-"));
    // As one file it starts ten times as fast as from its hundreds of modules, and hundreds of processes are started.
    const resolve = { conditionNames: ["troupe-source", "import", "node", "default"] };
    const bundle = await rolldown({ input: program, platform: "node", resolve, logLevel: "silent" });
    await bundle.write({ dir: folder, format: "esm", entryFileNames: bundled });
    await bundle.close();
    return new ProcessDeployment(stores, args, folder);
  }

  async start(now: number, sleptMs: number): Promise<DaysProcess> {
    const child = await this.#spare;
    this.#spare = this.#fork();
    const started = new ForkedProcess(child);
    await started.ask({ type: "start", now, sleptMs });
    return started;
  }

  async close(): Promise<void> {
    await this.#spare;
    for (const child of this.#children) child.kill("SIGKILL");
    await this.stores.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #fork(): Promise<ChildProcess> {
    const child = fork(join(this.#folder, bundled), this.#args, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    this.#children.add(child);
    child.once("exit", () => this.#children.delete(child));
    await once(child, "message");
    return child;
  }
}

class ForkedProcess implements DaysProcess {
  readonly #child: ChildProcess;
  readonly #dead: Promise<unknown>;
  #isKilled = false;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.#dead = once(child, "exit");
  }

  get isAlive(): boolean {
    return !this.#isKilled && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves when the process has done it, or has died. */
  async ask(message: DaysMessage): Promise<void> {
    if (!this.isAlive) return;
    const done = once(this.#child, "message");
    // It may have died just now.
    this.#child.send(message, () => undefined);
    await Promise.race([done, this.#dead]);
  }

  async advance(ms: number, steps: number): Promise<void> {
    await this.ask({ type: "advance", ms, steps });
  }

  async sleep(ms: number): Promise<void> {
    await this.ask({ type: "sleep", ms });
  }

  async arm(random: () => number): Promise<void> {
    const fault = deaths[Math.floor(random() * deaths.length)];
    if (fault) await this.ask({ type: "arm", fault });
  }

  kill(): void {
    this.#isKilled = true;
    this.#child.kill("SIGKILL");
  }
}
