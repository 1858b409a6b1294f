import { setTimeout as delay } from "node:timers/promises";
import { backAtWork } from "../load/back-at-work.ts";
import { runLoad } from "../load/run-load.ts";
import type { ChaosScenario } from "../scenario.ts";
import { summaryOf } from "../summary.ts";

const ROUNDS = 5;
const SHORT_ROUNDS = 1;
const FROZEN_MS = 20_000;
const SHORT_FROZEN_MS = 7_000;
const LONGEST_WORK_MS = 1_500;
/** The default of the stores; it is shorter than the absence of Redis. */
const TIMEOUT_MS = 5_000;
/** Most memory of a process, however many commands are waiting. */
const MOST_MEGABYTES = 500;

/** Stops Redis with SIGSTOP: connections stay open without answers. A round is one such stop. */
export const f7: ChaosScenario = {
  name: "F7",
  title: "Redis SIGSTOP for 20 s: no rejection goes unhandled, memory stays bounded, one owner each afterwards",
  on: ["redis"],
  run: async (options) => {
    const backMs: number[] = [];
    const report = await runLoad(options, {
      name: "F7",
      rounds: options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS),
      roundsABatch: 1,
      mayRefuse: true,
      timeoutMs: TIMEOUT_MS,
      disturb: async (scene) => {
        await delay(scene.random.between(100, LONGEST_WORK_MS));
        scene.server.freeze();
        await delay(options.short ? SHORT_FROZEN_MS : FROZEN_MS);
        scene.server.thaw();
        const { ms, late } = await backAtWork(scene);
        backMs.push(ms);
        return late;
      },
    });
    const megabytes = Number(report["peakMegabytes"]);
    const fat = megabytes > MOST_MEGABYTES ? [`a process held ${megabytes} MB`] : [];
    const firstViolations = [...report.firstViolations, ...fat];
    const violations = report.violations + fat.length;
    return { ...report, violations, backAtWorkMs: summaryOf(backMs), firstViolations };
  },
};
