import { sqliteAccountsSide } from "../bare/sqlite-accounts.ts";
import { arithmeticSide, commitSide, objectSide } from "../ours/accounts.ts";
import { storeKinds } from "../ours/open-stores.ts";
import type { Pair, Study } from "../study.ts";

/**
 * One reserve and one settle on a chain of four accounts, as for a subagent's model call: its turn, its lifetime, its
 * parent's turn, its parent's lifetime. One unit is both together.
 *
 * `arithmetic`: the pure functions against an update of four objects. `commit`: two commits of the stores, each with its
 * journal row, against a hand-written version: the same update of objects, or two SQLite transactions on four rows.
 * `share`: the two commits against the same two commits without a reservation, so the difference is the reservation's cost.
 */
export const reserveSettle: Study = {
  name: "reserve-settle",
  title: "one reserve and one settle on a chain of four accounts",
  unit: "µs",
  plan: (quick) => (quick ? { warmUps: 3, rounds: 9 } : { warmUps: 5, rounds: 31 }),
  pairs: async (quick) => {
    const [fast, slow] = quick ? [2000, 300] : [5000, 1000];
    const object = objectSide(fast * 10);
    const byHand = { memory: object, sqlite: sqliteAccountsSide(slow) };
    const pairs: Pair[] = [{ stores: "none", variant: "arithmetic", ours: arithmeticSide(fast), bare: object }];
    for (const stores of storeKinds) {
      const times = stores === "memory" ? fast : slow;
      const ours = commitSide(stores, { times, isReserving: true });
      pairs.push({ stores, variant: "commit", ours, bare: byHand[stores] });
      pairs.push({ stores, variant: "share", ours, bare: commitSide(stores, { times, isReserving: false }) });
    }
    return pairs;
  },
};
