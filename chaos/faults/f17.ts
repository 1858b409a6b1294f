import { setTimeout as delay } from "node:timers/promises";
import type { Account } from "../../src/index.ts";
import { DEFAULT_TENANT } from "../../src/state/index.ts";
import { journalViolations } from "../../src/testing/simulation/journal-checks.ts";
import { treeIn } from "../../src/testing/simulation/evidence.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { summaryOf } from "../summary.ts";
import {
  handOver,
  leavesOf,
  recordsOf,
  type TreeShape,
  type TreeStage,
  untilAtWork,
  withTreeStage,
} from "../tree/stage.ts";

const ROUNDS = 60;
const shape: TreeShape = { width: 3, depth: 2 };
const TEN_MINUTES = 600_000;
/** Everything must be cut this many milliseconds after the due time. */
const CUT_MS = 250;
/** A deadline that is reached only when the clock is set forward. */
const FAR_MS = 400_000;
/** From the last check of the tree to the due time, in milliseconds: the time to set clocks and to wait. */
const AHEAD_MS = 1_500;
const PATIENCE_MS = 10_000;
/** After this many milliseconds, calls that were cut off when a process released agents are in the logs. */
const HANDED_OVER_MS = 200;

/** The limit of the root's turn, and the change to the clocks of its processes. */
const kinds = ["maxSeconds", "maxSeconds, set", "deadline", "deadline passed by a jump", "owner dies"] as const;
type Kind = (typeof kinds)[number];
/** A short run starts with the kinds that others do not cover, because each kind takes three processes. */
const shortKinds: readonly Kind[] = ["maxSeconds, set", "deadline passed by a jump", "owner dies"];

interface Round {
  readonly kind: Kind;
  readonly lateMs: number;
  readonly violations: readonly string[];
}

/** Time limits over three processes whose clocks are moved by ten minutes. A round is one tree that is cut. */
export const f17: ChaosScenario = {
  name: "F17",
  title:
    "limits of time over three processes, clocks set by 10 minutes: calls and tools cut within 250 ms, no lease moves",
  on: ["sqlite", "redis"],
  run: (options) => {
    const chosen = options.short ? shortKinds : kinds;
    return runClocks(options, chosen, options.rounds ?? (options.short ? chosen.length : ROUNDS));
  },
};

export async function runClocks(
  { seed, folder, stores, progress }: ChaosOptions,
  chosen: readonly Kind[],
  rounds: number,
): Promise<ChaosReport> {
  const random = seededRandom(seed);
  const results: Round[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const kind = chosen[(round - 1) % chosen.length] ?? "maxSeconds";
    const result = await withTreeStage({ folder: `${folder}/${round}`, stores }, shape, (stage) =>
      runRound(stage, `time-${round}`, kind, random),
    );
    results.push(result);
    const state = result.violations.length === 0 ? "ok" : `VIOLATED\n  ${result.violations.join("\n  ")}`;
    progress(`${round}/${rounds} ${kind}: cut ${result.lateMs} ms late: ${state}`);
  }
  const violations = results.flatMap((one) => one.violations);
  const succeeded = results.filter((one) => one.violations.length === 0).length;
  const lateMs = summaryOf(results.map((one) => one.lateMs));
  return reportOf({ name: "F17", seed }, { operations: rounds, succeeded, violations }, { lateMs });
}

