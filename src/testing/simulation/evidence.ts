import type { Account } from "../../budget/index.ts";
import { type AgentRecord, DEFAULT_TENANT, type Entry, type InboxItem, type Message } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

/** All stored data of one agent. */
export interface AgentEvidence {
  /** Its id. */
  readonly agentId: string;
  /** Its row in the stores. */
  readonly record: AgentRecord;
  /** Its journal, from the first entry. */
  readonly entries: readonly Entry[];
  /** Its messages, oldest first. */
  readonly messages: readonly Message[];
  /** What it has not taken from its inbox. */
  readonly inbox: readonly InboxItem[];
}

/** All stored data of one tree, its root first. */
export interface TreeEvidence {
  /** Id of its root agent. */
  readonly rootAgentId: string;
  /** Its agents, the root first. */
  readonly agents: readonly AgentEvidence[];
  /** Its accounts. */
  readonly accounts: readonly Account[];
  /** Cursors of the tree's commits in their common order. */
  readonly cursors: readonly number[];
}

const ROWS = 100_000;

/** Every tree of a store, ordered by root id. */
export async function treesIn(stores: Stores): Promise<TreeEvidence[]> {
  const records = await stores.listAgents({ tenant: DEFAULT_TENANT, limit: ROWS });
  const roots = records.filter(({ parentAgentId }) => parentAgentId === null);
  return await Promise.all(roots.map((root) => treeOf(stores, root, records)));
}

/** One tree of a store, which may be in use. */
export async function treeIn(stores: Stores, rootAgentId: string): Promise<TreeEvidence> {
  const records = await stores.listAgents({ tenant: DEFAULT_TENANT, rootAgentId, limit: ROWS });
  const root = records.find(({ agentId }) => agentId === rootAgentId);
  if (!root) throw new Error(`there is no agent ${rootAgentId}`);
  return await treeOf(stores, root, records);
}

async function treeOf(stores: Stores, root: AgentRecord, records: readonly AgentRecord[]): Promise<TreeEvidence> {
  const { tenant, agentId: rootAgentId } = root;
  const own = records.filter((record) => record.rootAgentId === rootAgentId && record.agentId !== rootAgentId);
  const agents = await Promise.all([root, ...own].map((record) => agentOf(stores, record)));
  const accounts = await stores.accounts(tenant, rootAgentId);
  const cursors = (await stores.readTree(tenant, rootAgentId, 0, ROWS)).map(({ cursor }) => cursor);
  return { rootAgentId, agents, accounts, cursors };
}

async function agentOf(stores: Stores, record: AgentRecord): Promise<AgentEvidence> {
  const { tenant, agentId } = record;
  const key = { tenant, agentId };
  const rows = await stores.readJournal(key, 1);
  const entries = rows.flatMap((row): readonly Entry[] => row.entries);
  return { agentId, record, entries, messages: await stores.messages(key), inbox: await stores.inbox(key) };
}
