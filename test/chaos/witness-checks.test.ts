// A check must be seen to find a planted fault before an empty result means anything.
import { beforeAll, expect, it } from "vitest";
import { witnessViolations } from "../../chaos/checks/witness-checks.ts";
import type { WitnessLine } from "../../chaos/witness.ts";
import { type CalmTree, calmTree, rootOf, withEntries } from "./calm-tree.ts";

let calm: CalmTree;
beforeAll(async () => {
  calm = await calmTree();
});

/** The observations of the only owner of the calm tree's root. */
function toldOf({ tree }: CalmTree): WitnessLine[] {
  const { agentId, entries, messages } = rootOf(tree);
  const seen = { pid: 1, sentAt: 10, at: 11 };
  const epoch = entries[0]?.epoch ?? 0;
  const messageIds = messages.map(({ id }) => id);
  return [
    { type: "acquired", agentId, epoch, ...seen },
    { type: "committed", agentId, epoch, first: 1, last: entries.length, messageIds, ...seen, sentAt: 12 },
  ];
}

function found(lines: readonly WitnessLine[], agent = rootOf(calm.tree)): string {
  return witnessViolations([agent], lines, { isComplete: true }).join("\n");
}

it("finds nothing if one owner observed the stored entries", () => {
  expect(found(toldOf(calm))).toBe("");
});

it("finds an acknowledged entry that is lost", () => {
  const shorter = withEntries(calm, (entries) => entries.slice(0, -1));
  expect(found(toldOf(calm), shorter)).toMatch(/acknowledged entry \d+ of epoch \d+ is lost/);
  expect(found(toldOf(calm), { ...rootOf(calm.tree), messages: [] })).toMatch(/acknowledged messages are lost/);
  expect(witnessViolations([], toldOf(calm)).join()).toMatch(/there is no such agent/);
});

it("finds an entry written by another process, or by none", () => {
  const others = withEntries(calm, (entries) => entries.map((entry) => ({ ...entry, epoch: entry.epoch + 1 })));
  expect(found(toldOf(calm), others)).toMatch(/was acknowledged to epoch \d+, and is of \d+/);
  expect(found([])).toMatch(/was acknowledged to no process/);
  const [, commit] = toldOf(calm);
  expect(found(commit ? [...toldOf(calm), commit] : [])).toMatch(/was acknowledged to epoch \d+ and to \d+/);
});

it("finds two owners", () => {
  const [lease, commit] = toldOf(calm);
  if (lease?.type !== "acquired" || commit?.type !== "committed") throw new Error("a lease and a commit");
  expect(found([lease, { ...lease, pid: 2 }, commit])).toMatch(/was given to 1 and to 2/);
  expect(found([lease, { ...commit, pid: 2 }])).toMatch(/2 wrote under epoch \d+, which 1 holds/);
  const next = { ...lease, pid: 2, epoch: lease.epoch + 1, at: commit.sentAt - 1 };
  expect(found([lease, next, commit])).toMatch(/sent 1 ms after epoch \d+ was given/);
});
