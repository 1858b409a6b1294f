import type { Account } from "../../src/index.ts";
import type { Entry } from "../../src/state/index.ts";
import { restViolations } from "../../src/testing/simulation/rest-checks.ts";
import { billedBelow, spendingViolations } from "../checks/spending-checks.ts";
import { type TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import { evidenceOf } from "../evidence.ts";
import { type Ground, withGround } from "../ground.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { runSpender, type SpendingStage, withProvider } from "../spending/stage.ts";
import { price } from "../spending/team.ts";

/** Long enough that the limit and not the machine determines how many children work concurrently. */
const SLOWEST_ANSWER_MS = 400;
const KILLS = 100;
const SHORT_KILLS = 1;
/** Model calls that each child tries to make. */
const STEPS = 12;
/** Most kills per tree. Then the next tree is killed. */
const KILLS_A_TREE = 10;

/** The size of the team, and its limits in an undisturbed run. */
export interface TeamSize {
  readonly children: number;
  readonly maxTokens: number;
  /** Dollars. */
  readonly maxCost: number;
  /** Least number of children that must work concurrently: as many as the limits allow. */
  readonly minAtOnce: number;
}

const full: TeamSize = { children: 200, maxTokens: 200_000, maxCost: 0.8, minAtOnce: 40 };
const small: TeamSize = { ...full, children: 60 };

type LimitAmount = "tokens" | "costMicros";

interface Stage extends SpendingStage {
  readonly ground: Ground;
}

interface Plan {
  readonly name: string;
  readonly size: TeamSize;
  readonly budget: { readonly maxTokens: number; readonly maxCost: number };
  /** The limit that binds. */
  readonly binding: LimitAmount;
  readonly kills: number;
}

interface Found {
  readonly plan: Plan;
  readonly kills: number;
  readonly violations: readonly string[];
  readonly figures: Readonly<Record<string, unknown>>;
}

/** Parallel subagents under one token limit and one cost limit, undisturbed and with repeated kills. A round is a kill. */
export const children: ChaosScenario = {
  name: "CHILDREN",
  title:
    "200 parallel subagents under one maxTokens and one maxCost, undisturbed and killed between reserve and settle",
  on: ["sqlite", "redis"],
  run: (options) => runChildren(options, options.short ? small : full),
};

/** The same with a team of any size. */
export function runChildren(options: ChaosOptions, size: TeamSize): Promise<ChaosReport> {
  return withGround(options, (ground) =>
    withProvider(options.folder, SLOWEST_ANSWER_MS, (provider) => runTrees({ ...provider, ground }, options, size)),
  );
}

async function runTrees(stage: Stage, options: ChaosOptions, size: TeamSize): Promise<ChaosReport> {
  const { seed, short, rounds, progress } = options;
  const random = seededRandom(seed);
  const wanted = rounds ?? (short ? SHORT_KILLS : KILLS);
  const found: Found[] = [];
  const add = async (plan: Plan): Promise<void> => {
    const one = await runTree(stage, plan, random);
    found.push(one);
    const state = one.violations.length === 0 ? "ok" : `VIOLATED\n  ${one.violations.join("\n  ")}`;
    progress(`${plan.name}: ${one.kills} kills, ${JSON.stringify(one.figures)}: ${state}`);
  };
  // The demand exceeds the limit. The other limit is set too, but wider.
  await add({
    name: "calm-tokens",
    size,
    budget: { maxTokens: size.maxTokens, maxCost: 5 },
    binding: "tokens",
    kills: 0,
  });
  await add({
    name: "calm-cost",
    size,
    budget: { maxTokens: 5e6, maxCost: size.maxCost },
    binding: "costMicros",
    kills: 0,
  });
  const killed = (): number => found.reduce((sum, { kills }) => sum + kills, 0);
  for (let tree = 1; killed() < wanted && tree <= wanted; tree += 1) {
    const kills = Math.min(KILLS_A_TREE, wanted - killed());
    const isTokens = random.next() < 0.5;
    const budget = isTokens ? { maxTokens: 1_500_000, maxCost: 50 } : { maxTokens: 5e7, maxCost: 6 };
    const binding = isTokens ? "tokens" : "costMicros";
    await add({ name: `killed-${tree}`, size, budget, binding, kills });
  }
  return reportOf(
    { name: "CHILDREN", seed },
    {
      operations: found.length,
      succeeded: found.filter(({ violations }) => violations.length === 0).length,
      violations: found.flatMap(({ violations }) => violations),
    },
    { children: size.children, kills: killed(), requests: stage.log.lines().length, ...calmFigures(found) },
  );
}

function calmFigures(found: readonly Found[]): Record<string, unknown> {
  return Object.fromEntries(found.slice(0, 2).map(({ plan, figures }) => [plan.name, figures]));
}

async function runTree(stage: Stage, plan: Plan, random: SeededRandom): Promise<Found> {
  const { name, budget } = plan;
  const store = stage.ground.locationOf(name);
  const team = { lead: `fan:${plan.size.children}`, child: `steps:${STEPS}`, childBudget: {} };
  const orders = { store, model: stage.model, team, trees: [{ agentId: name, budget }], lanes: 1 };
  const before = stage.log.lines().length;
  const violations: string[] = [];
  let kills = 0;
  for (let isOver = false; !isOver; ) {
    const place = random.pick(["model.intent", "model.effect", "model.result"]);
    const fault = kills < plan.kills ? `${place}:${random.between(1, plan.size.children)}` : "";
    const end = await runSpender(orders, fault);
    if (end.struck) kills += 1;
    else isOver = true;
    if (end.stuck !== undefined) violations.push(`${name}: ${end.stuck}`);
    violations.push(...(await midway(store, end.struck)));
  }
  const requests = stage.log.lines().slice(before);
  const [tree] = await evidenceOf(store);
  if (!tree) return { plan, kills, violations: [...violations, `${name}: nothing was stored`], figures: {} };
  violations.push(...restViolations(tree), ...spendingViolations(tree, billedBelow([name], requests, price)));
  const figures = figuresOf(tree, plan, Math.max(0, ...requests.map(({ atOnce }) => atOnce)));
  if (plan.kills === 0) violations.push(...calmViolations(figures, plan));
  return { plan, kills, violations, figures };
}

/** After a kill, too, no account has more used and reserved than its limit. */
async function midway(store: string, isKilled: boolean): Promise<string[]> {
  if (!isKilled) return [];
  const trees = await evidenceOf(store);
  return trees.flatMap(({ accounts }) => accounts.flatMap(overLimit));
}

function overLimit({ id, limits, used, reserved }: Account): string[] {
  const faults: string[] = [];
  if (used.tokens + reserved.tokens > (limits.maxTokens ?? Infinity)) faults.push("tokens");
  if (used.costMicros + reserved.costMicros > (limits.maxCostMicros ?? Infinity)) faults.push("cost");
  return faults.map((what) => `account ${id}: ${what} used and reserved are over the limit`);
}

interface Figures {
  readonly [name: string]: number | string | undefined;
  readonly limit: number;
  readonly used: number;
  readonly unconfirmed: number;
  readonly worstCall: number;
  readonly atOnce: number;
}

function figuresOf({ accounts, agents }: TreeEvidence, { binding }: Plan, atOnce: number): Figures {
  const root = accounts.find(({ parentId }) => parentId === null);
  const limit = (binding === "tokens" ? root?.limits.maxTokens : root?.limits.maxCostMicros) ?? 0;
  const entries = agents.flatMap((agent) => agent.entries);
  const used = root?.used[binding] ?? 0;
  const unconfirmed = root?.unconfirmed[binding] ?? 0;
  return { binding, limit, used, unconfirmed, worstCall: worstCallOf(entries, binding), atOnce };
}

/** Most tokens of one call: its prompt and the longest answer that it may request. */
function worstCallOf(entries: readonly Entry[], binding: LimitAmount): number {
  return entries.reduce((worst, entry) => {
    if (entry.type !== "model.requested") return worst;
    const { promptTokens, outputTokens } = entry.ask;
    const bound = { tokens: promptTokens + outputTokens, costMicros: costOf(promptTokens, outputTokens) };
    return Math.max(worst, bound[binding]);
  }, 0);
}

function costOf(inputTokens: number, outputTokens: number): number {
  return inputTokens * price.inputPerMillion + outputTokens * price.outputPerMillion;
}

function calmViolations({ limit, used, worstCall, atOnce }: Figures, { name, size }: Plan): string[] {
  const faults: string[] = [];
  if (limit - used >= worstCall)
    faults.push(`${limit - used} of ${limit} were left, and a call takes at most ${worstCall}`);
  if (atOnce < size.minAtOnce) faults.push(`only ${atOnce} worked at once`);
  return faults.map((text) => `${name}: ${text}`);
}
