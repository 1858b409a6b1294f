import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { armFaultPoints } from "../../src/base/index.ts";
import { createRuntime, memoryStores, type Runtime, type RuntimeOptions, type Stores } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { faultPointNames } from "../fault-point-names.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { audit } from "./audit.ts";
import { castOf, TOOL_QUEUE } from "./cast.ts";
import { Driver, driveAll } from "./drive.ts";
import { clockFrom, passTime } from "../../src/testing/simulation/pass-time.ts";
import type { PlannedDeath, Program } from "./program.ts";
import { Reach } from "../../src/testing/simulation/reach.ts";
import { Life } from "../../src/testing/simulation/life.ts";
import { World, type WorldLine } from "./world.ts";

export interface PlayOptions {
  /** Stores of the programs. Default: a separate SQLite file. */
  readonly on?: "memory" | "sqlite" | undefined;
  /** Whether every agent is discarded and restored after each of its commits. Default: false. */
  readonly restores?: boolean | undefined;
  /** Wraps the stores of each process, to inject a fault. Default: does not wrap them. */
  readonly spoil?: ((stores: Stores) => Stores) | undefined;
  /** Receives the machines' inspection events. Default: no inspection. */
  readonly onInspect?: RuntimeOptions["onInspect"];
  /** Called with the runtime of each process when it is created. */
  readonly onRuntime?: ((runtime: Runtime) => unknown) | undefined;
  /** Called for each pass of a fault point. */
  readonly onHit?: ((death: PlannedDeath) => void) | undefined;
}

/** How one process dies: at a fault point, or after a number of touches of the world. `undefined` if it survives. */
export type Death = PlannedDeath | { readonly touches: number } | undefined;

export const work = { queues: { [TOOL_QUEUE]: { concurrency: 16 } } };

const LEASE_MS = 10_000;
const MOST_HITS = 200;
/** The root agent of a program that is played alone. */
const alone = "program";

/**
 * Plays one program in this process: its simulated processes die at the program's fault points, and its clock is fake. The
 * same program always plays the same way. Returns the violations in words.
 */
export async function playProgram(program: Program, options: PlayOptions = {}): Promise<string[]> {
  const left: PlannedDeath[] = [...program.deaths];
  const folder = options.on === "memory" ? undefined : mkdtempSync(join(tmpdir(), "troupe-program-"));
  const path = folder === undefined ? undefined : join(folder, "program.db");
  const programs = new Map([[alone, program]]);
  const stage = new Stage({ programs, width: 1, path, options, deathOf: () => left.shift() });
  try {
    await stage.play();
    const { plain: stores, lines, deaths } = stage;
    const { failures } = await audit({ stores, programs, lines, deaths, isQueued: false });
    return failures.flatMap(({ faults }) => [...faults]);
  } finally {
    await stage.close();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

interface StageOptions {
  readonly programs: ReadonlyMap<string, Program>;
  /** Concurrent programs. */
  readonly width: number;
  /** Path of the stores' file; `undefined` for stores in memory. */
  readonly path: string | undefined;
  readonly options: PlayOptions;
  /** How the next process dies. */
  readonly deathOf: () => Death;
}

/**
 * Programs in simulated processes, one after the other, with a fake clock. A death ends all running programs of its
 * process.
 */
export class Stage {
  readonly lines: WorldLine[] = [];
  /** The stores without `spoil`. */
  readonly plain: Stores;
  readonly #stage: StageOptions;
  #now: number | undefined;
  deaths = 0;

  constructor(stage: StageOptions) {
    this.#stage = stage;
    this.plain = stage.path === undefined ? memoryStores() : sqliteStores(stage.path);
  }

  /** Plays until all programs have ended or make no progress. */
  async play(): Promise<void> {
    for (;;) {
      const random = seededRandom(this.deaths);
      if (await this.#live(this.#stage.deathOf(), () => random.next())) return;
      this.deaths += 1;
      // The leases of the dead process have expired then.
      this.#now = (this.#now ?? 0) + LEASE_MS + 1;
    }
  }

  async close(): Promise<void> {
    await this.plain.close();
  }

  /** Runs one process until its programs end. Returns false if it dies first. */
  async #live(death: Death, random: () => number): Promise<boolean> {
    const { programs, path, options, width } = this.#stage;
    const { spoil = (same) => same, restores = false, onInspect, onRuntime } = options;
    const stores = path === undefined ? this.plain : sqliteStores(path);
    const [life, clock, reach] = [new Life(), clockFrom(this.#now), new Reach(spoil(stores))];
    const [write, written] = [(line: WorldLine) => void this.lines.push(line), () => this.lines];
    const world = new World({ programs, clock, write, written, life, reach });
    const runtime = await createRuntime({
      agents: castOf(world),
      stores: reach.stores,
      clock,
      random,
      leaseMs: LEASE_MS,
      restoreAfterCommit: restores,
      work,
      onInspect,
    });
    onRuntime?.(runtime);
    const disarm = this.#arm(death, world, () => {
      reach.end();
      life.end();
    });
    const moved = { clock, world, reach };
    try {
      const over = new Set(this.lines.flatMap(({ type, root }) => (type === "done" ? [root] : [])));
      const left = new Map([...programs].filter(([root]) => !over.has(root)));
      await passTime(moved, driveAll(new Driver(runtime, world), left, width));
      return !life.isOver;
    } finally {
      disarm();
      if (!life.isOver) await passTime(moved, runtime.shutdown());
      else if (stores !== this.plain) await stores.close();
      this.#now = clock.now();
    }
  }

  #arm(death: Death, world: World, strike: () => void): () => void {
    const { onHit } = this.#stage.options;
    if (onHit) return armAll(onHit);
    if (death === undefined) return () => undefined;
    if ("point" in death) return armFaultPoints([{ name: death.point, hit: death.hit, action: strike }]);
    let touches = 0;
    world.onTouch = () => {
      touches += 1;
      if (touches === death.touches) strike();
    };
    return () => undefined;
  }
}

function armAll(onHit: (death: PlannedDeath) => void): () => void {
  return armFaultPoints(
    faultPointNames.flatMap((name) =>
      Array.from({ length: MOST_HITS }, (_, index) => ({
        name,
        hit: index + 1,
        action: () => onHit({ point: name, hit: index + 1 }),
      })),
    ),
  );
}
