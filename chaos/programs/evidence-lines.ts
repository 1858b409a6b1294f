import type { Entry, EntryOf, JournalRow } from "../../src/state/index.ts";
import type { AgentEvidence, TreeEvidence } from "../evidence.ts";
import type { Program } from "./program.ts";
import type { LineOf, WorldLine } from "./world.ts";

/** What is known of a program when it has come to its end. */
export interface Ended {
  readonly program: Program;
  readonly tree: TreeEvidence;
  /** All commits of the tree, in order, if the tree has a follower. */
  readonly rows: readonly JournalRow[];
  /** What the world has seen of it, in all processes. */
  readonly lines: readonly WorldLine[];
  /** Processes that ran it have died. */
  readonly died: boolean;
  /** Workers run its turns, which are given up when two of them die. */
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
