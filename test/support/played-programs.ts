import { clockFrom } from "../../src/testing/simulation/pass-time.ts";
import { castOf } from "../../chaos/programs/cast.ts";
import { drawPrograms } from "../../chaos/programs/draw.ts";
import { type Death, Stage } from "../../chaos/programs/play.ts";
import type { Program } from "../../chaos/programs/program.ts";
import { faultPointNames } from "../../chaos/fault-point-names.ts";
import { Life } from "../../src/testing/simulation/life.ts";
import { World } from "../../chaos/programs/world.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import type { AgentDefinition, Stores } from "../../src/index.ts";

/** Random programs that were played to their end, with simulated deaths of their processes. */
export interface PlayedPrograms {
  readonly stores: Stores;
  /** The root agents. */
  readonly roots: readonly string[];
  /** The definitions under which they were played, in a process that does nothing. */
  readonly agents: readonly AgentDefinition[];
  close(): Promise<void>;
}

/** Programs that run at the same time. */
const WIDTH = 4;
const LONGEST_LIFE = 250;
const LATEST_HIT = 50;

/** Plays random programs in memory, or in a SQLite file. */
export async function playPrograms(options: {
  readonly seed: number;
  readonly count: number;
  readonly path?: string | undefined;
}): Promise<PlayedPrograms> {
  const { seed, count, path } = options;
  const programs = new Map<string, Program>(
    drawPrograms(seed, count).map((program, index) => [`p${seed}-${index}`, program]),
  );
  const random = seededRandom(seed);
  const deathOf = (): Death => {
    if (random.next() < 0.5) return { touches: random.between(1, LONGEST_LIFE) };
    return { point: random.pick(faultPointNames), hit: random.between(1, LATEST_HIT) };
  };
  const on = path === undefined ? "memory" : "sqlite";
  const stage = new Stage({ programs, width: WIDTH, path, options: { on }, deathOf });
  await stage.play();
  const world = new World({
    programs,
    clock: clockFrom(undefined),
    write: () => undefined,
    written: () => [],
    life: new Life(),
    reach: { isGranted: () => Promise.resolve(true) },
  });
  return { stores: stage.plain, roots: [...programs.keys()], agents: castOf(world), close: () => stage.close() };
}
