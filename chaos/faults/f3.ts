import type { ChaosScenario } from "../scenario.ts";
import { runStalls } from "../stalls/run-stalls.ts";

const ROUNDS = 200;
const SHORT_ROUNDS = 4;

/** SIGSTOP of the owner of a tree for three leases, then SIGCONT. A round is one such stop. */
export const f3: ChaosScenario = {
  name: "F3",
  title: "SIGSTOP of an owner for 3 leases, then CONT: every stale write refused, the journal without gap or fork",
  on: ["redis", "sqlite", "postgres"],
  run: (options) => {
    const rounds = options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS);
    return runStalls(options, { name: "F3", rounds, leases: 3, how: "stopped" });
  },
};
