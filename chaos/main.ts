/**
 * `npm run chaos -- NAME | all`: runs scenarios and ends each with one line of JSON on standard output; what a person wants
 * to see meanwhile goes to standard error. Exit codes: 0, 1 (something was violated, too little succeeded, or nothing could be
 * tried), 2 (usage).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasRedis } from "./ground.ts";
import { type ChaosCommand, readCommand, usage } from "./command.ts";
import { type ChaosScenario, failureOf } from "./scenario.ts";
import { scenarios } from "./scenarios.ts";

type Verdict = "held" | "failed" | "skipped";

async function runScenario(scenario: ChaosScenario, command: ChaosCommand): Promise<Verdict> {
  const { seed, short, rounds } = command;
  const stores = command.stores ?? scenario.on?.[0];
  const say = (text: string): void => void process.stderr.write(`${scenario.name}: ${text}\n`);
  if (stores === "redis" && !(await hasRedis())) {
    process.stdout.write(`${JSON.stringify({ name: scenario.name, skipped: "there is no redis-server" })}\n`);
    say("skipped: there is no redis-server");
    return "skipped";
  }
  const folder = mkdtempSync(join(tmpdir(), `troupe-chaos-${scenario.name}-`));
  say(`${scenario.title} (${stores === undefined ? "" : `${stores}, `}seed ${seed})`);
  const begun = performance.now();
  const report = await scenario.run({ seed, short, rounds, stores, folder, progress: say });
  const seconds = Math.round((performance.now() - begun) / 1000);
  const failure = failureOf(report);
  process.stdout.write(`${JSON.stringify({ ...report, seconds })}\n`);
  say(failure === undefined ? `held, in ${seconds} s` : `FAILED: ${failure}; look into ${folder}`);
  if (failure === undefined) rmSync(folder, { recursive: true, force: true });
  return failure === undefined ? "held" : "failed";
}

async function main(words: readonly string[]): Promise<number> {
  let command: ChaosCommand;
  try {
    command = readCommand(words, scenarios);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage(scenarios)}`);
    return 2;
  }
  const verdicts: Verdict[] = [];
  for (const scenario of scenarios.filter(({ name }) => command.names.includes(name))) {
    verdicts.push(await runScenario(scenario, command));
  }
  return verdicts.includes("failed") || !verdicts.includes("held") ? 1 : 0;
}

process.exitCode = await main(process.argv.slice(2));
