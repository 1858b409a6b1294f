import type { FaultPointName } from "../fault-point-names.ts";
import type { ChaosScenario } from "../scenario.ts";
import { runFaults } from "./f2.ts";

const ROUNDS = 50;
const SHORT_ROUNDS = 1;

/** Fault points at which something is reserved: in calls of steps, and in calls by hooks and tools. */
export const reservedPoints: readonly FaultPointName[] = [
  "model.intent",
  "model.effect",
  "model.result",
  "generate.intent",
  "generate.effect",
  "generate.result",
];

/** SIGKILL between reserve and settle. A round is one kill at one of six fault points. */
export const f15: ChaosScenario = {
  name: "F15",
  title: "SIGKILL between reserve and settle: settled once, as billed or in full as unconfirmed; nothing is refunded",
  on: ["sqlite", "redis"],
  run: (options) =>
    runFaults("F15", { ...options, rounds: options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS) }, reservedPoints),
};
