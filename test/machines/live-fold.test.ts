import { expect, test } from "vitest";
import { MachineFold } from "../../src/runtime/index.ts";
import { type Checkpoint, checkpointSchema, type Entry } from "../../src/state/index.ts";
import { every, rows } from "../support/full.ts";
import { entriesOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { LiveViews } from "./live-view.ts";
import { RecordedTree, treeView } from "./recorded.ts";
import { labelOf } from "./scenario.ts";
import { scenarios } from "./scenarios.ts";

/** The fold of these entries, in the form of a live view. */
function viewOfFold(fold: MachineFold) {
  const { value, context } = fold.agent;
  const { turn } = fold;
  const calls = (turn?.openCallIds ?? []).map((callId) => {
    const call = { value: fold.values.calls[callId], context: fold.call(callId) };
    return [callId, call.context ? call : undefined] as const;
  });
  return {
    agent: { value, context },
    turn: turn && { value: fold.values.turn, context: turn },
    calls: Object.fromEntries(calls),
  };
}

describeRuntimes("the live machines equal the fold of the journal", (stage) => {
  test.each(rows(scenarios, every(3)))("$name", async ({ run, shows }) => {
    const live = new LiveViews();
    const labels = new Set<string>();
    const runtime = await run(stage(), { onInspect: live.onInspect });
    const agents = await runtime.list();
    expect(agents.length).toBeGreaterThan(0);
    for (const { agentId, checkpoint } of agents) {
      const journal = await entriesOf(runtime.stores, agentId);
      const fold = new MachineFold(null);
      let compared = 0;
      for (const entry of journal) {
        labels.add(labelOf(entry));
        const before = live.before(agentId, entry.seq);
        // No machine handles this entry, so there is no earlier view to compare.
        expect(before ?? viewOfFold(fold), `${agentId} before ${entry.seq} ${entry.type}`).toEqual(viewOfFold(fold));
        if (before) compared += 1;
        fold.apply(entry);
      }
      expect(compared).toBeGreaterThan(journal.length / 2);
      expect(viewOfFold(fold), `${agentId} at rest`).toEqual(live.now(agentId));
      expect(checkpoint?.seq, "every turn leaves its checkpoint").toBe(lastEnd(journal));
    }
    expect([...labels]).toEqual(expect.arrayContaining([...shows]));
  });
});

function lastEnd(journal: readonly Entry[]): number | undefined {
  return journal.findLast(({ type }) => type === "turn.ended")?.seq;
}

const few = rows(scenarios, every(6));

/** A checkpoint as `turn.ended` stores it in the record. */
function checkpointAfter(fold: MachineFold, entry: Entry): Checkpoint {
  const { value, context } = fold.agent;
  const stored = { version: 1, seq: entry.seq, agent: { value, context } };
  return checkpointSchema.parse(JSON.parse(JSON.stringify(stored)));
}

describeRuntimes(
  "recovery from any point of a journal (F32)",
  (stage) => {
    test.each(few)("$name: from zero", async ({ run }) => {
      const runtime = await run(stage(), {});
      for (const { agentId } of await runtime.list()) {
        const never = new RecordedTree();
        const fold = new MachineFold(null);
        const restored: RecordedTree[] = [];
        const journal = await entriesOf(runtime.stores, agentId);
        for (const entry of journal) {
          fold.apply(entry);
          for (const tree of [never, ...restored]) tree.deliver(entry);
          const again = new RecordedTree(fold.toSnapshot());
          const place = `${agentId} after ${entry.seq} ${entry.type}`;
          expect(again.effects, place).toEqual(never.effects);
          expect(treeView(again.root), place).toEqual(treeView(never.root));
          restored.push(again);
        }
        for (const [index, tree] of restored.entries()) {
          const place = `${agentId}, restored after ${journal[index]?.seq}`;
          expect(treeView(tree.root), place).toEqual(treeView(never.root));
          expect(tree.effects, place).toEqual(never.effects);
        }
        for (const tree of [never, ...restored]) tree.stop();
      }
    });

    test.each(few)("$name: the same from each checkpoint as from zero", async ({ run }) => {
      const runtime = await run(stage(), {});
      for (const { agentId, checkpoint } of await runtime.list()) {
        const zero = new MachineFold(null);
        const later: MachineFold[] = [];
        const checkpoints: Checkpoint[] = [];
        for (const entry of await entriesOf(runtime.stores, agentId)) {
          for (const fold of [zero, ...later]) fold.apply(entry);
          for (const fold of later) {
            expect(viewOfFold(fold), `${agentId} after ${entry.seq}`).toEqual(viewOfFold(zero));
            expect(restoredFrom(fold)).toEqual(restoredFrom(zero));
          }
          if (entry.type !== "turn.ended") continue;
          checkpoints.push(checkpointAfter(zero, entry));
          later.push(new MachineFold(checkpointAfter(zero, entry)));
        }
        expect(checkpoint, "the stored checkpoint").toEqual(checkpoints.at(-1));
      }
    });
  },
  ["memory"],
);

/** The effects and states of the machines restored from this fold. */
function restoredFrom(fold: MachineFold) {
  const tree = new RecordedTree(fold.toSnapshot());
  const { effects } = tree;
  const view = treeView(tree.root);
  tree.stop();
  return { effects, view };
}
