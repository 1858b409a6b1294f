import { setTimeout as delay } from "node:timers/promises";
import type { Entry } from "../../src/state/index.ts";
import { journalViolations } from "../../src/testing/simulation/journal-checks.ts";
import { restViolations } from "../../src/testing/simulation/rest-checks.ts";
import { type TreeEvidence, treeIn } from "../../src/testing/simulation/evidence.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { summaryOf } from "../summary.ts";
import {
  handOver,
  recordsOf,
  sizeOf,
  type TreeShape,
  type TreeStage,
  untilAtWork,
  withTreeStage,
} from "../tree/stage.ts";

const ROUNDS = 500;
const SHORT_ROUNDS = 2;
const full: TreeShape = { width: 5, depth: 3 };
const small: TreeShape = { width: 5, depth: 2 };
/** All turns of the tree must have ended this many milliseconds after the acknowledgement. */
const ENDED_MS = 2_000;
/** Calls granted earlier may have effects for this long, until their owner notices the abort at its next poll. */
const ON_THE_WAY_MS = 250;
/** After this time, all inboxes must be empty. */
const REST_MS = 10_000;
const LONGEST_WORK_MS = 150;

interface Round {
  readonly violations: readonly string[];
  readonly endedMs: number;
  readonly agents: number;
}

/** A fourth process aborts a tree that runs in three processes. A round is one tree. */
export const f18: ChaosScenario = {
  name: "F18",
  title: "abort of a tree 5 wide and 3 deep over three processes: all ended within 2 s, nothing started afterwards",
  on: ["sqlite", "redis"],
  run: (options) => runAborts(options, options.short ? small : full),
};

export async function runAborts(options: ChaosOptions, shape: TreeShape): Promise<ChaosReport> {
  const { seed, short, rounds: asked, progress } = options;
  const rounds = asked ?? (short ? SHORT_ROUNDS : ROUNDS);
  const random = seededRandom(seed);
  return await withTreeStage(options, shape, async (stage) => {
    const results: Round[] = [];
    // Do not measure the one-time costs of a process's first tree.
    await runRound(stage, "abort-0", random);
    for (let round = 1; round <= rounds; round += 1) {
      const result = await runRound(stage, `abort-${round}`, random);
      results.push(result);
      const state = result.violations.length === 0 ? "ok" : `VIOLATED\n  ${result.violations.join("\n  ")}`;
      if (round % 20 === 0 || state !== "ok")
        progress(`${round}/${rounds}: ended after ${result.endedMs} ms: ${state}`);
    }
    const said = stage.hands.flatMap((hand) =>
      hand.said === "" ? [] : [`a process complained: ${hand.said.slice(0, 600)}`],
    );
    const violations = [...results.flatMap((one) => one.violations), ...said];
    return reportOf(
      { name: "F18", seed },
      { operations: rounds, succeeded: results.filter((one) => one.violations.length === 0).length, violations },
      { agentsATree: sizeOf(shape), endedMs: summaryOf(results.map(({ endedMs }) => endedMs)) },
    );
  });
}

async function runRound(stage: TreeStage, root: string, random: SeededRandom): Promise<Round> {
  const [first, second, third] = stage.hands;
  if (!first || !second || !third) throw new Error("three processes are needed");
  await first.tell({ type: "build", agentId: root });
  // In a third of the rounds, the tree is aborted while it is still growing in one process.
  if (random.next() < 0.67) {
    await untilAtWork(stage, root);
    const records = await recordsOf(stage, root);
    const children = records.filter(({ parentAgentId }) => parentAgentId === root);
    await handOver(stage, records, children.slice(0, 2), [first, second]);
    await handOver(stage, records, children.slice(2, 3), [first, third]);
  }
  await delay(random.between(0, LONGEST_WORK_MS));
  const { runtime, shape } = stage;
  await (await runtime.find(root)).abort();
  const acknowledgedAt = Date.now();
  const isEnded = async (): Promise<boolean> =>
    (await recordsOf(stage, root)).every(({ openTurnId }) => openTurnId === null);
  while (!(await isEnded()) && Date.now() - acknowledgedAt < ENDED_MS * 5) await delay(10);
  const endedMs = Date.now() - acknowledgedAt;
  const tree = await atRest(stage, root);
  const violations = [
    ...(endedMs > ENDED_MS ? [`not all turns had ended after ${ENDED_MS} ms, but after ${endedMs}`] : []),
    ...tree.agents.flatMap((agent) => journalViolations(agent)),
    ...restViolations(tree),
    ...lateStarts(stage, tree, acknowledgedAt),
    ...(tree.agents.length > sizeOf(shape) ? [`${tree.agents.length} agents`] : []),
    ...((await first.tell({ type: "again", agentId: root })).status === "stopped" ? [] : ["it takes no other turn"]),
  ];
  return { violations: violations.map((text) => `${root}: ${text}`), endedMs, agents: tree.agents.length };
}

/** The tree once all inboxes are empty, or after a timeout. */
async function atRest({ runtime }: TreeStage, root: string): Promise<TreeEvidence> {
  const end = Date.now() + REST_MS;
  for (;;) {
    const tree = await treeIn(runtime.stores, root);
    if (restViolations(tree).length === 0 || Date.now() > end) return tree;
    await delay(50);
  }
}

const starts: ReadonlySet<Entry["type"]> = new Set(["model.requested", "tool.started", "child.spawned"]);

/** Calls that were granted or had effects after the abort was acknowledged. */
function lateStarts({ provider, tools }: TreeStage, { agents, rootAgentId }: TreeEvidence, at: number): string[] {
  const granted = agents.flatMap(({ agentId, entries }) =>
    entries.flatMap((entry) =>
      starts.has(entry.type) && entry.at > at
        ? [`${agentId}: ${entry.type} was granted ${entry.at - at} ms after`]
        : [],
    ),
  );
  const asked = provider.log
    .lines()
    .filter((line) => line.task.startsWith(rootAgentId) && line.at > at + ON_THE_WAY_MS)
    .map((line) => `${line.task}: the model was asked ${line.at - at} ms after`);
  const ids = new Set(agents.map(({ agentId }) => agentId));
  const begun = tools
    .flatMap((log) => log.lines())
    .filter(({ event, callId }) => event === "began" && ids.has(callId.split("#")[0] ?? ""))
    .flatMap((line) => (line.at > at + ON_THE_WAY_MS ? [`${line.callId}: begun ${line.at - at} ms after`] : []));
  return [...granted, ...asked, ...begun];
}
