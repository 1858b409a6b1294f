import type { Message } from "../state/index.ts";
import type { CompactionInput } from "./compaction.ts";
import { cutPlaces, isComplete, isInput, isSummary, roundsOf, taskStart } from "./turns-and-rounds.ts";

/*
 * The positions at which a view may be cut. Invariants (property tests check them):
 * 1. A call and its results are never separated.
 * 2. The open turn's task stays visible: the cut is before it. Only if nothing before the task can be hidden, the cut is after
 *    it; the task is then kept, and so is the turn's last complete round.
 *  3. Each plan hides at least one message that no earlier plan hid, so planning ends.
 */

/** The messages that a compaction hides. */
interface CompactionPlan {
  /** All messages before the cut, including kept ones: a summary has to cover them. */
  readonly covered: readonly Message[];
  /** Id of the last hidden message. */
  readonly through: string;
  /** Messages before `through` that stay visible. */
  readonly keepIds: readonly string[];
}

/** The view, the positions where it may be cut, and the start of the task. */
interface View {
  readonly messages: readonly Message[];
  readonly cuts: readonly boolean[];
  readonly task: number;
}

/** Plans a compaction; `null` if no message can be hidden. */
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

/** Keeping half each time makes a long prompt fit after few compactions. */
function halvings(size: number): number[] {
  const sizes: number[] = [];
  for (let left = size; left >= 1; left = Math.floor(left / 2)) sizes.push(left);
  return sizes;
}

/** The latest cut before the open turn's task. */
function earlierCut({ messages, cuts, task }: View, limit: number): number | undefined {
  // Hiding only a summary makes no progress. Hiding only the inputs after it makes none either: an earlier compaction may have
  // kept those inputs, so that the messages after them in the view are not the messages after them in the store.
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
