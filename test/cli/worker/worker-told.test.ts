// The reports of a worker: metrics, health and readiness.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { repositoryRoot } from "../../../scripts/run-command.ts";
import { readyLine, summaryLine } from "../../../src/cli/commands/worker.ts";
import { toldOf } from "../../../src/cli/worker/worker-metrics.ts";
import type { RuntimeHealth, RuntimeMetrics } from "../../../src/runtime/index.ts";

const well: RuntimeHealth = {
  isHealthy: true,
  problems: [],
  storesMs: 2,
  queues: { isHealthy: true, roundTripMs: 5, problems: [] },
  damaged: [],
  overdueSchedules: [],
  eventLoopDelayMs: 0,
};
const counted: RuntimeMetrics = {
  liveAgents: 3,
  parked: 7,
  turnsEnded: 12,
  toolJobs: 40,
  wakes: 21,
  unattended: 1,
  rolledBack: 5,
  deaths: 2,
  deadLetters: 1,
  queues: [
    {
      queue: "browser",
      waiting: 4,
      active: 2,
      delayed: 0,
      dead: 1,
      waitingSince: 1_000,
      activeSince: 2_000,
      deaths: 2,
      refused: 9,
    },
  ],
  heapUsedBytes: 1_000,
  heapLimitBytes: 2_000,
};

const workerWith = (health: RuntimeHealth, metrics: RuntimeMetrics | Error) =>
  toldOf(
    {
      health: async () => health,
      metrics: async () => (metrics instanceof Error ? Promise.reject(metrics) : metrics),
    },
    () => 1_000_000,
  );

describe("the metrics of a worker", () => {
  test("are its counters, by queue if they have one", async () => {
    const lines = (await workerWith(well, counted).metrics()).split("\n");
    expect(lines).toEqual(
      expect.arrayContaining([
        "troupe_ready 1",
        "troupe_healthy 1",
        "troupe_canary_seconds 0.005",
        "troupe_live_agents 3",
        "troupe_turns_ended_total 12",
        "troupe_turns_parked_total 7",
        "troupe_tool_jobs_total 40",
        "troupe_rolled_back_total 5",
        'troupe_queue_jobs{queue="browser",state="waiting"} 4',
        'troupe_dead_letters{queue="browser"} 1',
        'troupe_jobs_refused_total{queue="browser"} 9',
        "process_start_time_seconds 1000",
      ]),
    );
  });

  test("are all explained in docs/deploy.md", async () => {
    const guide = readFileSync(join(repositoryRoot, "docs", "deploy.md"), "utf8");
    const names = [...(await workerWith(well, counted).metrics()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
    expect(names.length).toBeGreaterThan(15);
    expect(names.filter((name = "") => !guide.includes(`\`${name}`))).toEqual([]);
  });

  test("report that Redis is away", async () => {
    const problems = ["the stores did not answer within 4000 ms"];
    const queues = { isHealthy: false, roundTripMs: null, problems: [] };
    const ill = { ...well, isHealthy: false, problems, storesMs: null, queues };
    const text = await workerWith(ill, new Error("Redis does not answer")).metrics();
    expect(text).toMatch(/^troupe_healthy 0$/m);
    expect(text).not.toMatch(/canary|turns_ended/);
    expect(await workerWith(ill, counted).health()).toMatchObject({ isGood: false, problems });
  });
});

test("a worker that leaves is healthy and not ready", async () => {
  const told = workerWith(well, counted);
  expect(await told.readiness()).toEqual({ isGood: true, problems: [] });
  told.leave();
  expect(await told.readiness()).toEqual({ isGood: false, problems: ["the worker leaves"] });
  expect(await told.health()).toMatchObject({ isGood: true });
  expect(await told.metrics()).toMatch(/^troupe_ready 0$/m);
});

describe("the output of a worker", () => {
  const readiness = { names: ["lead", "reader"], concurrency: 1, storeName: "redis://r", queuePlan: {} };

  test("contains its role and its store", () => {
    expect(readyLine({ ...readiness, metricsUrl: undefined })).toBe(
      `Worker ${process.pid} is ready on redis://r: lead, reader (1 agent at a time); no queues of tools`,
    );
    const queuePlan = { mail: {}, scan: { concurrency: 3 } };
    expect(readyLine({ ...readiness, queuePlan, metricsUrl: "http://127.0.0.1:9464" })).toMatch(
      /; queues mail \(1 at a time\), scan \(3 at a time\); metrics at http:\/\/127\.0\.0\.1:9464\/metrics$/,
    );
  });

  test("contains a summary of its work", () => {
    expect(summaryLine(counted, { left: 0, tookMs: 850 })).toBe(
      "Left after 850 ms: 12 turns ended, 7 parked, 40 tool jobs run, 2 deaths of workers observed; nothing was cut off.",
    );
    expect(summaryLine({ ...counted, deaths: 0 }, { left: 2, tookMs: 24_000 })).toBe(
      "Left after 24.0 s: 12 turns ended, 7 parked, 40 tool jobs run; 2 cut off, which other workers continue.",
    );
    expect(summaryLine(null, { left: 1, tookMs: 10 })).toBe(
      "Left after 10 ms: 1 cut off, which other workers continue.",
    );
  });
});
