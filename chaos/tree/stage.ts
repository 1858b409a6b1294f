import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createRuntime, type Runtime } from "../../src/index.ts";
import { type AgentRecord, DEFAULT_TENANT } from "../../src/state/index.ts";
import { withGround } from "../ground.ts";
import { LineReader } from "../line-log.ts";
import type { ChaosOptions } from "../scenario.ts";
import { leafKindOf } from "../spending/script.ts";
import { type SpendingStage, withProvider } from "../spending/stage.ts";
import { TreeHand } from "./hand.ts";
import type { ToolLine } from "./worker.ts";
import { storesAt } from "../stores-at.ts";

/** A lease that does not expire within a round; dead processes are detected by their pid. */
const LEASE_MS = 30_000;
/** A tree that takes longer to reach its state is stuck, in milliseconds. */
const STUCK_MS = 60_000;
const LOOK_MS = 10;
const ROWS = 10_000;
/** Slows down leaves that take one step after the other, so that the machine has time for the fault. */
const SLOWEST_ANSWER_MS = 120;

export interface TreeShape {
  readonly width: number;
  readonly depth: number;
}

/** Three processes on one store, and this process, which cannot run agents: it observes and sends commands. */
export interface TreeStage {
  readonly provider: SpendingStage;
  readonly runtime: Runtime;
  readonly shape: TreeShape;
  readonly hands: readonly TreeHand[];
  readonly tools: readonly LineReader<ToolLine>[];
  /** Starts a replacement for a killed process. */
  start(): Promise<TreeHand>;
}

export async function withTreeStage<Found>(
  options: Pick<ChaosOptions, "folder" | "stores">,
  shape: TreeShape,
  run: (stage: TreeStage) => Promise<Found>,
): Promise<Found> {
  mkdirSync(options.folder, { recursive: true });
  return await withGround(options, (ground) =>
    withProvider(options.folder, SLOWEST_ANSWER_MS, (provider) =>
      withHands({ folder: options.folder, store: ground.locationOf("trees"), provider, shape }, run),
    ),
  );
}

interface HandsOptions {
  readonly folder: string;
  readonly store: string;
  readonly provider: SpendingStage;
  readonly shape: TreeShape;
}

async function withHands<Found>(
  { folder, store, provider, shape }: HandsOptions,
  run: (stage: TreeStage) => Promise<Found>,
): Promise<Found> {
  const hands: TreeHand[] = [];
  const tools: LineReader<ToolLine>[] = [];
  const start = async (): Promise<TreeHand> => {
    const log = join(folder, `tools-${hands.length}.jsonl`);
    const hand = await TreeHand.start({ store, model: provider.model, log, ...shape, leaseMs: LEASE_MS });
    hands.push(hand);
    tools.push(new LineReader(log));
    return hand;
  };
  const runtime = await createRuntime({ agents: [], stores: storesAt(store), leaseMs: LEASE_MS });
  try {
    for (let count = 0; count < 3; count += 1) await start();
    return await run({ provider, runtime, shape, hands, tools, start });
  } finally {
    await Promise.all(hands.map((hand) => hand.kill()));
    await runtime.shutdown();
  }
}

export function sizeOf({ width, depth }: TreeShape): number {
  return Array.from({ length: depth + 1 }, (_, level) => width ** level).reduce((sum, count) => sum + count, 0);
}

export async function recordsOf({ runtime }: TreeStage, rootAgentId: string): Promise<AgentRecord[]> {
  return await runtime.stores.listAgents({ tenant: DEFAULT_TENANT, rootAgentId, limit: ROWS });
}

/** Resolves when a condition holds. Throws after a minute. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, limitMs = STUCK_MS): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    await delay(LOOK_MS);
  }
}

/** Resolves when every leaf of the tree is working; `times` is how often each has been started. */
export async function untilAtWork(stage: TreeStage, root: string): Promise<void> {
  const { provider, shape } = stage;
  const leaves = shape.width ** shape.depth;
  await until("all leaves are at work", () => {
    const tasks = new Set(provider.log.lines().flatMap(({ model, task }) => (model === "leaf" ? [task] : [])));
    return [...tasks].filter((task) => task.startsWith(`${root}/`)).length >= leaves;
  });
}

/** Moves the subtrees of these children of the root from one process to another. */
export async function handOver(
  stage: TreeStage,
  records: readonly AgentRecord[],
  children: readonly AgentRecord[],
  [from, to]: readonly [TreeHand, TreeHand],
): Promise<void> {
  const below = (agentId: string): string[] => [
    agentId,
    ...records.filter(({ parentAgentId }) => parentAgentId === agentId).flatMap((child) => below(child.agentId)),
  ];
  const moved = children.flatMap(({ agentId }) => below(agentId));
  await from.tell({ type: "drop", agentIds: moved.toReversed() });
  await to.tell({ type: "take", agentIds: moved });
}

/** The activity of every leaf, by its task. */
export function leavesOf({ provider }: TreeStage, root: string): ReadonlyMap<string, ReturnType<typeof leafKindOf>> {
  const tasks = provider.log.lines().flatMap(({ model, task }) => (model === "leaf" ? [task] : []));
  return new Map(tasks.filter((task) => task.startsWith(`${root}/`)).map((task) => [task, leafKindOf(task)]));
}
