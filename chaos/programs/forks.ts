import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cutPointAt, type CutPoint, forkedTree, forkPoints } from "../../src/runtime/index.ts";
import { DEFAULT_TENANT } from "../../src/state/index.ts";
import type { StoredTree, Stores } from "../../src/stores/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import type { SeededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { type Death, Stage } from "./play.ts";
import type { Program } from "./program.ts";

/*
 * Forks of programs (F36): a program is played, its tree is forked at random points, and each fork is played to its end by processes
 * that are killed. No tool with an effect outside may run in a fork.
 */

const ORIGIN = "program";
/** Forks of one program, each of the last tree or of the origin. */
export const FORKS = 3;
const MOST_DEATHS = 2;
/** The tools of class `none`. */
const harmless: ReadonlySet<string> = new Set(["look", "look_queued"]);
const LONGEST_LIFE = 6;

export interface ForksPlayed {
  readonly forks: number;
  readonly deaths: number;
  /** Forks with violations. */
  readonly failed: number;
  /** Results that forks got from recorded calls. */
  readonly recorded: number;
  /** The violations in words. */
  readonly faults: readonly string[];
}

/** Plays a program, and forks of it. `on`: where the forks are stored. */
export async function playForks(program: Program, random: SeededRandom, on: "memory" | "sqlite"): Promise<ForksPlayed> {
  const origin = await playedOrigin(program);
  const trees = [origin];
  const played = { forks: 0, deaths: 0, failed: 0, recorded: 0, faults: [] as string[] };
  for (let index = 0; index < FORKS; index += 1) {
    const tree = random.next() < 0.5 ? origin : (trees.at(-1) ?? origin);
    const point = random.next() < 0.5 ? drawnPoint(tree, random) : drawnCommit(tree, random);
    if (!point) break;
    const root = `fork-${index}`;
    const options = { agentId: root, now: createFakeClock().now(), allowed: [], messages: new Map() };
    const all = new Set(tree.agents.map(({ record }) => record.agentId));
    const forked = forkedTree(tree, point, { ...options, resolvesAgain: all });
    const one = await playFork({ program, root, forked, random, on });
    played.forks += 1;
    played.deaths += one.deaths;
    played.recorded += one.recorded;
    played.failed += one.faults.length === 0 ? 0 : 1;
    const where = `fork ${index} of ${tree.rootAgentId} at ${point.turn}:${point.step ?? "end"}, commit ${point.cursor}`;
    played.faults.push(...one.faults.map((fault) => `${where}: ${fault}`));
    trees.push(one.tree);
  }
  return played;
}

function drawnPoint(tree: StoredTree, random: SeededRandom): CutPoint | undefined {
  const points = forkPoints(tree);
  const point = points[random.between(0, points.length - 1)];
  return point && cutPointAt(tree, { turn: point.turn, step: point.step ?? undefined });
}

/** The point after any commit, as if the tree had been exported then: calls, requests and subagents may be open. */
function drawnCommit(tree: StoredTree, random: SeededRandom): CutPoint | undefined {
  const begun = tree.rows.findIndex(({ entries }) => entries.some(({ type }) => type === "turn.started"));
  if (begun < 0) return undefined;
  const rows = tree.rows.slice(0, random.between(begun, tree.rows.length - 1) + 1);
  const last = forkPoints({ rootAgentId: tree.rootAgentId, rows }).at(-1);
  return last && { ...last, step: null, cursor: (rows.at(-1)?.cursor ?? 0) + 1, entries: 0 };
}

async function playedOrigin(program: Program): Promise<StoredTree> {
  const programs = new Map([[ORIGIN, program]]);
  const stage = new Stage({ programs, width: 1, path: undefined, options: { on: "memory" }, deathOf: () => undefined });
  try {
    await stage.play();
    return await treeOf(stage.plain, ORIGIN);
  } finally {
    await stage.close();
  }
}

async function treeOf(stores: Stores, root: string): Promise<StoredTree> {
  const tree = await stores.exportTree(DEFAULT_TENANT, root);
  if (!tree) throw new Error(`the tree of ${root} is not stored`);
  return tree;
}

interface ForkToPlay {
  readonly program: Program;
  readonly root: string;
  readonly forked: StoredTree;
  readonly random: SeededRandom;
  readonly on: "memory" | "sqlite";
}

async function playFork({ program, root, forked, random, on }: ForkToPlay) {
  const deaths: Death[] = Array.from({ length: random.between(0, MOST_DEATHS) }, () => ({
    touches: random.between(1, LONGEST_LIFE),
  }));
  const folder = on === "memory" ? undefined : mkdtempSync(join(tmpdir(), "troupe-fork-"));
  const path = folder === undefined ? undefined : join(folder, "fork.db");
  const programs = new Map([[root, program]]);
  const stage = new Stage({ programs, width: 1, path, options: { on }, deathOf: () => deaths.shift() });
  try {
    await stage.plain.importTree(forked, "fork", { replaces: "absent" });
    await stage.play();
    const tree = await treeOf(stage.plain, root);
    return { tree, deaths: stage.deaths, recorded: recordedIn(tree), faults: faultsOf(stage, forked, tree) };
  } finally {
    await stage.close();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

function faultsOf({ lines }: Stage, forked: StoredTree, tree: StoredTree): string[] {
  const faults: string[] = [];
  if (!lines.some(({ type }) => type === "done")) faults.push("it did not end");
  for (const line of lines) {
    if (line.type === "fault") faults.push(line.text);
    if (line.type === "asked" && line.fault !== undefined) faults.push(`its prompt is wrong: ${line.fault}`);
    if (line.type === "attempt" && !harmless.has(line.tool)) faults.push(`${line.tool} ran in call ${line.callId}`);
  }
  const past = new Map(forked.agents.map(({ record, seq }) => [record.agentId, seq]));
  for (const { agentId, entries } of tree.rows) {
    for (const entry of entries) {
      if (entry.seq <= (past.get(agentId) ?? 0) || entry.type !== "tool.started" || entry.effect === "none") continue;
      faults.push(`${entry.name} was started in call ${entry.callId}`);
    }
  }
  for (const { record, inbox } of tree.agents) {
    if (record.openTurnId !== null) faults.push(`${record.agentId} has the open turn ${record.openTurnId}`);
    if (inbox.some(({ kind }) => kind !== "abort")) faults.push(`${record.agentId} has an inbox`);
    if (record.forkedFrom === undefined) faults.push(`${record.agentId} is not marked as forked`);
  }
  for (const { id, reserved } of tree.accounts) {
    if (reserved.tokens !== 0 || reserved.costMicros !== 0) faults.push(`${id} has reservations at the end`);
  }
  return faults;
}

function recordedIn({ rows }: StoredTree): number {
  const ends = rows.flatMap(({ entries }) =>
    entries.flatMap((entry) => (entry.type === "tool.settled" ? [entry] : [])),
  );
  return ends.filter(({ recorded }) => recorded !== undefined).length;
}
