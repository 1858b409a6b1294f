// A check must be seen to find a planted fault before an empty result means anything.
import { expect, it } from "vitest";
import { treeIn } from "../../src/testing/simulation/evidence.ts";
import { type Ended, entriesOf, linesOf } from "../../chaos/programs/evidence-lines.ts";
import { billOf } from "../../chaos/programs/faults-of.ts";
import { Stage } from "../../chaos/programs/play.ts";
import type { Program } from "../../chaos/programs/program.ts";
import { followerFaults } from "../../chaos/programs/seen-faults.ts";
import { DEFAULT_TENANT, type Entry, type JournalRow } from "../../src/state/index.ts";

const root = "program";
const program: Program = {
  turns: [{ rounds: [[{ tool: "look", does: "succeed" }]], sent: "after", budget: null }],
  life: null,
  acts: [],
  hooks: [],
  isWatched: true,
  isReopened: false,
  deaths: [],
};
const pausing: Program = { ...program, acts: [{ at: 3, does: "pause" }] };

/** The records of an undisturbed program. */
async function undisturbed(): Promise<Ended> {
  const options = { on: "memory" } as const;
  const stage = new Stage({
    programs: new Map([[root, program]]),
    width: 1,
    path: undefined,
    options,
    deathOf: () => undefined,
  });
  try {
    await stage.play();
    const { plain, lines } = stage;
    const tree = await treeIn(plain, root);
    const rows = await plain.readTree(DEFAULT_TENANT, root, 0, 1_000);
    return { program, tree, rows, lines, died: false, isQueued: false };
  } finally {
    await stage.close();
  }
}

const ended = await undisturbed();

/** The same with one more commit at the end, which no follower received. */
function withLate(type: "agent.paused" | "agent.shutdown", more: Partial<Ended> = {}): Ended {
  const last = ended.rows.at(-1);
  const before = last?.entries.at(-1);
  if (!last || !before) throw new Error("there are no entries");
  const { seq, at, epoch } = before;
  const entry = { type, seq: seq + 1, at: at + 1, epoch } as Entry;
  const row: JournalRow = { ...last, cursor: last.cursor + 1, entries: [entry] };
  return { ...ended, rows: [...ended.rows, row], ...more };
}

it("the follower of a tree has received all stored events when it leaves", () => {
  expect(followerFaults(ended)).toEqual([]);
  const shorter = { ...ended, lines: ended.lines.filter((line) => line !== linesOf(ended.lines, "seen").at(-1)) };
  expect(followerFaults(shorter)).toEqual([
    "its follower did not receive the last 1 events, from lifecycle.changed on",
  ]);
  const alone = { ...withLate("agent.paused"), lines: ended.lines.filter(({ type }) => type !== "left") };
  expect(followerFaults({ ...alone, program: pausing, isQueued: true })).toEqual([
    "its follower did not receive the last 1 events, from lifecycle.changed on",
  ]);
});

it("only a pause begun by a worker may be missing at a follower that has left", () => {
  expect(followerFaults(withLate("agent.paused", { program: pausing, isQueued: true }))).toEqual([]);
  const strange = ["lifecycle.changed was added to program after its tree had finished"];
  expect(followerFaults(withLate("agent.paused", { program: pausing }))).toEqual(strange);
  expect(followerFaults(withLate("agent.paused", { isQueued: true }))).toEqual(strange);
  expect(followerFaults(withLate("agent.shutdown", { program: pausing, isQueued: true }))).toEqual(strange);
});

function spent(all: readonly { readonly inputTokens: number; readonly outputTokens: number }[]): number {
  return all.reduce((sum, one) => sum + one.inputTokens + one.outputTokens, 0);
}

it("a call that was interrupted after its answer was returned is billed once", () => {
  const [agent] = ended.tree.agents;
  if (!agent) throw new Error("there is no agent");
  const [first, last] = entriesOf(agent, "model.responded");
  if (!first?.usage || !last?.usage) throw new Error("there are not two answers");
  const usage = { inputTokens: last.usage.inputTokens, outputTokens: 3, estimated: true as const };
  const { seq, at, epoch, turnId, step, attempt, model } = last;
  const error = { family: "limit" as const, code: "budget_exceeded", message: "the time is up" };
  const failed = { type: "model.failed", seq, at, epoch, turnId, step, attempt, model, error } as const;
  const cut = { ...failed, retryAt: null, usage, settlement: null } as unknown as Entry;
  const entries = agent.entries.map((entry) => (entry === last ? cut : entry));
  expect(billOf(ended.tree, ended.lines).tokens).toBe(spent([first.usage, last.usage]));
  const tree = { ...ended.tree, agents: [{ ...agent, entries }] };
  expect(billOf(tree, ended.lines).tokens).toBe(spent([first.usage, usage]));
  // With one more request it is billed for both.
  const again = { ...ended.tree, agents: [{ ...agent, entries: [...entries, last] }] };
  const answered = linesOf(ended.lines, "answered").at(-1);
  if (!answered) throw new Error("nothing was answered");
  expect(billOf(again, ended.lines).tokens).toBe(spent([first.usage, last.usage, usage]));
  expect(billOf(again, [...ended.lines, answered]).tokens).toBe(spent([first.usage, last.usage, usage]));
});
