// A check must be seen to find a planted fault before an empty result means anything.
import { beforeAll, expect, it } from "vitest";
import { keyedViolations, lostCommits, lossViolations } from "../../chaos/checks/loss-checks.ts";
import type { WitnessLine } from "../../chaos/witness.ts";
import { type CalmTree, calmTree, rootOf } from "./calm-tree.ts";

let calm: CalmTree;
beforeAll(async () => {
  calm = await calmTree();
});

/** Redis was restarted once, at this time of the witnesses. */
const restarts = [100];

/** One commit that a process received: of all stored entries, and of more. */
function committed(more: number, sentAt: number, pid = 1): WitnessLine {
  const { agentId, entries } = rootOf(calm.tree);
  const last = entries.length + more;
  const epoch = entries[0]?.epoch ?? 0;
  return { type: "committed", agentId, epoch, first: 1, last, messageIds: [], pid, sentAt, at: sentAt + 1 };
}

function rolledBack(agentId: string, at: number): WitnessLine {
  return { type: "rolledBack", agentId, pid: 1, sentAt: at, at };
}

function found(lines: readonly WitnessLine[], stderr = ""): string {
  const processes = [{ lines, stderr }];
  const lost = lostCommits([rootOf(calm.tree)], processes, restarts);
  return lossViolations(lost, processes, restarts).join("\n");
}

it("finds nothing if all is stored, or if the loss was reported", () => {
  const { agentId } = rootOf(calm.tree);
  expect(found([committed(0, 10)])).toBe("");
  expect(found([committed(1, 10), rolledBack(agentId, 101)])).toBe("");
  expect(found([committed(1, 10)], `the stores have lost entries of agent ${agentId} that`)).toBe("");
});

it("finds a loss that no process reported, also one that was repaired since", () => {
  expect(found([committed(1, 10)])).toMatch(/had seen lost entries of it and did not report the loss/);
  expect(found([committed(1, 10), rolledBack("another", 101)])).toMatch(/did not report the loss/);
  expect(found([committed(1, 10), rolledBack(rootOf(calm.tree).agentId, 9)])).toMatch(/did not report the loss/);
  expect(found([committed(0, 10), committed(0, 110)])).toMatch(/did not report the loss/);
});

it("finds a loss without a crash, and cursors issued twice within one run of Redis", () => {
  expect(found([committed(1, 110)])).toMatch(/Redis had not died/);
  expect(found([committed(0, 110), committed(0, 120)])).toMatch(/was acknowledged twice/);
  const { agentId } = rootOf(calm.tree);
  const lease = { type: "acquired", agentId, epoch: 7, pid: 1, sentAt: 110, at: 111 } as const;
  expect(found([lease, { ...lease, pid: 2 }, committed(0, 10)])).toMatch(/epoch 7 was given to 1 and to 2/);
});

it("finds a keyed effect that the journals do not contain", () => {
  expect(keyedViolations(calm.tree, calm.attempts)).toEqual([]);
  const [first] = calm.attempts;
  if (!first) throw new Error("an attempt");
  const again = { ...first, key: `${calm.tree.rootAgentId}#9:1:0` };
  expect(keyedViolations(calm.tree, [...calm.attempts, again]).join()).toMatch(/without a call in the journal/);
  expect(keyedViolations(calm.tree, [...calm.attempts, first]).join()).toMatch(/had 2 effects/);
});
