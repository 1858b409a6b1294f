import { createRuntime } from "../../src/index.ts";
import type { InboxItem } from "../../src/state/index.ts";
import { restViolations } from "../../src/testing/simulation/rest-checks.ts";
import { journalViolations } from "../../src/testing/simulation/journal-checks.ts";
import { type TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import { evidenceOf } from "../evidence.ts";
import { type FaultPointName, faultPointNames, pointsElsewhere } from "../fault-point-names.ts";
import { withGround } from "../ground.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { storesAt } from "../stores-at.ts";
import { summaryOf } from "../summary.ts";
import { runWorker, stuckOf, type WorkerEnd } from "../worker-process.ts";
import { countHits, type Hits, withServers } from "./f2.ts";
import { auditSurvivor, type Snapshot, snapshot, type Stage } from "./f2-round.ts";

const ROUNDS = 300;
const SHORT_ROUNDS = 6;
const LANES = 3;
/** Fault points before the end of a turn. */
const MOST_TRIES = 8;

/** Kills an owner; a client that runs no agents aborts its turn; another process takes over. A round is one such abort. */
export const f19: ChaosScenario = {
  name: "F19",
  title:
    "abort while the owner is dead: at recovery no model, no tool and no hook is called any more, and all ends stopped",
  on: ["sqlite", "redis"],
  run: runDeadOwners,
};

interface Plan {
  readonly name: string;
  readonly point: FaultPointName;
  readonly hit: number;
  readonly recovers: boolean;
}

interface Round {
  /** `false` if the process did not die during its turn, so the round does not count. */
  readonly struck: boolean;
  readonly takenUpMs: number | undefined;
  readonly violations: readonly string[];
}

export async function runDeadOwners(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, short, progress } = options;
  const rounds = options.rounds ?? (short ? SHORT_ROUNDS : ROUNDS);
  const random = seededRandom(seed);
  return await withServers(options.folder, (servers) =>
    withGround(options, async (ground) => {
      const stage = { ...servers, ground };
      const hits = await countHits(stage);
      const plans = Array.from({ length: rounds }, (_, round) => planOf(round, hits, random));
      const results: Round[] = [];
      const lane = async (): Promise<void> => {
        for (let plan = plans.shift(); plan; plan = plans.shift()) {
          const result = await runUntilStruck(stage, plan);
          results.push(result);
          const state = result.violations.length === 0 ? "ok" : `VIOLATED\n  ${result.violations.join("\n  ")}`;
          if (state !== "ok" || results.length % 20 === 0) progress(`${results.length}/${rounds}: ${state}`);
        }
      };
      await Promise.all(Array.from({ length: LANES }, lane));
      const struck = results.filter((one) => one.struck);
      return reportOf(
        { name: f19.name, seed },
        {
          operations: rounds,
          succeeded: struck.filter(({ violations }) => violations.length === 0).length,
          violations: results.flatMap(({ violations }) => violations),
        },
        { takenUpMs: summaryOf(struck.flatMap(({ takenUpMs }) => takenUpMs ?? [])) },
      );
    }),
  );
}

function planOf(round: number, hits: Hits, random: SeededRandom): Plan {
  const points = faultPointNames.filter((name) => !pointsElsewhere.has(name) && (hits[name] ?? 0) > 0);
  const point = random.pick(points);
  const hit = random.between(1, Math.max(1, Math.floor((hits[point] ?? 1) * 0.8)));
  return { name: `f19-${round + 1}`, point, hit, recovers: random.next() < 0.5 };
}

async function runUntilStruck(stage: Stage, plan: Plan, tries = MOST_TRIES): Promise<Round> {
  const result = await runRound(stage, plan);
  if (result.struck || result.violations.length > 0 || tries === 1) return result;
  return await runUntilStruck(stage, { ...plan, name: `${plan.name}x`, hit: Math.ceil(plan.hit * 0.6) }, tries - 1);
}

async function runRound(stage: Stage, { name, point, hit, recovers }: Plan): Promise<Round> {
  const store = stage.ground.locationOf(name);
  const orders = { store, ledger: stage.ledger.address, model: stage.model.address, agentIds: [name], counts: false };
  const first = await runWorker({ ...orders, recovers: false }, { name: point, hit });
  const before = await snapshot(stage, store);
  if (!first.struck || !isOpen(before.trees)) return { struck: false, takenUpMs: undefined, violations: [] };
  await abortAs(store, name);
  const survivor = await runWorker({ ...orders, recovers });
  const after = await evidenceOf(store);
  const violations = [
    ...endOf(survivor),
    ...auditSurvivor(stage, before, after),
    ...after.flatMap((tree) => [
      ...restViolations(withoutLateEnds(tree)),
      ...tree.agents.flatMap((agent) => journalViolations(agent)),
    ]),
    ...doneSince(stage, before, name),
  ].map((text) => `${name} ${point}:${hit}: ${text}`);
  const up = survivor.lines.find((line) => line.type === "up");
  return { struck: true, takenUpMs: up?.type === "up" ? up.milliseconds : undefined, violations };
}

function isOpen(trees: readonly TreeEvidence[]): boolean {
  return trees.some(({ agents }) => agents.some(({ record }) => record.openTurnId !== null));
}

/** A parent does not need a child's result after its own turn was stopped, while its process exits. */
function withoutLateEnds(tree: TreeEvidence): TreeEvidence {
  const agents = tree.agents.map((agent) => {
    const isLate = (item: InboxItem): boolean =>
      item.kind === "child.ended" && item.parentTurnId !== agent.record.openTurnId;
    return { ...agent, inbox: agent.inbox.filter((item) => !isLate(item)) };
  });
  return { ...tree, agents };
}

/** Aborts as a client that cannot run agents. */
async function abortAs(store: string, agentId: string): Promise<void> {
  const runtime = await createRuntime({ agents: [], stores: storesAt(store) });
  try {
    await (await runtime.find(agentId)).abort("enough");
  } finally {
    await runtime.shutdown();
  }
}

function endOf(survivor: WorkerEnd): string[] {
  const stuck = stuckOf(survivor);
  if (stuck !== undefined) return [stuck];
  const ends = survivor.lines.filter((line) => line.type === "turn");
  return ends.flatMap(({ status }) => (status === "stopped" ? [] : [`its turn ended ${status}`]));
}

/** Effects of this tree after its owner died. The abort preceded the takeover, so there must be none. */
function doneSince({ ledger, model }: Stage, before: Snapshot, root: string): string[] {
  const isOurs = (text: string): boolean => text.includes(root) && !text.includes(`${root}x`);
  const attempts = ledger.log.lines().slice(before.attempts.length);
  const asked = model.log.lines().slice(before.requests);
  return [
    ...attempts.filter(({ key }) => isOurs(key)).map(({ key }) => `${key} was attempted after the abort`),
    ...asked.filter(({ task }) => isOurs(task)).map(({ task, step }) => `${task}, step ${step}: asked after the abort`),
  ];
}
