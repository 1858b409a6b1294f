import { StoreUnavailableError } from "../../errors/index.ts";
import type { Artifact, InboxItem, JournalRow, Timer } from "../../state/index.ts";
import type { TreeKeys } from "./redis-keys.ts";
import type { RedisReader } from "./redis-reader.ts";
import { type SeenRow, seenRow } from "./redis-rows.ts";
import { type StoredMessage, timerIn } from "./redis-stored.ts";

/** What of an agent lies outside of the rows. */
export interface WholeAgent {
  readonly inbox: readonly InboxItem[];
  readonly artifacts: readonly Artifact[];
  readonly messages: readonly StoredMessage[];
}

/** Everything of a tree as it stood at one moment. */
export interface WholeTree {
  /** Of the tree; empty where nothing was ever written. */
  readonly version: string;
  readonly lastCursor: number;
  readonly rows: ReadonlyMap<string, SeenRow>;
  readonly agentIds: readonly string[];
  readonly accountIds: readonly string[];
  /** Of all lines, as names and values. */
  readonly waiters: readonly string[];
  readonly agents: ReadonlyMap<string, WholeAgent>;
  readonly timers: readonly Timer[];
  readonly journal: readonly JournalRow[];
  readonly projections: ReadonlyMap<string, number>;
}

/** How often a tree that others change meanwhile is read again. */
const ATTEMPTS = 20;
/** Agents that are read at once. */
const AT_ONCE = 50;

export async function readWholeTree(reader: RedisReader, tree: TreeKeys): Promise<WholeTree> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const before = await reader.hash(tree.meta);
    const whole = await readOnce(reader, tree, before);
    const after = await reader.hash(tree.meta);
    if (before.get("v") === after.get("v")) return whole;
  }
  throw new StoreUnavailableError(`the tree ${tree.tag} was changed by others while it was read, ${ATTEMPTS} times`, {
    details: { code: "CONTENDED" },
  });
}

async function readOnce(reader: RedisReader, tree: TreeKeys, meta: ReadonlyMap<string, string>): Promise<WholeTree> {
  const [rows, agentIds, accountIds, waiters, timers, journal, projections] = await Promise.all([
    reader.hash(tree.rows),
    reader.list(tree.agents),
    reader.list(tree.accounts),
    reader.hash(tree.waiters),
    reader.hash(tree.timers),
    reader.treeRows(tree, 0, Number.MAX_SAFE_INTEGER),
    reader.hash(tree.projections),
  ]);
  const agents = new Map<string, WholeAgent>();
  for (let at = 0; at < agentIds.length; at += AT_ONCE) {
    const some = agentIds.slice(at, at + AT_ONCE);
    const read = await Promise.all(some.map((agentId) => readAgent(reader, tree, agentId)));
    for (const [index, agentId] of some.entries()) agents.set(agentId, read[index] ?? emptyAgent);
  }
  return {
    version: meta.get("v") ?? "",
    lastCursor: Number(meta.get("c") ?? 0),
    rows: new Map([...rows].map(([field, stored]) => [field, seenRow(stored)])),
    agentIds,
    accountIds,
    waiters: [...waiters].flat(),
    agents,
    timers: [...timers.values()].map((text) => timerIn(text, tree.timers)),
    journal,
    projections: new Map([...projections].map(([name, cursor]) => [name, Number(cursor)])),
  };
}

const emptyAgent: WholeAgent = { inbox: [], artifacts: [], messages: [] };

async function readAgent(reader: RedisReader, tree: TreeKeys, agentId: string): Promise<WholeAgent> {
  const keyOf = (part: "artifacts" | "contents" | "messages" | "order"): string => tree.ofAgent(part, agentId);
  const [inbox, placed, messages] = await Promise.all([
    reader.inbox(tree, agentId),
    reader.artifacts(keyOf("artifacts")),
    reader.messages({ messages: keyOf("messages"), order: keyOf("order") }),
  ]);
  const contents = await Promise.all(
    placed.map(({ meta }) => reader.artifactContent(keyOf("contents"), meta.artifactId)),
  );
  return { inbox, messages, artifacts: placed.map(({ meta }, index) => ({ ...meta, content: contents[index] ?? "" })) };
}
