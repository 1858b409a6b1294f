import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import type { ChaosScenario } from "./scenario.ts";

export interface ChaosCommand {
  /** Scenarios to run. */
  readonly names: readonly string[];
  readonly short: boolean;
  readonly rounds: number | undefined;
  readonly seed: number;
}

const LARGEST_SEED = 2 ** 31;

/** Reads the command line. Throws an error in words for whoever typed it. */
export function readCommand(words: readonly string[], known: readonly string[]): ChaosCommand {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: { short: { type: "boolean", default: false }, rounds: { type: "string" }, seed: { type: "string" } },
  });
  const names = positionals.includes("all") ? known : positionals;
  if (names.length === 0) throw new Error("Name a scenario, or all.");
  for (const name of names) {
    if (!known.includes(name)) throw new Error(`There is no scenario "${name}"; there are ${known.join(", ")}.`);
  }
  const seed = numberOf("--seed", values.seed, 0) ?? randomInt(LARGEST_SEED);
  return { names, short: values.short, rounds: numberOf("--rounds", values.rounds, 1), seed };
}

function numberOf(option: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= LARGEST_SEED) return value;
  throw new Error(`${option} is "${text}"; it takes a whole number from ${least} to ${LARGEST_SEED}.`);
}

export function usage(scenarios: readonly ChaosScenario[]): string {
  const lines = scenarios.map(({ name, title }) => `  ${name.padEnd(6)}${title}`);
  return `Usage: npm run chaos -- NAME... | all [options]

${lines.join("\n")}

  --short        a small part of it, in minutes
  --rounds N     so many rounds (what a round is, docs/chaos.md says)
  --seed N       draws what an earlier run with this seed has drawn
`;
}
