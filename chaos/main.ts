/**
 * `npm run chaos -- NAME | all`: runs scenarios and ends each with one line of JSON on standard output; what a person wants
 * to see meanwhile goes to standard error. Exit codes: 0, 1 (something was violated, or too little succeeded), 2 (usage).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChaosCommand, readCommand, usage } from "./command.ts";
import { type ChaosScenario, failureOf } from "./scenario.ts";
import { scenarios } from "./scenarios.ts";

async function runScenario(scenario: ChaosScenario, { seed, short, rounds }: ChaosCommand): Promise<boolean> {
  const say = (text: string): void => void process.stderr.write(`${scenario.name}: ${text}\n`);
  const folder = mkdtempSync(join(tmpdir(), `troupe-chaos-${scenario.name}-`));
  say(`${scenario.title} (seed ${seed})`);
  const begun = performance.now();
  const report = await scenario.run({ seed, short, rounds, folder, progress: say });
  const seconds = Math.round((performance.now() - begun) / 1000);
  const failure = failureOf(report);
  process.stdout.write(`${JSON.stringify({ ...report, seconds })}\n`);
  say(failure === undefined ? `held, in ${seconds} s` : `FAILED: ${failure}; look into ${folder}`);
  if (failure === undefined) rmSync(folder, { recursive: true, force: true });
  return failure === undefined;
}

async function main(words: readonly string[]): Promise<number> {
  let command: ChaosCommand;
  try {
    command = readCommand(
      words,
      scenarios.map(({ name }) => name),
    );
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage(scenarios)}`);
    return 2;
  }
  let allHeld = true;
  for (const scenario of scenarios.filter(({ name }) => command.names.includes(name))) {
    allHeld = (await runScenario(scenario, command)) && allHeld;
  }
  return allHeld ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
