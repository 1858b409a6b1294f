import { commitSide } from "../ours/accounts.ts";
import type { Pair, Study } from "../study.ts";

/**
 * One reserve and one settle on a chain of four accounts, as in `reserve-settle`, through Redis: two commits, each one
 * script. `share`: against the same two commits without a reservation, so the difference is the reservation's cost.
 */
export const redisReserveSettle: Study = {
  name: "redis-reserve-settle",
  title: "one reserve and one settle on a chain of four accounts, on Redis against memory and SQLite",
  unit: "µs",
  plan: (quick) => (quick ? { warmUps: 3, rounds: 9 } : { warmUps: 5, rounds: 31 }),
  pairs: async (quick) => {
    const [fast, slow] = quick ? [2000, 200] : [5000, 500];
    const ours = commitSide("redis", { times: slow, isReserving: true });
    const over = [
      { variant: "commit, over memory", bare: commitSide("memory", { times: fast, isReserving: true }) },
      { variant: "commit, over SQLite", bare: commitSide("sqlite", { times: slow, isReserving: true }) },
      { variant: "share", bare: commitSide("redis", { times: slow, isReserving: false }) },
    ];
    return over.map(({ variant, bare }): Pair => ({ stores: "redis", variant, ours, bare }));
  },
};
