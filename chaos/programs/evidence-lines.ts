import type { Entry, EntryOf, JournalRow } from "../../src/state/index.ts";
import type { AgentEvidence, TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import type { Program } from "./program.ts";
import type { LineOf, WorldLine } from "./world.ts";

/** The evidence of a finished program. */
export interface Ended {
  readonly program: Program;
  readonly tree: TreeEvidence;
  /** All commits of the tree, in order, if the tree has a follower. */
  readonly rows: readonly JournalRow[];
  /** Its lines in the world logs of all processes. */
  readonly lines: readonly WorldLine[];
  /** Whether processes that ran it have died. */
  readonly died: boolean;
  /** Whether workers ran its turns, which are given up when two of them die. */
  readonly isQueued: boolean;
}

export function linesOf<Type extends WorldLine["type"]>(lines: readonly WorldLine[], type: Type): LineOf<Type>[] {
  return lines.filter((line): line is LineOf<Type> => line.type === type);
}

export function entriesOf<Type extends Entry["type"]>(
  { entries }: Pick<AgentEvidence, "entries">,
  type: Type,
): EntryOf<Type>[] {
  return entries.filter((entry): entry is EntryOf<Type> => entry.type === type);
}
