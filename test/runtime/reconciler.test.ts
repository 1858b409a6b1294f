import { expect, test } from "vitest";
import { Reconciler, type ReconcilerOptions } from "../../src/runtime/work/reconciler.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { TENANT } from "../contracts/names.ts";

const LEASE_MS = 10_000;
const agentKey = (agentId: string) => ({ tenant: TENANT, agentId });

/** A reconciler over stores with these agents left behind. `attended` lists the agents it handled, in order. */
function watch(left: ReadonlySet<string>, options: Partial<ReconcilerOptions> = {}) {
  const clock = createFakeClock();
  const attended: string[] = [];
  const reconciler = new Reconciler({
    stores: {
      unattended: async (_tenant, { after = "", limit = 100 }) =>
        [...left]
          .toSorted()
          .filter((agentId) => agentId > after)
          .slice(0, limit)
          .map(agentKey),
    },
    tenant: TENANT,
    clock,
    random: () => 1,
    processId: "here",
    leaseMs: LEASE_MS,
    isKnown: () => true,
    isAttended: () => false,
    areAwaited: async (keys) => keys.map(() => false),
    attend: async ({ agentId }) => attended.push(agentId) > 0,
    ...options,
  });
  return { clock, reconciler, attended };
}

test("an agent whose wake is still queued is neither counted nor woken again; a lost wake is repeated at once", async () => {
  const waiting = new Set(["busy-1", "busy-2"]);
  const asked: string[][] = [];
  const { reconciler, attended } = watch(new Set(["busy-1", "busy-2", "lost"]), {
    areAwaited: async (keys) => {
      asked.push(keys.map(({ agentId }) => agentId));
      return keys.map(({ agentId }) => waiting.has(agentId));
    },
  });
  await reconciler.look();
  expect(attended).toEqual(["lost"]);
  expect(reconciler.count).toBe(1);
  expect(asked).toEqual([["busy-1", "busy-2", "lost"]]);
  // The wake left the queue, but no process took the agent.
  waiting.delete("busy-2");
  await reconciler.look();
  expect(attended.toSorted()).toEqual(["busy-2", "lost", "lost"]);
});

test("the queue is queried page by page, and only if agents are left behind", async () => {
  const crowd = new Set(Array.from({ length: 250 }, (_, index) => `agent-${String(index).padStart(3, "0")}`));
  const sizes: number[] = [];
  const { reconciler } = watch(crowd, {
    areAwaited: async (keys) => {
      sizes.push(keys.length);
      return keys.map(() => true);
    },
    isAttended: ({ agentId }) => agentId === "agent-000",
  });
  await reconciler.look();
  expect(sizes).toEqual([99, 100, 50]);
  expect(reconciler.count).toBe(0);
  crowd.clear();
  await reconciler.look();
  expect(sizes).toHaveLength(3);
});

test("an agent that no process can run is retried after doubling pauses, and at once after it was away", async () => {
  const left = new Set(["stuck"]);
  const { clock, reconciler, attended } = watch(left);
  const triesIn = async (leases: number): Promise<number> => {
    const before = attended.length;
    for (let half = 0; half < leases * 2; half += 1) {
      await reconciler.look();
      clock.advance(LEASE_MS / 2);
    }
    return attended.length - before;
  };
  expect([await triesIn(1), await triesIn(2), await triesIn(4), await triesIn(8)]).toEqual([2, 1, 1, 1]);
  left.clear();
  await reconciler.look();
  left.add("stuck");
  expect(await triesIn(1)).toBe(2);
});
