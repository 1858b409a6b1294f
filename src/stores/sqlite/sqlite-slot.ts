import type { AgentRecord } from "../../state/index.ts";
import type { Cached } from "./sqlite-cache.ts";
import type { Head } from "../rules/tables.ts";

/** A head as it is kept in memory, with the cursor of the agent's last row in the journal (0: it has none). */
export interface KeptHead {
  readonly generation: number;
  readonly value: Head;
  readonly cursor: number;
}

/** What is kept of an agent between transactions. One that was removed and made anew may have another key. */
export interface AgentSlot {
  readonly id: number;
  readonly tree: number;
  readonly record: Cached<AgentRecord>;
  head: KeptHead | undefined;
}
