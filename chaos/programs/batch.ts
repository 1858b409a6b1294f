import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/index.ts";
import { createRuntime, memoryStores, type RuntimeOptions, type Stores } from "../../src/index.ts";
import { treeIn } from "../evidence.ts";
import { openLineWriter, readLines } from "../line-log.ts";
import { isGivenUp } from "./calm-model.ts";
import { castOf, TOOL_QUEUE } from "./cast.ts";
import { Driver, driveAll } from "./drive.ts";
import { entriesOf } from "./evidence-lines.ts";
import { faultsOf } from "./faults-of.ts";
import { stateOf } from "./play.ts";
import type { Program } from "./program.ts";
import { Life, World, type WorldLine } from "./world.ts";

const PROGRAMS = "programs.json";

/** Programs that are played together on one place of stores. */
export interface Batch {
  readonly seed: number;
  readonly count: number;
  /** Where each process writes what the world has seen. */
  readonly folder: string;
}

/** Draws the programs of a batch, for each process that plays them. */
export async function drawBatch(batch: Batch): Promise<void> {
  const { drawPrograms } = await import("./draw.ts");
  const programs = drawPrograms(batch.seed, batch.count).map((program, index) => [`p${batch.seed}-${index}`, program]);
  mkdirSync(batch.folder, { recursive: true });
  writeFileSync(join(batch.folder, PROGRAMS), JSON.stringify(programs));
}

/** The programs of a batch, by the ids of their root agents. */
function programsOf({ folder }: Batch): ReadonlyMap<string, Program> {
  return new Map(JSON.parse(readFileSync(join(folder, PROGRAMS), "utf8")) as [string, Program][]);
}

/** All that the world has seen of a batch, in all of its processes. */
export function writtenIn({ folder }: Pick<Batch, "folder">): WorldLine[] {
  const logs = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
  return logs.toSorted().flatMap((name) => readLines<WorldLine>(join(folder, name)));
}

/** The world of a batch for one process, whose name is its log's. */
export function worldOf(batch: Batch, name: string): World {
  const log = openLineWriter(join(batch.folder, `${name}.jsonl`), { sync: false });
  return new World({
    programs: programsOf(batch),
    clock: systemClock,
    write: (line) => log.append(line),
    written: () => writtenIn(batch),
    life: new Life(),
  });
}

export const work: NonNullable<RuntimeOptions["work"]> = { queues: { [TOOL_QUEUE]: { concurrency: 16 } } };

/** What became of the programs of a batch. */
export interface BatchResult {
  readonly programs: number;
  /** Those that were played to their end, and were not given up by their queue. */
  readonly succeeded: number;
  readonly failures: readonly Failure[];
  readonly agents: number;
  readonly turns: number;
  readonly calls: number;
  readonly deaths: number;
}

/** A program of which something did not hold. */
export interface Failure {
  readonly root: string;
  readonly program: Program;
  readonly faults: readonly string[];
}

/** Compares what a batch has left with what must hold. `isQueued`: workers ran its turns. */
export async function auditBatch(
  stores: Stores,
  batch: Batch,
  { deaths, isQueued }: { readonly deaths: number; readonly isQueued: boolean },
): Promise<BatchResult> {
  const lines = Map.groupBy(writtenIn(batch), ({ root }) => root);
  const failures: Failure[] = [];
  const programs = programsOf(batch);
  let [succeeded, agents, turns, calls] = [0, 0, 0, 0];
  for (const [root, program] of programs) {
    const own = lines.get(root) ?? [];
    if (!own.some(({ type }) => type === "done")) {
      failures.push({ root, program, faults: [`never at rest: ${await stateOf(stores, root)}`] });
      continue;
    }
    const tree = await treeIn(stores, root);
    const ended = { program, tree, lines: own, died: deaths > 0 || isQueued, isQueued };
    const faults = faultsOf(ended);
    const ends = tree.agents.flatMap((agent) => entriesOf(agent, "turn.ended"));
    const isPlayed = !ends.some((end) => isGivenUp(ended, end));
    agents += tree.agents.length;
    turns += ends.length;
    calls += ends.reduce((sum, { toolCalls }) => sum + toolCalls, 0);
    if (faults.length > 0) failures.push({ root, program, faults });
    else if (isPlayed) succeeded += 1;
  }
  return { programs: programs.size, succeeded, failures, agents, turns, calls, deaths };
}

/** Plays a batch in this process on stores in memory, with every agent restored after each of its commits, and audits it. */
export async function playInMemory(batch: Batch, width: number): Promise<BatchResult> {
  await drawBatch(batch);
  const world = worldOf(batch, "world");
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: castOf(world), stores, restoreAfterCommit: true, work });
  try {
    await driveAll(new Driver(runtime, world), world.programs, width);
    return await auditBatch(stores, batch, { deaths: 0, isQueued: false });
  } finally {
    await runtime.shutdown();
  }
}
