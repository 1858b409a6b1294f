import * as fc from "fast-check";
import { type InboxPlan, inboxPlan } from "../inbox/plan.ts";
import { playInbox } from "../inbox/play.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";

const ROUNDS = 10_000;
const SHORT_ROUNDS = 300;
const TOLD_EVERY = 1_000;

/** Plays plans twice, once with disturbed inboxes. A round is one plan. */
export const f13: ChaosScenario = {
  name: "F13",
  title: "what inboxes hold is read twice, again, late and in another order: the same state as read once",
  run: runInboxes,
};

export async function runInboxes({ seed, short, rounds, progress }: ChaosOptions): Promise<ChaosReport> {
  const numRuns = rounds ?? (short ? SHORT_ROUNDS : ROUNDS);
  const sums: Record<string, number> = { items: 0, dropped: 0, doubled: 0, late: 0, reordered: 0 };
  let played = 0;
  const property = fc.asyncProperty(inboxPlan, async (plan) => {
    const fault = await faultOf(plan, sums);
    played += 1;
    if (played % TOLD_EVERY === 0) progress(`${played}/${numRuns}`);
    if (fault !== undefined) throw new Error(fault);
  });
  const outcome = await fc.check(property, { seed, numRuns });
  const violations = outcome.failed ? [counterexample(outcome, seed)] : [];
  const succeeded = outcome.numRuns - outcome.numSkips - violations.length;
  return reportOf({ name: f13.name, seed }, { operations: outcome.numRuns, succeeded, violations }, sums);
}

async function faultOf(plan: InboxPlan, sums: Record<string, number>): Promise<string | undefined> {
  const once = await playInbox(plan, false);
  if (once.stuck !== undefined) return `undisturbed: ${once.stuck}`;
  const disturbed = await playInbox(plan, true);
  for (const [name, count] of Object.entries(disturbed.counts)) sums[name] = (sums[name] ?? 0) + count;
  if (disturbed.stuck !== undefined) return disturbed.stuck;
  if (disturbed.finalState === once.finalState) return undefined;
  const lines = once.finalState.split("\n");
  const others = disturbed.finalState.split("\n");
  const at = lines.findIndex((line, index) => line !== others[index]);
  return `another end: ${others.slice(at, at + 3).join(" ")} in place of ${lines.slice(at, at + 3).join(" ")}`;
}

function counterexample(outcome: fc.RunDetails<[InboxPlan]>, seed: number): string {
  const { errorInstance, counterexamplePath, counterexample } = outcome;
  const words = errorInstance instanceof Error ? errorInstance.message : "an error";
  return `${words} (seed ${seed}, path ${counterexamplePath}): ${JSON.stringify(counterexample)}`;
}
