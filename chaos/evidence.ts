import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Account, Message, Stores } from "../src/index.ts";
import { type AgentRecord, DEFAULT_TENANT, type Entry, type InboxItem } from "../src/state/index.ts";
import { isOnRedis, storesAt } from "./stores-at.ts";

/** All stored data of one agent. */
export interface AgentEvidence {
  readonly agentId: string;
  readonly record: AgentRecord;
  readonly entries: readonly Entry[];
  readonly messages: readonly Message[];
  readonly inbox: readonly InboxItem[];
}

/** All stored data of one tree, its root first. */
export interface TreeEvidence {
  readonly rootAgentId: string;
  readonly agents: readonly AgentEvidence[];
  readonly accounts: readonly Account[];
  /** Cursors of the tree's commits in their common order. */
  readonly cursors: readonly number[];
}

const ROWS = 100_000;

/**
 * Reads the data that a dead process left. A file is copied first: opening it repairs it, which is the next process's task.
 * Returns an empty list if there is no store yet.
 */
export async function evidenceOf(place: string): Promise<TreeEvidence[]> {
  return isOnRedis(place) ? await treesAt(place) : await evidenceOfFile(place);
}

async function evidenceOfFile(storePath: string): Promise<TreeEvidence[]> {
  if (!existsSync(storePath)) return [];
  const folder = mkdtempSync(join(tmpdir(), "troupe-evidence-"));
  const copy = join(folder, "store.db");
  for (const ending of ["", "-wal"]) {
    if (existsSync(storePath + ending)) copyFileSync(storePath + ending, copy + ending);
  }
  try {
    return await treesAt(copy);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function treesAt(place: string): Promise<TreeEvidence[]> {
  const stores = storesAt(place);
  try {
    return await treesIn(stores);
  } finally {
    await stores.close();
  }
}

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
