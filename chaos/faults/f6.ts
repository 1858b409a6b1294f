import { setTimeout as delay } from "node:timers/promises";
import { backAtWork } from "../load/back-at-work.ts";
import { runLoad } from "../load/run-load.ts";
import type { ChaosScenario } from "../scenario.ts";
import { summaryOf } from "../summary.ts";

const absences = [1, 3, 8, 12, 60] as const;
const SHORT_ROUNDS = 2;
const LONGEST_WORK_MS = 1_500;
/** The default of the stores; it is shorter than the absence of Redis. */
const TIMEOUT_MS = 5_000;

/** Kills Redis and restarts it some seconds later. A round is one absence; the shortest comes first. */
export const f6: ChaosScenario = {
  name: "F6",
  title: "Redis away for 1, 3, 8, 12 and 60 s: every process works again within 10 s of its return, nothing is lost",
  on: ["redis"],
  run: async (options) => {
    const backMs: number[] = [];
    const report = await runLoad(options, {
      name: "F6",
      rounds: options.rounds ?? (options.short ? SHORT_ROUNDS : absences.length),
      roundsABatch: 1,
      mayRefuse: true,
      timeoutMs: TIMEOUT_MS,
      disturb: async (scene) => {
        await delay(scene.random.between(100, LONGEST_WORK_MS));
        await scene.server.kill();
        await delay((absences[scene.round % absences.length] ?? 1) * 1_000);
        await scene.server.launch();
        const { ms, late } = await backAtWork(scene);
        backMs.push(ms);
        return late;
      },
    });
    return { ...report, backAtWorkMs: summaryOf(backMs) };
  },
};
