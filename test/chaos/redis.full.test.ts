import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { f2, runFaults } from "../../chaos/faults/f2.ts";
import { f5 } from "../../chaos/faults/f5.ts";
import { f8 } from "../../chaos/faults/f8.ts";
import { f9 } from "../../chaos/faults/f9.ts";
import { runFight } from "../../chaos/faults/fight.ts";
import { type ChaosOptions, type ChaosReport, failureOf } from "../../chaos/scenario.ts";
import { LEASE_MS } from "../../chaos/stalls/round.ts";
import { runStalls, type Stalls } from "../../chaos/stalls/run-stalls.ts";
import type { Summary } from "../../chaos/summary.ts";
import { redisProgram } from "../support/redis-server.ts";

const timeout = 180_000;

async function shortForm(rounds: number, run: (options: ChaosOptions) => Promise<ChaosReport>): Promise<ChaosReport> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-on-redis-"));
  const report = await run({ seed: 1, short: true, rounds, stores: "redis", folder, progress: () => undefined });
  expect(report.firstViolations).toEqual([]);
  expect(failureOf(report)).toBeUndefined();
  rmSync(folder, { recursive: true, force: true });
  return report;
}

/**
 * The minimum number of rounds with a refusal: a process that was overtaken while it was stopped has its writes refused,
 * unless it learns of the loss before it writes. On a machine so busy that the others came too late, its later writes
 * were valid.
 */
function refusalsDue(report: ChaosReport, { rounds, leases }: Stalls): number {
  const { count, max } = report["takenOverMs"] as Summary;
  return count === rounds && max !== null && max < leases * LEASE_MS ? 1 : 0;
}

describe.skipIf(!redisProgram)("on Redis, in short forms", () => {
  it("F2: runs of processes killed after an effect and a commit are continued", { timeout }, async () => {
    expect(f2.on).toContain("redis");
    const report = await shortForm(1, (options) => runFaults("F2", options, ["tool.effect", "commit.after"]));
    expect(report["deaths"]).toBeGreaterThanOrEqual(2);
  });

  // Both mostly wait for leases to expire.
  it.concurrent("F3: writes of an owner that was stopped for three leases are refused", { timeout }, async () => {
    const stalls: Stalls = {
      name: "F3",
      rounds: 2,
      leases: 3,
      how: "stopped",
      points: ["model.effect", "tool.result"],
    };
    const report = await shortForm(2, (options) => runStalls(options, stalls));
    expect(report["stalls"]).toBe(2);
    expect(report["roundsWithRefusedWrites"]).toBeGreaterThanOrEqual(refusalsDue(report, stalls));
  });

  it.concurrent("F4: two others take the agents of an owner whose event loop is blocked", { timeout }, async () => {
    const stalls: Stalls = {
      name: "F4",
      rounds: 2,
      leases: 2,
      how: "blocked",
      points: ["model.result", "tool.effect"],
    };
    const report = await shortForm(2, (options) => runStalls(options, stalls));
    expect(report["stalls"]).toBe(2);
    expect(report["roundsWithRefusedWrites"]).toBeGreaterThanOrEqual(refusalsDue(report, stalls));
  });

  it("F5: no acknowledged write is lost when Redis is killed and restarted with its log", { timeout }, async () => {
    expect((await shortForm(4, (options) => f5.run(options)))["acknowledgedCommits"]).toBeGreaterThan(50);
  });

  it("F8: a full memory is reported as a retryable refusal, and an evicting Redis is refused at start", {
    timeout,
  }, async () => {
    const report = await shortForm(3, (options) => f8.run(options));
    expect(report["policiesRefused"]).toBe(7);
    expect(report["refusedCommands"]).toBeGreaterThan(0);
  });

  it("F9: no caller notices flushed scripts and cut connections", { timeout }, async () => {
    expect(await shortForm(40, (options) => f9.run(options))).toMatchObject({ refusedCommands: 0, callsTriedAgain: 0 });
  });

  it("two processes that compete for the same agents have one owner each at any time", { timeout }, async () => {
    const report = await shortForm(5, (options) => runFight(options, { agents: 20, lanes: 4 }));
    expect(report["changesOfHands"]).toBeGreaterThan(5);
  });
});
