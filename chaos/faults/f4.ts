import type { ChaosScenario } from "../scenario.ts";
import { runStalls } from "../stalls/run-stalls.ts";

const ROUNDS = 200;
const SHORT_ROUNDS = 4;

/** Blocks the event loop of a tree's owner for two leases while two others take the tree. A round is one such block. */
export const f4: ChaosScenario = {
  name: "F4",
  title: "event loop of an owner blocked for 2 leases while two others want its agents: as F3, one owner at a time",
  on: ["redis", "sqlite", "postgres"],
  run: (options) => {
    const rounds = options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS);
    return runStalls(options, { name: "F4", rounds, leases: 2, how: "blocked" });
  },
};
