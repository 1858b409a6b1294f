import { storeKinds } from "../ours/open-stores.ts";
import type { Side, Study } from "../study.ts";
import { growthPairs } from "./growth.ts";
import { firstSide, lateSide, windowed } from "./late-turn.ts";

/** Concurrent agents of a sample, and turns of each. Fewer agents if they have many earlier turns. */
const agentsAt = (turn: number): number => (turn >= 10_000 ? 2 : 8);
const TURNS = 4;

/** Turn N of agents whose model sees only the open turn. The model is in this process. */
export const growthTurns: Study = {
  name: "growth-turns",
  title: "turn 1 to 10,000 of an agent (1,000 with --quick)",
  unit: "ms/turn",
  plan: (quick) => (quick ? { warmUps: 2, rounds: 7 } : { warmUps: 4, rounds: 21 }),
  pairs: async (quick) => growthOfTurns(quick ? [1, 100, 1_000] : [1, 100, 300, 1_000, 3_000, 10_000]),
};

export function growthOfTurns(turns: readonly number[]) {
  return growthPairs(
    "turn",
    turns,
    storeKinds.map((stores) => {
      const contender = windowed(stores);
      const sideAt = (turn: number): Side => {
        const count = agentsAt(turn);
        if (turn === 1) return firstSide(contender, count * TURNS);
        return lateSide(contender, { turn, count, turnsPerSample: TURNS });
      };
      return { stores, sideAt };
    }),
  );
}
