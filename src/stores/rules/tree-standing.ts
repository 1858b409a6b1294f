import type { Account } from "../../budget/index.ts";
import type { AgentRecord, AgentRequest, InboxItem } from "../../state/index.ts";

/** Who works in a tree and what it waits for, as it stood at one moment. */
export interface TreeStanding {
  readonly agents: readonly AgentRecord[];
  readonly accounts: readonly Account[];
  /** In the order of their opening. */
  readonly openRequests: readonly AgentRequest[];
  /** What lies in the inboxes of those that have an open turn, by their ids. */
  readonly inboxes: ReadonlyMap<string, readonly InboxItem[]>;
}
