import { cpSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { textOf } from "../../src/index.ts";
import { journalViolations } from "../../src/testing/simulation/journal-checks.ts";
import { prefixViolations, spawnViolations } from "../checks/prefix-checks.ts";
import { restViolations } from "../../src/testing/simulation/rest-checks.ts";
import { type TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import { evidenceOf } from "../evidence.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { summaryOf } from "../summary.ts";
import { ask, type JobFiles, type JobRun, resume } from "./job-run.ts";

const KILLS = 30;
const SHORT_KILLS = 1;
/** Share of resumed jobs that are killed again. */
const AGAIN = 0.3;
const MOST_KILLS_OF_ONE_JOB = 4;
const QUESTION = "Which effect classes can a tool have, and what happens to a call whose process died?";

/** Kills the main job with -9 at random moments and resumes it each time. A round is one kill. */
export const job: ChaosScenario = {
  name: "JOB",
  title: "the main job killed at random moments and resumed: same answer, nothing committed is repeated",
  run: runKills,
};

interface Undisturbed {
  readonly answer: string;
  readonly milliseconds: number;
  /** When the job was stored; before that, there is nothing to lose. */
  readonly storedMs: number;
  readonly shape: string;
}

interface JobResult {
  readonly kills: number;
  /** Kills before anything was stored. The question is then asked again, and the kill does not count. */
  readonly early: number;
  readonly resumeMs: readonly number[];
  readonly violations: readonly string[];
}

async function runKills(options: ChaosOptions): Promise<ChaosReport> {
  const { folder, seed } = options;
  const random = seededRandom(seed);
  // Copy the documents, so that the answer does not change if a developer edits them meanwhile.
  const files = join(folder, "files");
  cpSync(fileURLToPath(new URL("../../docs", import.meta.url)), files, { recursive: true });
  const jobFiles = (name: string): JobFiles => ({ store: join(folder, `${name}.db`), files, question: QUESTION });
  const calm = await undisturbed(jobFiles("undisturbed"));
  options.progress(`undisturbed in ${Math.round(calm.milliseconds)} ms`);
  const wanted = options.rounds ?? (options.short ? SHORT_KILLS : KILLS);
  const results: JobResult[] = [];
  const setting = { calm, moments: new Moments(calm, random), random };
  let kills = 0;
  while (kills < wanted) {
    const result = await killAndResume(jobFiles(`job-${results.length + 1}`), setting);
    results.push(result);
    kills += result.kills;
    const state = result.violations.length === 0 ? "ok" : `VIOLATED\n  ${result.violations.join("\n  ")}`;
    options.progress(`${kills}/${wanted} kills: ${state}`);
    if (results.length > wanted * 10) throw new Error("the jobs end before they can be killed");
  }
  const violations = results.flatMap((result) => result.violations);
  const failed = results.filter((result) => result.violations.length > 0).reduce((sum, one) => sum + one.kills, 0);
  return reportOf(
    { name: "JOB", seed },
    { operations: kills, succeeded: kills - failed, violations },
    {
      jobs: results.length,
      killedBeforeAnythingWasStored: results.reduce((sum, one) => sum + one.early, 0),
      undisturbedMs: Math.round(calm.milliseconds),
      resumedMs: summaryOf(results.flatMap(({ resumeMs }) => resumeMs)),
    },
  );
}

async function undisturbed(place: JobFiles): Promise<Undisturbed> {
  // A first run fills the machine's caches. It would be slower, so it is not measured.
  await ask({ ...place, store: `${place.store}.warm-up` });
  const run = await ask(place);
  const [tree] = await evidenceOf(place.store);
  if (!run.ended || run.exitCode !== 0 || !tree || run.answer.trim() === "") {
    throw new Error(`the undisturbed job gave no answer (exit code ${run.exitCode}): ${run.stderr}`);
  }
  const createdAt = Math.min(...tree.agents.map(({ record }) => record.createdAt));
  const storedMs = Math.max(0, createdAt - run.begunAt);
  return { answer: run.answer, milliseconds: run.milliseconds, storedMs, shape: shapeOf(tree) };
}

/** The actions of a job's agents, without ids and independent of interruptions. */
function shapeOf({ agents }: TreeEvidence): string {
  const told = agents.map(({ record, entries, messages }) => {
    const answers = entries.filter(({ type }) => type === "model.responded").length;
    const results = entries.flatMap((entry) =>
      entry.type === "tool.settled" ? [`${entry.name} ${entry.outcome}`] : [],
    );
    const last = textOf(messages.at(-1)?.content ?? "");
    return `${record.definition.name}: ${answers} answers; ${results.sort().join(", ")}; ${last}`;
  });
  return told.sort().join("\n");
}

/** Moments during a job's work. Adapts if the machine becomes faster or slower. */
class Moments {
  readonly #calm: Undisturbed;
  readonly #random: SeededRandom;
  #pace = 1;

  constructor(calm: Undisturbed, random: SeededRandom) {
    this.#calm = calm;
    this.#random = random;
  }

  /** Milliseconds after the start of a process. */
  next(): number {
    const { storedMs, milliseconds } = this.#calm;
    return Math.round(this.#pace * (storedMs + this.#random.next() * (milliseconds - storedMs)));
  }

  wasTooEarly(): void {
    this.#pace *= 1.25;
  }

  wasTooLate(run: JobRun): void {
    this.#pace = run.milliseconds / this.#calm.milliseconds;
  }
}

interface Setting {
  readonly calm: Undisturbed;
  readonly moments: Moments;
  readonly random: SeededRandom;
}

async function killAndResume(place: JobFiles, { calm, moments, random }: Setting): Promise<JobResult> {
  const violations: string[] = [];
  const resumeMs: number[] = [];
  let kills = 0;
  let early = 0;
  let run = await ask(place, moments.next());
  if (run.ended) moments.wasTooLate(run);
  while (!run.ended) {
    const before = await evidenceOf(place.store);
    const isStored = before.length > 0;
    if (isStored) kills += 1;
    else {
      early += 1;
      moments.wasTooEarly();
    }
    const goesOn = !isStored || (random.next() < AGAIN && kills < MOST_KILLS_OF_ONE_JOB);
    const next = goesOn ? moments.next() : undefined;
    run = isStored ? await resume(place, next) : await ask(place, next);
    if (run.ended && isStored) resumeMs.push(run.milliseconds);
    violations.push(...prefixViolations(before, await evidenceOf(place.store)));
  }
  violations.push(...(await auditEnd(place, calm, run)));
  return { kills, early, resumeMs, violations: violations.map((text) => `${place.store}: ${text}`) };
}

async function auditEnd(place: JobFiles, calm: Undisturbed, run: JobRun): Promise<string[]> {
  const violations: string[] = [];
  if (run.exitCode !== 0) violations.push(`it ended with exit code ${run.exitCode}: ${run.stderr}`);
  if (run.answer !== calm.answer) violations.push(`another answer: ${run.answer.slice(0, 300)}`);
  const trees = await evidenceOf(place.store);
  const [tree] = trees;
  if (!tree || trees.length > 1) return [...violations, `${trees.length} jobs are in the store`];
  if (shapeOf(tree) !== calm.shape)
    violations.push(`its agents did something else:\n${shapeOf(tree)}\nnot\n${calm.shape}`);
  violations.push(...restViolations(tree), ...spawnViolations(tree), ...tree.agents.flatMap(journalViolations));
  const again = await resume(place);
  if (again.answer !== calm.answer) violations.push(`resuming the finished job printed: ${again.answer.slice(0, 300)}`);
  const later = await evidenceOf(place.store);
  if (JSON.stringify(entriesOf(later)) !== JSON.stringify(entriesOf(trees))) {
    violations.push("resuming the finished job wrote to its journal");
  }
  return violations;
}

function entriesOf(trees: readonly TreeEvidence[]) {
  return trees.flatMap(({ agents }) => agents.map(({ entries }) => entries));
}
