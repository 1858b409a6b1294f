import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { f1 } from "../../chaos/faults/f1.ts";
import { f2, runFaults } from "../../chaos/faults/f2.ts";
import { f5 } from "../../chaos/faults/f5.ts";
import { runFight } from "../../chaos/faults/fight.ts";
import { type ChaosOptions, type ChaosReport, failureOf } from "../../chaos/scenario.ts";
import { runStalls } from "../../chaos/stalls/run-stalls.ts";
import { postgresProgram } from "../support/postgres-server.ts";
import { redisProgram } from "../support/redis-server.ts";

const timeout = 180_000;

async function shortForm(rounds: number, run: (options: ChaosOptions) => Promise<ChaosReport>): Promise<ChaosReport> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-on-postgres-"));
  const report = await run({ seed: 1, short: true, rounds, stores: "postgres", folder, progress: () => undefined });
  expect(report.firstViolations).toEqual([]);
  expect(failureOf(report)).toBeUndefined();
  rmSync(folder, { recursive: true, force: true });
  return report;
}

describe.skipIf(!postgresProgram)("on Postgres, in short forms", () => {
  it.skipIf(!redisProgram)(
    "F1: agents of killed workers are continued, with queues in Redis",
    { timeout },
    async () => {
      expect((await shortForm(3, (options) => f1.run(options)))["deaths"]).toBe(3);
    },
  );

  it("F2: runs of processes killed after an effect and a commit are continued", { timeout }, async () => {
    expect(f2.on).toContain("postgres");
    const report = await shortForm(1, (options) => runFaults("F2", options, ["tool.effect", "commit.after"]));
    expect(report["deaths"]).toBeGreaterThanOrEqual(2);
  });

  // Both mostly wait for leases to expire.
  it.concurrent("F3: writes of an owner that was stopped for three leases are refused", { timeout }, async () => {
    const stalls = { name: "F3", rounds: 1, leases: 3, how: "stopped", points: ["model.effect"] } as const;
    expect((await shortForm(1, (options) => runStalls(options, stalls)))["stalls"]).toBe(1);
  });

  it.concurrent("F4: two others take the agents of an owner whose event loop is blocked", { timeout }, async () => {
    const stalls = { name: "F4", rounds: 1, leases: 2, how: "blocked", points: ["tool.effect"] } as const;
    expect((await shortForm(1, (options) => runStalls(options, stalls)))["stalls"]).toBe(1);
  });

  it("F5: no acknowledged write is lost when Postgres is killed and restarted", { timeout }, async () => {
    expect((await shortForm(4, (options) => f5.run(options)))["acknowledgedCommits"]).toBeGreaterThan(50);
  });

  it("two processes that compete for the same agents have one owner each at any time", { timeout }, async () => {
    const report = await shortForm(5, (options) => runFight(options, { agents: 20, lanes: 4 }));
    expect(report["changesOfHands"]).toBeGreaterThan(5);
  });
});
