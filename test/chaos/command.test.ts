import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readCommand } from "../../chaos/command.ts";
import { faultPointNames } from "../../chaos/fault-point-names.ts";
import { type ChaosReport, failureOf } from "../../chaos/scenario.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { repositoryRoot, runCommand } from "../../scripts/run-command.ts";

const known = [{ name: "F2", on: ["sqlite", "redis"] as const }, { name: "F31" }];

it("parses names, a seed, and the amount of work", () => {
  expect(readCommand(["all", "--seed", "7", "--short"], known)).toEqual({
    names: ["F2", "F31"],
    short: true,
    rounds: undefined,
    minutes: undefined,
    seed: 7,
  });
  expect(readCommand(["F31", "--rounds", "3"], known)).toMatchObject({ names: ["F31"], rounds: 3, short: false });
  expect(readCommand(["F2"], known).seed).not.toBe(readCommand(["F2"], known).seed);
});

it("parses the stores, and omits the faults that they do not support", () => {
  expect(readCommand(["F2", "--stores", "redis"], known)).toMatchObject({ names: ["F2"], stores: "redis" });
  expect(readCommand(["all", "--stores", "redis"], known).names).toEqual(["F2"]);
});

it.each([
  [[], /Name a scenario/],
  [["F99"], /There is no scenario "F99"; there are F2, F31/],
  [["F2", "--rounds", "0"], /--rounds is "0"/],
  [["F2", "--seed", "x"], /--seed is "x"/],
  [["F2", "--minutes", "half"], /--minutes is "half"/],
  [["F2", "--minutes", "5", "--rounds", "5"], /--rounds or --minutes, not both/],
  [["F2", "--stores", "paper"], /--stores is "paper"; expected sqlite, redis, postgres, memory/],
  [["F31", "--stores", "redis"], /F31 takes no --stores redis: it has no choice of stores/],
])("reports the error in %j", (words, told) => {
  expect(() => readCommand(words, known)).toThrow(told);
});

it("exits with 2 and its usage for an unknown fault", async () => {
  const result = await runCommand("node", ["chaos/main.ts", "F99"]);
  expect(result.ok).toBe(false);
  expect(result.output).toMatch(/There is no scenario "F99"[^]*Usage:[^]*exit code 2/);
});

function draws(seed: number): number[] {
  const random = seededRandom(seed);
  return Array.from({ length: 20 }, () => random.between(1, 1_000));
}

it("draws the same from the same seed", () => {
  expect(draws(1)).toEqual(draws(1));
  expect(draws(1)).not.toEqual(draws(2));
});

it.each<[Partial<ChaosReport>, RegExp]>([
  [{ operations: 100, succeeded: 100, violations: 1 }, /1 violations/],
  [{ operations: 100, succeeded: 94, violations: 0 }, /only 94 of 100/],
  [{ operations: 0, succeeded: 0, violations: 0 }, /nothing was tried/],
])("counts %j as failed", (counts, told) => {
  const report = { name: "F2", seed: 1, operations: 0, succeeded: 0, violations: 0, firstViolations: [], ...counts };
  expect(failureOf(report)).toMatch(told);
});

it("passes a run with enough successes and no violation", () => {
  const report = { name: "F2", seed: 1, operations: 100, succeeded: 95, violations: 0, firstViolations: [] };
  expect(failureOf(report)).toBeUndefined();
});

it("contains every fault point of the sources", () => {
  const sources = join(repositoryRoot, "src");
  const files = readdirSync(sources, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const marked = files.flatMap((name) =>
    [...readFileSync(join(sources, name), "utf8").matchAll(/faultPoint\("([^"]+)"\)/g)].map(([, point]) => point),
  );
  expect(new Set(marked)).toEqual(new Set(faultPointNames));
});
