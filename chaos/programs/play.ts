import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as loopTurn } from "node:timers/promises";
import { armFaultPoints } from "../../src/base/index.ts";
import { createRuntime, memoryStores, type Stores } from "../../src/index.ts";
import { DEFAULT_TENANT } from "../../src/state/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { createFakeClock, type FakeClock } from "../../src/testing/index.ts";
import { ReachedStores } from "../../test/support/reached-stores.ts";
import { treeIn } from "../evidence.ts";
import { faultPointNames } from "../fault-point-names.ts";
import { castOf, TOOL_QUEUE } from "./cast.ts";
import { Driver } from "./drive.ts";
import { faultsOf } from "./faults-of.ts";
import type { PlannedDeath, Program } from "./program.ts";
import { Life, World, type WorldLine } from "./world.ts";

export interface PlayOptions {
  /** Where the program is kept. Default: a file of its own. */
  readonly on?: "memory" | "sqlite" | undefined;
  /** Every agent is discarded and restored after each of its commits. Default: false. */
  readonly restores?: boolean | undefined;
  /** Stores as each process is to have them: for a fault that somebody plants. Default: as they are. */
  readonly spoil?: ((stores: Stores) => Stores) | undefined;
  /** Told each passing of a fault point. */
  readonly onHit?: ((death: PlannedDeath) => void) | undefined;
}

const LEASE_MS = 10_000;
/** Turns of the event loop in which nothing may move before time passes. */
const QUIET_TURNS = 3;
const TICK_MS = 10;
/** After so many looks a program has not come to its end. */
const MOST_LOOKS = 30_000;
const MOST_HITS = 200;
const root = "program";

/**
 * Plays a program by itself to its end, in this process: its processes die at the fault points that it names, and its time is
 * moved. The same program gives the same play. Gives what is wrong, in words.
 */
export async function playProgram(program: Program, options: PlayOptions = {}): Promise<string[]> {
  const folder = options.on === "memory" ? undefined : mkdtempSync(join(tmpdir(), "troupe-program-"));
  const plain = folder === undefined ? memoryStores() : sqliteStores(join(folder, "program.db"));
  const stage = new Stage(program, plain, folder, options);
  try {
    return await stage.play();
  } finally {
    await plain.close();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

class Stage {
  readonly #program: Program;
  readonly #plain: Stores;
  readonly #folder: string | undefined;
  readonly #options: PlayOptions;
  readonly #clock: FakeClock = createFakeClock();
  readonly #lines: WorldLine[] = [];
  #deaths = 0;
  #looks = 0;

  constructor(program: Program, plain: Stores, folder: string | undefined, options: PlayOptions) {
    this.#program = program;
    this.#plain = plain;
    this.#folder = folder;
    this.#options = options;
  }

  async play(): Promise<string[]> {
    const left: PlannedDeath[] = [...this.#program.deaths];
    for (;;) {
      const { isDone, stuck } = await this.#live(left.shift());
      if (stuck !== undefined) return [stuck];
      if (!isDone) continue;
      const tree = await treeIn(this.#plain, root);
      const died = this.#deaths > 0;
      return faultsOf({ program: this.#program, tree, lines: this.#lines, died, isQueued: false });
    }
  }

  /** One process, to the program's end or to its own. */
  async #live(death: PlannedDeath | undefined): Promise<{ isDone: boolean; stuck?: string }> {
    const life = new Life();
    const stores = this.#folder === undefined ? this.#plain : sqliteStores(join(this.#folder, "program.db"));
    const { spoil = (same) => same, restores = false } = this.#options;
    const reach = new ReachedStores(spoil(stores));
    const world = new World({
      programs: new Map([[root, this.#program]]),
      clock: this.#clock,
      write: (line) => this.#lines.push(line),
      written: () => this.#lines,
      life,
    });
    const runtime = await createRuntime({
      agents: castOf(world),
      stores: reach.stores,
      clock: this.#clock,
      leaseMs: LEASE_MS,
      restoreAfterCommit: restores,
      work: { queues: { [TOOL_QUEUE]: { concurrency: 4 } } },
    });
    const driver = new Driver(runtime, world);
    const disarm = this.#arm(death, () => {
      reach.freeze();
      life.end();
    });
    try {
      const stuck = await this.#watch(driver.run(root, this.#program), world, life);
      if (stuck !== undefined) return { isDone: true, stuck };
      if (!life.isOver) return { isDone: true };
    } finally {
      disarm();
      if (!life.isOver) await this.#elapse(runtime.shutdown());
      else if (stores !== this.#plain) await stores.close();
    }
    this.#deaths += 1;
    // In steps, as others give signs of life while its lease runs out.
    for (let passed = 0; passed <= LEASE_MS; passed += 1_000) this.#clock.advance(1_000);
    return { isDone: false };
  }

  #arm(death: PlannedDeath | undefined, strike: () => void): () => void {
    const { onHit } = this.#options;
    if (onHit) return armAll(onHit);
    return death ? armFaultPoints([{ name: death.point, hit: death.hit, action: strike }]) : () => undefined;
  }

  /** Lets time pass where nothing else does, until the work or the process has ended; why neither does. */
  async #watch(work: Promise<void>, world: World, life: Life): Promise<string | undefined> {
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    work.then(end, end);
    let [seen, quiet] = [-1, 0];
    while (!isOver && !life.isOver) {
      await loopTurn();
      quiet = world.activity === seen ? quiet + 1 : 0;
      seen = world.activity;
      if (quiet >= QUIET_TURNS) this.#clock.advance(TICK_MS);
      this.#looks += 1;
      if (this.#looks > MOST_LOOKS) return `never at rest: ${await stateOf(this.#plain, root)}`;
    }
    return undefined;
  }

  async #elapse(work: Promise<void>): Promise<void> {
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    work.then(end, end);
    while (!isOver) {
      await loopTurn();
      this.#clock.advance(TICK_MS);
    }
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

/** What of a program is not at rest, for whoever looks why. */
export async function stateOf(stores: Stores, rootAgentId: string): Promise<string> {
  const tree = await stores.listAgents({ tenant: DEFAULT_TENANT, rootAgentId });
  const states = await Promise.all(
    tree.map(async ({ agentId, status, openTurnId, queuedTurnIds, pause, abort }) => {
      const inbox = (await stores.inbox({ tenant: DEFAULT_TENANT, agentId })).map(({ key }) => key);
      return JSON.stringify({ agentId, status, openTurnId, queuedTurnIds, pause, abort, inbox });
    }),
  );
  return states.join(" ");
}
