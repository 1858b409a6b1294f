import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../src/index.ts";
import { LineReader, openLineWriter } from "../line-log.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { audit, type PlayedResult } from "./audit.ts";
import { type Death, Stage } from "./play.ts";
import type { Program } from "./program.ts";
import { faultPointNames } from "../fault-point-names.ts";
import type { Reach } from "../../src/testing/simulation/reach.ts";
import { Life } from "../../src/testing/simulation/life.ts";
import { World, type WorldLine } from "./world.ts";

const PROGRAMS = "programs.json";

/** Programs that are played together in one store location. */
export interface Batch {
  readonly seed: number;
  readonly count: number;
  /** Folder of the world logs, one per process. */
  readonly folder: string;
}

/** The programs of a batch, by root agent id. */
async function drawn({ seed, count }: Pick<Batch, "seed" | "count">): Promise<ReadonlyMap<string, Program>> {
  const { drawPrograms } = await import("./draw.ts");
  return new Map(drawPrograms(seed, count).map((program, index) => [`p${seed}-${index}`, program]));
}

/** Draws the programs of a batch and stores them for the processes that play them. */
export async function drawBatch(batch: Batch): Promise<void> {
  const programs = await drawn(batch);
  mkdirSync(batch.folder, { recursive: true });
  writeFileSync(join(batch.folder, PROGRAMS), JSON.stringify([...programs]));
}

/** The programs of a drawn batch. */
export function programsOf({ folder }: Pick<Batch, "folder">): ReadonlyMap<string, Program> {
  return new Map(JSON.parse(readFileSync(join(folder, PROGRAMS), "utf8")) as [string, Program][]);
}

/** The logs of a batch. Only new lines are read. */
export class BatchLogs {
  readonly #folder: string;
  readonly #readers = new Map<string, LineReader<WorldLine>>();

  constructor({ folder }: Pick<Batch, "folder">) {
    this.#folder = folder;
  }

  /** All lines of the world logs, from all processes. */
  lines(): WorldLine[] {
    const logs = readdirSync(this.#folder).filter((name) => name.endsWith(".jsonl"));
    return logs.toSorted().flatMap((name) => {
      const reader = this.#readers.get(name) ?? new LineReader<WorldLine>(join(this.#folder, name));
      this.#readers.set(name, reader);
      return reader.lines();
    });
  }
}

/** The world of a batch for one process; the log is named after the process. */
export function worldOf(batch: Batch, { name, clock, reach }: { name: string; clock: Clock; reach: Reach }): World {
  const log = openLineWriter(join(batch.folder, `${name}.jsonl`), { sync: false });
  const logs = new BatchLogs(batch);
  return new World({
    programs: programsOf(batch),
    clock,
    write: (line) => log.append(line),
    written: () => logs.lines(),
    life: new Life(),
    reach,
  });
}

/** Most touches of the world by programs before a simulated process dies. */
const LONGEST_LIFE = 250;
/** Most passes of the fault point at which it dies. */
const LATEST_HIT = 50;

/** Plays a batch in this process on stores in memory, with simulated deaths at fault points and touches, and audits it. */
export async function playInMemory(batch: Omit<Batch, "folder">, width: number): Promise<PlayedResult> {
  const programs = await drawn(batch);
  const random = seededRandom(batch.seed);
  const deathOf = (): Death => {
    if (random.next() < 0.5) return { touches: random.between(1, LONGEST_LIFE) };
    return { point: random.pick(faultPointNames), hit: random.between(1, LATEST_HIT) };
  };
  const options = { on: "memory", restores: random.next() < 0.5 } as const;
  const stage = new Stage({ programs, width, path: undefined, options, deathOf });
  try {
    await stage.play();
    const { plain: stores, lines, deaths } = stage;
    return await audit({ stores, programs, lines, deaths, isQueued: false });
  } finally {
    await stage.close();
  }
}