async function runRound(stage: TreeStage, root: string, kind: Kind, random: SeededRandom): Promise<Round> {
  const [first, second, third] = stage.hands;
  if (!first || !second || !third) throw new Error("three processes are needed");
  const isDeadline = kind.startsWith("deadline");
  const maxSeconds = isDeadline ? {} : { maxSeconds: 12 };
  const deadline = isDeadline ? { deadlineInMs: kind === "deadline" ? 12_000 : FAR_MS } : {};
  await first.tell({ type: "build", agentId: root, ...maxSeconds, ...deadline });
  await untilAtWork(stage, root);
  const records = await recordsOf(stage, root);
  const children = records.filter(({ parentAgentId }) => parentAgentId === root);
  await handOver(stage, records, children.slice(0, 1), [first, second]);
  await handOver(stage, records, children.slice(1, 2), [first, third]);
  await delay(HANDED_OVER_MS);
  let quietFrom = Date.now();
  const holders = await holdersOf(stage, root);
  const violations: string[] = [];
  let dueAt = dueAtOf(await rootAccount(stage, root));
  let earliestAt = dueAt;
  await delay(Math.max(0, Math.min(dueAt, Date.now() + AHEAD_MS) - Date.now() - AHEAD_MS));
  if (kind === "maxSeconds, set") {
    for (const hand of stage.hands) await hand.tell({ type: "jump", by: random.pick([TEN_MINUTES, -TEN_MINUTES, 0]) });
    await delay(300);
    if ((await holdersOf(stage, root)).join() !== holders.join()) violations.push("a lease changed hands");
  }
  if (kind === "deadline passed by a jump") {
    for (const hand of stage.hands) await hand.tell({ type: "jump", by: -TEN_MINUTES });
    await delay(300);
    if (await isOver(stage, root)) violations.push("it was cut by a clock that was set back");
    // The first clock may cut before the others are set; after the last one is set, all must have cut.
    earliestAt = Date.now();
    for (const hand of stage.hands) await hand.tell({ type: "jump", by: 2 * TEN_MINUTES });
    dueAt = Date.now();
  }
  if (kind === "owner dies") {
    await first.kill();
    // The second process must start before it can take over the tree, which has no owner until then.
    await second.tell({ type: "take", agentIds: [root] });
    dueAt = dueAtOf(await rootAccount(stage, root));
    earliestAt = dueAt;
    quietFrom = Date.now();
  }
  while (!(await isOver(stage, root)) && Date.now() < dueAt + PATIENCE_MS) await delay(10);
  violations.push(...(await ended(stage, root, { from: quietFrom, to: earliestAt - 20 })));
  const lateMs = Math.max(0, ...cutsOf(stage, root).map((at) => at - dueAt));
  if (lateMs > CUT_MS) violations.push(`something was cut ${lateMs} ms after the due time`);
  return { kind, lateMs, violations: violations.map((text) => `${root} (${kind}): ${text}`) };
}

async function ended(stage: TreeStage, root: string, quiet: { from: number; to: number }): Promise<string[]> {
  const violations: string[] = [];
  const early = cutsOf(stage, root).filter((at) => at > quiet.from && at < quiet.to);
  if (early.length > 0) violations.push(`${early.length} were cut before the due time`);
  if (!(await isOver(stage, root))) return [...violations, "it was not cut at all"];
  const { agents, accounts } = await treeIn(stage.runtime.stores, root);
  violations.push(...agents.flatMap((agent) => journalViolations(agent)));
  const reasons = agents[0]?.entries.flatMap((entry) => (entry.type === "turn.ended" ? [entry.stopReason] : []));
  if (reasons?.join() !== "time_limit") violations.push(`its root ended ${reasons?.join()}`);
  const account = accounts.find(({ parentId }) => parentId === null);
  const { maxActiveMs } = account?.limits ?? {};
  const used = account?.used.activeMs ?? 0;
  if (maxActiveMs !== undefined && (used < maxActiveMs || used > maxActiveMs + 1_000)) {
    violations.push(`${used} ms of work were counted, of ${maxActiveMs}`);
  }
  return violations;
}

/** The times at which the tree's hanging model calls and waiting tools were cut. */
function cutsOf(stage: TreeStage, root: string): number[] {
  const leaves = leavesOf(stage, root);
  const calls = stage.provider.gone.lines().flatMap(({ task, at }) => (leaves.has(task) ? [at] : []));
  const tools = stage.tools.flatMap((log) => log.lines()).flatMap((line) => (line.event === "cut" ? [line.at] : []));
  return [...calls, ...tools];
}

async function isOver(stage: TreeStage, root: string): Promise<boolean> {
  return (await recordsOf(stage, root)).every(({ openTurnId }) => openTurnId === null);
}

async function rootAccount({ runtime }: TreeStage, root: string): Promise<Account> {
  const account = (await runtime.accounts(root)).find(({ parentId }) => parentId === null);
  if (!account) throw new Error(`${root} has no account`);
  return account;
}

/** A deadline uses this process's clock, which is never set; working time uses the store's clock. */
function dueAtOf({ limits, activeSince, used }: Account): number {
  if (limits.deadlineAt !== undefined) return limits.deadlineAt;
  return (activeSince ?? Date.now()) + (limits.maxActiveMs ?? 0) - used.activeMs;
}

async function holdersOf(stage: TreeStage, root: string): Promise<string[]> {
  const records = await recordsOf(stage, root);
  return await Promise.all(
    records.map(async ({ agentId }) => {
      const holder = await stage.runtime.stores.holder({ tenant: DEFAULT_TENANT, agentId });
      return `${agentId}:${holder?.process.pid}:${holder?.epoch}`;
    }),
  );
}
