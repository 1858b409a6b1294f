import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runChildren } from "../../chaos/faults/children.ts";
import { runFaults } from "../../chaos/faults/f2.ts";
import { f27 } from "../../chaos/faults/f27.ts";
import { nine } from "../../chaos/faults/nine.ts";
import { type ChaosOptions, type ChaosReport, failureOf } from "../../chaos/scenario.ts";

const timeout = 180_000;

async function shortForm(rounds: number, run: (options: ChaosOptions) => Promise<ChaosReport>): Promise<ChaosReport> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-spending-"));
  const report = await run({ seed: 1, short: true, rounds, folder, progress: () => undefined });
  expect(report.firstViolations).toEqual([]);
  expect(failureOf(report)).toBeUndefined();
  rmSync(folder, { recursive: true, force: true });
  return report;
}

it("F15, a short form: a process killed with open reservations leaves no refund and no double charge", {
  timeout,
}, async () => {
  const report = await shortForm(1, (options) => runFaults("F15", options, ["model.effect", "generate.intent"]));
  expect(report["deaths"]).toBeGreaterThanOrEqual(2);
  expect(report["unconfirmedCalls"]).toBeGreaterThanOrEqual(2);
});

it("F27, a short form: models that always call a tool end at exactly their step limit", { timeout }, async () => {
  const trees = 24;
  expect((await shortForm(trees, (options) => f27.run(options))).succeeded).toBe(trees);
});

it("8 parallel children under a limit of 9 model calls make exactly 9", { timeout }, async () => {
  expect(await shortForm(6, (options) => nine.run(options))).toMatchObject({ requests: 54 });
});

it("a team under one limit of tokens and cost ends within one call of it, also if it is killed", {
  timeout,
}, async () => {
  const size = { children: 12, maxTokens: 40_000, maxCost: 0.16, minAtOnce: 6 };
  expect(await shortForm(1, (options) => runChildren(options, size))).toMatchObject({ kills: 1, succeeded: 3 });
});
