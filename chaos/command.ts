import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { type ChaosScenario, type StoreKind, storeKinds } from "./scenario.ts";

export interface ChaosCommand {
  /** Scenarios to run. */
  readonly names: readonly string[];
  readonly short: boolean;
  readonly rounds: number | undefined;
  /** Duration of scenarios that run for a time. */
  readonly minutes: number | undefined;
  readonly seed: number;
  /** `undefined` if each scenario uses its own. */
  readonly stores: StoreKind | undefined;
  /** Whether each step of each machine is repeated by XState and compared. */
}

const LARGEST_SEED = 2 ** 31;
const NAME_WIDTH = 24;

/** Parses the command line. Throws an error with a message for the user. */
export function readCommand(
  words: readonly string[],
  scenarios: readonly Pick<ChaosScenario, "name" | "on">[],
): ChaosCommand {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      short: { type: "boolean", default: false },
      rounds: { type: "string" },
      minutes: { type: "string" },
      seed: { type: "string" },
      stores: { type: "string" },
    },
  });
  const stores = storesNamed(values.stores);
  const canRun = ({ on }: (typeof scenarios)[number]): boolean => stores === undefined || on?.includes(stores) === true;
  const known = scenarios.map(({ name }) => name);
  const names = positionals.includes("all") ? scenarios.filter(canRun).map(({ name }) => name) : positionals;
  if (names.length === 0) throw new Error("Name a scenario, or all.");
  for (const name of names) {
    const scenario = scenarios.find((one) => one.name === name);
    if (!scenario) throw new Error(`There is no scenario "${name}"; there are ${known.join(", ")}.`);
    if (canRun(scenario)) continue;
    const choice = scenario.on ? `it runs on ${scenario.on.join(" or ")}` : "it has no choice of stores";
    throw new Error(`${name} takes no --stores ${stores}: ${choice}.`);
  }
  const seed = numberOf("--seed", values.seed, 0) ?? randomInt(LARGEST_SEED);
  const [rounds, minutes] = [numberOf("--rounds", values.rounds, 1), numberOf("--minutes", values.minutes, 1)];
  if (rounds !== undefined && minutes !== undefined) throw new Error("Give --rounds or --minutes, not both.");
  return { names, short: values.short, rounds, minutes, seed, stores };
}

function storesNamed(text: string | undefined): StoreKind | undefined {
  const kind = storeKinds.find((one) => one === text);
  if (kind !== undefined || text === undefined) return kind;
  throw new Error(`--stores is "${text}"; expected ${storeKinds.join(", ")}.`);
}

function numberOf(option: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= LARGEST_SEED) return value;
  throw new Error(`${option} is "${text}"; expected a whole number from ${least} to ${LARGEST_SEED}.`);
}

export function usage(scenarios: readonly ChaosScenario[]): string {
  const lines = scenarios.map(({ name, title }) => `  ${name.padEnd(NAME_WIDTH)}${title}`);
  return `Usage: npm run chaos -- NAME... | all [options]

${lines.join("\n")}

  --short        a small part of it, in minutes
  --rounds N     run N rounds (docs/chaos.md defines a round for each scenario)
  --minutes N    run N minutes, for scenarios without a fixed length (F30, F35)
  --seed N       draws what an earlier run with this seed has drawn
  --stores KIND  sqlite, redis, postgres or memory, for scenarios that have the choice; all: those that run on it
`;
}
