import { StoreUnavailableError } from "../../errors/index.ts";
import type { Artifact, InboxItem, JournalRow, Timer } from "../../state/index.ts";
import type { TreeActivity, TreeHead } from "../rules/ports.ts";
import { type RedisConnection, textsOf } from "./redis-connection.ts";
import type { TreeKeys } from "./redis-keys.ts";
import { treeActivityScript, treeHeadScript } from "./redis-read-scripts.ts";
import type { RedisReader } from "./redis-reader.ts";
import {
  itemsIn,
  type RowKind,
  rowKinds,
  seenRow,
  type SeenRow,
  type StoredMessage,
  timerIn,
  valueOf,
} from "./redis-rows.ts";

/** The data of an agent that is not in the rows. */
interface WholeAgent {
  readonly inbox: readonly InboxItem[];
  readonly artifacts: readonly Artifact[];
  readonly messages: readonly StoredMessage[];
}

/** All data of a tree at one moment. */
export interface WholeTree {
  /** The version of the tree; empty if it was never written. */
  readonly version: string;
  readonly lastCursor: number;
  readonly rows: ReadonlyMap<string, SeenRow>;
  readonly agentIds: readonly string[];
  readonly accountIds: readonly string[];
  /** Of all reservation queues; names and values alternate. */
  readonly waiters: readonly string[];
  readonly agents: ReadonlyMap<string, WholeAgent>;
  /** Field names and values. */
  readonly turns: ReadonlyMap<string, string>;
  /** By hash. */
  readonly definitions: ReadonlyMap<string, string>;
  readonly timers: readonly Timer[];
  readonly journal: readonly JournalRow[];
  readonly projections: ReadonlyMap<string, number>;
}

/** How many times to read a tree that other processes keep changing. */
const ATTEMPTS = 20;
/** How many agents are read at once. */
const AT_ONCE = 50;

export async function readWholeTree(reader: RedisReader, tree: TreeKeys): Promise<WholeTree> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const before = await reader.hash(tree.meta);
    const whole = await readOnce(reader, tree, before);
    const after = await reader.hash(tree.meta);
    if (before.get("version") === after.get("version")) return whole;
  }
  throw new StoreUnavailableError(
    `the tree ${tree.tag} was changed by other processes during each of ${ATTEMPTS} reads`,
    {
      details: { code: "CONTENDED" },
    },
  );
}

async function readOnce(reader: RedisReader, tree: TreeKeys, meta: ReadonlyMap<string, string>): Promise<WholeTree> {
  const [rows, agentIds, accountIds, waiters, turns, definitions, timers, journal, projections] = await Promise.all([
    reader.hash(tree.rows),
    reader.list(tree.agents),
    reader.list(tree.accounts),
    reader.hash(tree.waiters),
    reader.hash(tree.turns),
    reader.hash(tree.definitions),
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
    version: meta.get("version") ?? "",
    lastCursor: Number(meta.get("cursor") ?? 0),
    rows: new Map([...rows].map(([field, stored]) => [field, seenRow(stored)])),
    agentIds,
    accountIds,
    waiters: [...waiters].flat(),
    agents,
    turns,
    definitions,
    timers: [...timers.values()].map((text) => timerIn(text, tree.timers)),
    journal,
    projections: new Map([...projections].map(([name, cursor]) => [name, Number(cursor)])),
  };
}

const emptyAgent: WholeAgent = { inbox: [], artifacts: [], messages: [] };

async function readAgent(reader: RedisReader, tree: TreeKeys, agentId: string): Promise<WholeAgent> {
  const agentRedisKey = (part: "artifacts" | "contents" | "messages" | "order"): string => tree.ofAgent(part, agentId);
  const [inbox, placed, messages] = await Promise.all([
    reader.inbox(tree, agentId),
    reader.artifacts(agentRedisKey("artifacts")),
    reader.messages({ messages: agentRedisKey("messages"), order: agentRedisKey("order") }),
  ]);
  const contents = await Promise.all(
    placed.map(({ meta }) => reader.artifactContent(agentRedisKey("contents"), meta.artifactId)),
  );
  return { inbox, messages, artifacts: placed.map(({ meta }, index) => ({ ...meta, content: contents[index] ?? "" })) };
}

/** How many times to read if more agents have an open turn than those whose inboxes were read. */
const ACTIVITY_ATTEMPTS = 20;

/** One script reads everything, so that it sees one moment. The previous attempt determines which inboxes it must read. */
export async function readTreeActivity(connection: RedisConnection, tree: TreeKeys): Promise<TreeActivity | undefined> {
  let asked: readonly string[] = [];
  for (let attempt = 1; attempt <= ACTIVITY_ATTEMPTS; attempt += 1) {
    const keys = [tree.rows, tree.open, tree.agents, tree.accounts];
    const inboxKeys = asked.map((agentId) => tree.ofAgent("inbox", agentId));
    const answer: unknown = await connection.script(treeActivityScript, [...keys, ...inboxKeys], []);
    const parts: readonly unknown[] = Array.isArray(answer) ? answer : [];
    if (parts.length === 0) return undefined;
    const activity = activityIn(tree, parts, asked);
    const atWork = activity.agents.filter(({ openTurnId }) => openTurnId !== null).map(({ agentId }) => agentId);
    if (atWork.every((agentId) => activity.inboxes.has(agentId))) return activity;
    asked = atWork;
  }
  throw new StoreUnavailableError(
    `turns of the tree ${tree.tag} were opened during each of ${ACTIVITY_ATTEMPTS} reads`,
    {
      details: { code: "CONTENDED" },
    },
  );
}

/** One script reads everything, so that it sees one moment. */
export async function readTreeHead(
  connection: RedisConnection,
  tree: TreeKeys,
  rootAgentId: string,
): Promise<TreeHead | undefined> {
  const answer: unknown = await connection.script(
    treeHeadScript,
    [tree.rows, tree.open, tree.agents, tree.accounts, tree.meta],
    [],
  );
  const [cursor, ...parts]: readonly unknown[] = Array.isArray(answer) ? answer : [];
  const { inboxes: _none, ...head } = activityIn(tree, parts, []);
  // The id of a subagent belongs to the tree of another root.
  const isTree = head.agents.some((agent) => agent.agentId === rootAgentId && agent.rootAgentId === rootAgentId);
  return isTree ? { cursor: Number(cursor), ...head } : undefined;
}

function activityIn(tree: TreeKeys, parts: readonly unknown[], asked: readonly string[]): TreeActivity {
  const rows = <T>(ids: unknown, stored: unknown, kindOf: (id: string) => RowKind<T>): T[] => {
    const texts = textsOf(stored);
    return textsOf(ids).flatMap((id, index) => {
      const text = texts[index];
      return text ? (valueOf(seenRow(text), kindOf(id), tree.rows) ?? []) : [];
    });
  };
  const [open, requests, agentIds, records, accountIds, accounts, ...inboxes] = parts;
  return {
    openRequests: rows(open, requests, (member) => {
      const [requestId = "", agentId = ""] = JSON.parse(member) as readonly string[];
      return rowKinds.request(agentId, requestId);
    }),
    agents: rows(agentIds, records, (id) => rowKinds.record(tree.tenant, id)),
    accounts: rows(accountIds, accounts, (id) => rowKinds.account(id)),
    inboxes: new Map(
      asked.map((agentId, index) => [agentId, itemsIn(textsOf(inboxes[index]), tree.ofAgent("inbox", agentId))]),
    ),
  };
}
