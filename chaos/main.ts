/**
 * `npm run chaos -- NAME | all`: runs scenarios and prints one line of JSON for each to standard output, and for several a
 * final line with the totals. Progress goes to standard error. Exit codes: 0, 1 (a violation, a scenario that broke off,
 * too few successes, or nothing to run), 2 (usage).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasRedis } from "./ground.ts";
import { type ChaosCommand, readCommand, usage } from "./command.ts";
import { played } from "./played.ts";
import { type ChaosReport, type ChaosScenario, failureOf } from "./scenario.ts";
import { scenarios } from "./scenarios.ts";

type Verdict = "held" | "failed" | "skipped";

/** Totals of a run of several scenarios. */
interface Ran {
  readonly name: string;
  readonly verdict: Verdict;
  readonly report?: ChaosReport;
}

async function runScenario(scenario: ChaosScenario, command: ChaosCommand): Promise<Ran> {
  const { seed, short, rounds, minutes } = command;
  const stores = command.stores ?? scenario.on?.[0];
  const say = (text: string): void => void process.stderr.write(`${scenario.name}: ${text}\n`);
  if (stores === "redis" && !(await hasRedis())) {
    process.stdout.write(`${JSON.stringify({ name: scenario.name, skipped: "there is no redis-server" })}\n`);
    say("skipped: there is no redis-server");
    return { name: scenario.name, verdict: "skipped" };
  }
  const folder = mkdtempSync(join(tmpdir(), `troupe-chaos-${scenario.name}-`));
  say(`${scenario.title} (${stores === undefined ? "" : `${stores}, `}seed ${seed})`);
  const begun = performance.now();
  const options = { seed, short, rounds, minutes, stores, folder, progress: say };
  const report = await played(scenario, options);
  const seconds = Math.round((performance.now() - begun) / 1000);
  const failure = failureOf(report);
  process.stdout.write(`${JSON.stringify({ ...report, seconds })}\n`);
  say(failure === undefined ? `held, in ${seconds} s` : `FAILED: ${failure}; look into ${folder}`);
  if (failure === undefined) rmSync(folder, { recursive: true, force: true });
  return { name: scenario.name, verdict: failure === undefined ? "held" : "failed", report };
}

/** The last line of a run of several scenarios: their totals. */
function totalOf(ran: readonly Ran[], { seed }: ChaosCommand, seconds: number): object {
  const sum = (of: (report: ChaosReport) => number): number =>
    ran.reduce((total, { report }) => total + (report ? of(report) : 0), 0);
  const named = (verdict: Verdict): string[] => ran.flatMap((one) => (one.verdict === verdict ? [one.name] : []));
  return {
    name: "all",
    operations: sum(({ operations }) => operations),
    succeeded: sum(({ succeeded }) => succeeded),
    violations: sum(({ violations }) => violations),
    seed,
    held: named("held").length,
    failed: named("failed"),
    skipped: named("skipped"),
    seconds,
  };
}

async function main(words: readonly string[]): Promise<number> {
  if (words.includes("--help") || words.includes("-h")) {
    process.stdout.write(usage(scenarios));
    return 0;
  }
  let command: ChaosCommand;
  try {
    command = readCommand(words, scenarios);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage(scenarios)}`);
    return 2;
  }
  const ran: Ran[] = [];
  const begun = performance.now();
  for (const scenario of scenarios.filter(({ name }) => command.names.includes(name))) {
    ran.push(await runScenario(scenario, command));
  }
  const seconds = Math.round((performance.now() - begun) / 1000);
  if (ran.length > 1) process.stdout.write(`${JSON.stringify(totalOf(ran, command, seconds))}\n`);
  const verdicts = ran.map(({ verdict }) => verdict);
  return verdicts.includes("failed") || !verdicts.includes("held") ? 1 : 0;
}

// A runtime that died while a failing program was shrunk still keeps this process alive for the waiters of its turns.
process.exit(await main(process.argv.slice(2)));
