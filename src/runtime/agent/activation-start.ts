import type { Snapshot } from "xstate";
import type { AgentDefinition } from "../../agents/index.ts";
import type { AgentKey, AgentRecord, Entry, InboxItem, Message } from "../../state/index.ts";

/** What a live agent begins with: its lease, and what recovery made of its journal. */
export interface ActivationStart {
  readonly key: AgentKey;
  readonly record: AgentRecord;
  readonly definition: AgentDefinition;
  readonly epoch: number;
  /** Last committed entry, and its time. */
  readonly seq: number;
  readonly at: number;
  /** Absent for an agent that has no entries. */
  readonly snapshot: Snapshot<unknown> | undefined;
  /** Entries of the open turn; empty when none is open. */
  readonly turnEntries: readonly Entry[];
  readonly history: readonly Message[];
  /** Aborts that came while nobody had the agent: they count before anything of its open turn is begun. */
  readonly aborts: readonly InboxItem[];
}
