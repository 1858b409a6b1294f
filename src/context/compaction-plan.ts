import type { Message } from "../state/index.ts";
import type { CompactionInput } from "./compaction.ts";
import { isInput, isSummary, taskStart } from "./open-turn.ts";
import { cutPlaces, isComplete, roundsOf } from "./rounds.ts";

/*
 * Where a view may be cut. Invariants, which the properties in the tests hold it to:
 *  1. No call is parted from its results.
 *  2. The open turn's task stays in sight: the cut lies before it, or, only where nothing before it can go, behind it
 *     with the task kept; and then the turn's last complete round stays too.
 *  3. Each plan takes at least one message out of sight that no earlier plan had: planning ends.
 */

/** What goes out of sight. */
export interface CompactionPlan {
  /** All up to the cut, the kept ones among them: what a summary has to cover. */
  readonly covered: readonly Message[];
  /** Id of the last message that goes. */
  readonly through: string;
  /** Messages before `through` that stay. */
  readonly keepIds: readonly string[];
}

/** The view, and what is known of its places. */
interface View {
  readonly messages: readonly Message[];
  readonly cuts: readonly boolean[];
  readonly task: number;
}

/** Null: nothing can be left out. */
export function planCompaction(
  input: Pick<CompactionInput, "messages" | "turnId" | "isTooLong">,
  keep: number,
): CompactionPlan | null {
  const { messages, turnId, isTooLong = false } = input;
  const view = { messages, cuts: cutPlaces(messages), task: taskStart(messages, turnId) };
  const sizes = isTooLong ? halvings(Math.min(keep, Math.floor(messages.length / 2))) : [keep];
  for (const place of [earlierCut, roundCut]) {
    for (const size of sizes) {
      const cut = place(view, messages.length - size);
      if (cut !== undefined) return planOf(view, cut);
    }
  }
  return null;
}

/** Half of what there is helps more than one message less, so that a long prompt fits after few compactions. */
function halvings(size: number): number[] {
  const sizes: number[] = [];
  for (let left = size; left >= 1; left = Math.floor(left / 2)) sizes.push(left);
  return sizes;
}

/** The latest cut before the open turn's task. */
function earlierCut({ messages, cuts, task }: View, limit: number): number | undefined {
  // A summary that stands for nothing more is no progress. Nor are the inputs behind it alone: an earlier compaction may
  // have kept those, so that what follows them here does not follow them in the store.
  const answered = messages.findIndex((message, index) => index < task && !isSummary(message) && !isInput(message));
  const first = answered < 0 ? messages.findIndex((message) => !isSummary(message)) : answered;
  if (first < 0) return undefined;
  for (let cut = Math.min(task, limit); cut > first; cut -= 1) if (cuts[cut]) return cut;
  return undefined;
}

/** The latest cut within the open turn, before its last complete round. */
function roundCut({ messages, cuts, task }: View, limit: number): number | undefined {
  const complete = [...roundsOf(messages)].findLast(([, round]) => isComplete(round));
  const first = messages.findIndex((message, index) => index >= task && !isSummary(message) && !isInput(message));
  if (!complete || first < 0) return undefined;
  for (let cut = Math.min(complete[0], limit); cut > first; cut -= 1) if (cuts[cut]) return cut;
  return undefined;
}

function planOf({ messages, task }: View, cut: number): CompactionPlan {
  const covered = messages.slice(0, cut);
  const stays = (message: Message, index: number): boolean => index >= task && isInput(message);
  const last = covered.findLastIndex((message, index) => !isSummary(message) && !stays(message, index));
  const keepIds = covered
    .slice(0, Math.max(0, last))
    .flatMap((message, index) => (stays(message, index) ? message.id : []));
  return { covered, through: covered[last]?.id ?? "", keepIds };
}
