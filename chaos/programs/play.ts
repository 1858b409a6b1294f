import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { armFaultPoints } from "../../src/base/index.ts";
import { createRuntime, memoryStores, type Runtime, type RuntimeOptions, type Stores } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { faultPointNames } from "../fault-point-names.ts";
import { seededRandom } from "../seeded-random.ts";
import { audit } from "./audit.ts";
import { castOf, TOOL_QUEUE } from "./cast.ts";
import { Driver, driveAll } from "./drive.ts";
import { clockFrom, passTime } from "./hand-clock.ts";
import type { PlannedDeath, Program } from "./program.ts";
import { Reach } from "./reach.ts";
import { Life, World, type WorldLine } from "./world.ts";

export interface PlayOptions {
  /** Where the programs are kept. Default: a file of their own. */
  readonly on?: "memory" | "sqlite" | undefined;
  /** Every agent is discarded and restored after each of its commits. Default: false. */
  readonly restores?: boolean | undefined;
  /** Wraps the stores of each process, to plant a fault. Default: the stores as they are. */
  readonly spoil?: ((stores: Stores) => Stores) | undefined;
  /** Gets the machines' inspection events. Default: they are not inspected. */
  readonly onInspect?: RuntimeOptions["onInspect"];
  /** Given the runtime of each process as soon as it is made. */
  readonly onRuntime?: ((runtime: Runtime) => unknown) | undefined;
  /** Told each passing of a fault point. */
  readonly onHit?: ((death: PlannedDeath) => void) | undefined;
}

/** How one process ends: at a fault point, or when its programs have reached the world so often. `undefined` if it lives on. */
export type Death = PlannedDeath | { readonly touches: number } | undefined;

export const work = { queues: { [TOOL_QUEUE]: { concurrency: 16 } } };

const LEASE_MS = 10_000;
const MOST_HITS = 200;
/** The root agent of a program that is played by itself. */
const alone = "program";

/**
 * Plays a program by itself to its end, in this process: its processes die at the fault points that it names, and its time is
 * moved. The same program gives the same play. Gives what is wrong, in words.
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
  /** Programs at a time. */
  readonly width: number;
  /** Path of the stores' file; `undefined` for stores in memory. */
  readonly path: string | undefined;
  readonly options: PlayOptions;
  /** How the next process dies. */
  readonly deathOf: () => Death;
}

/**
 * Programs in this process that have one process after the other to themselves, and a clock that is moved. A death ends all
 * that are under way.
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

  /** Until all are at their ends, or do nothing any more. */
  async play(): Promise<void> {
    for (;;) {
      const random = seededRandom(this.deaths);
      if (await this.#live(this.#stage.deathOf(), () => random.next())) return;
      this.deaths += 1;
      // What the dead process held is free then.
      this.#now = (this.#now ?? 0) + LEASE_MS + 1;
    }
  }

  async close(): Promise<void> {
    await this.plain.close();
  }

  /** One process, to the end of its programs or to its own, which gives false. */
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
