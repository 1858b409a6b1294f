import { isDeepStrictEqual } from "node:util";
import type { Account } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { AgentKey, AgentRecord } from "../../state/index.ts";
import { workOf } from "./commit.ts";
import { assertNotDeleted } from "./deletions.ts";
import type { Committed } from "./outcomes.ts";
import type { ImportOptions, ImportOutcome, KnownItems, StoredAgent, StoredRow, StoredTree } from "./ports.ts";
import { restoreSteers } from "./steer.ts";
import { isOfHash } from "./stored-values.ts";
import { freshHead, type Head, type StoreTables } from "./tables.ts";

const ALL = Number.MAX_SAFE_INTEGER;

export function exportTree(tables: StoreTables, tenant: string, rootAgentId: string): StoredTree | undefined {
  const records = tables.agentsOfTree(tenant, rootAgentId);
  if (!records.some((record) => record.agentId === rootAgentId)) return undefined;
  const accounts = tables.accounts(tenant, rootAgentId);
  const waited = accounts.filter(({ line }) => line && line.waiting > 0);
  return {
    tenant,
    rootAgentId,
    agents: records.map((record) => agentAsStored(tables, record)),
    accounts,
    lines: Object.fromEntries(waited.map((account) => [account.id, tables.waiters(tenant, account)])),
    rows: tables.storedRows(tenant, rootAgentId),
    turns: tables.turnsOf({ tenant, agentId: rootAgentId }),
    definitions: tables.definitionsOf(tenant, rootAgentId),
    projections: tables.projections(tenant, rootAgentId),
  };
}

function agentAsStored(tables: StoreTables, record: AgentRecord): StoredAgent {
  const { tenant, agentId } = record;
  const key = { tenant, agentId };
  const { epoch, holder, seq, at, sign, batchId, work } = tables.head(key);
  // A child that was spawned but not started has applied no batch.
  const outcome = batchId === null ? undefined : tables.lastOutcome(key);
  return {
    record,
    epoch,
    isHeld: holder !== null,
    seq,
    at,
    sign,
    ...(work === "parked" ? { isParked: true } : {}),
    lastBatch: batchId !== null && outcome ? { id: batchId, outcome } : null,
    artifacts: tables.artifacts(key).flatMap(({ artifactId }) => tables.artifact(key, artifactId) ?? []),
    inbox: tables.inbox(key),
    timers: tables.timersOf(key),
    requests: tables.requests({ tenant, agentId }, undefined, ALL),
  };
}

/** Replaces the stored tree, inside a transaction of the adapter. */
export function importTree(
  tables: StoreTables,
  tree: StoredTree,
  processId: string,
  { known, replaces, keepsCursors = false }: ImportOptions = {},
): ImportOutcome {
  checkTree(tree);
  const { tenant, rootAgentId, agents, accounts, rows } = tree;
  if (!tables.agent({ tenant, agentId: rootAgentId })) assertNotDeleted(tables, tenant, rootAgentId);
  if (replaces && !mayReplace(tables, tree, processId, replaces)) return "notOwned";
  if (known && holdsOther(tables, tree, known)) return "newItems";
  const heads = new Map(
    tables.agentsOfTree(tenant, rootAgentId).map(({ agentId }) => [agentId, tables.head({ tenant, agentId })]),
  );
  const cursorsBefore = keepsCursors
    ? rows.map((row) => row.cursor)
    : keptCursors(tables.storedRows(tenant, rootAgentId), rows);
  // Exported trees contain no webhooks: a copy in another store sends nothing to this store's receivers.
  const webhooks = tables.webhooks(tenant, rootAgentId);
  tables.removeTree(tenant, rootAgentId);
  for (const agent of agents) putAgent(tables, agent);
  for (const account of accounts) putAccount(tables, tree, account);
  for (const turn of tree.turns) tables.putTurn(turn);
  for (const { record, inbox } of agents) {
    const own = rows.flatMap(({ agentId, entries }) => (agentId === record.agentId ? entries : []));
    restoreSteers(tables, record, own, inbox);
  }
  for (const definition of tree.definitions) tables.keepDefinition(tenant, rootAgentId, definition);
  const restored = tables.restoreRows(
    tenant,
    rows.map((row, index) => ({ row, cursor: cursorsBefore[index] })),
  );
  const cursors = new Map(rows.map((row, index) => [row.cursor, restored[index] ?? 0]));
  for (const agent of agents) {
    const { agentId } = agent.record;
    const head = headOf(agent, heads.get(agentId) ?? freshHead, processId);
    tables.putHead({ tenant, agentId }, head, agent.lastBatch ? moved(agent.lastBatch.outcome, cursors) : undefined);
  }
  if (webhooks) tables.putWebhooks(webhooks);
  for (const { name, cursor } of tree.projections) {
    const last = rows.findLast((row) => row.cursor <= cursor);
    tables.moveProjection(tenant, name, rootAgentId, (last && cursors.get(last.cursor)) ?? 0);
  }
  return "imported";
}

function mayReplace(
  tables: StoreTables,
  { tenant, rootAgentId }: StoredTree,
  processId: string,
  replaces: "absent" | "own",
): boolean {
  const root = { tenant, agentId: rootAgentId };
  const isStored = tables.agent(root) !== undefined;
  return replaces === "absent" ? !isStored : isStored && tables.head(root).holder === processId;
}

function holdsOther(tables: StoreTables, { tenant, rootAgentId }: StoredTree, known: KnownItems): boolean {
  return tables
    .agentsOfTree(tenant, rootAgentId)
    .some(({ agentId }) => tables.inbox({ tenant, agentId }).some(({ key }) => known.get(agentId)?.has(key) !== true));
}

function putAgent(tables: StoreTables, agent: StoredAgent): void {
  const key: AgentKey = { tenant: agent.record.tenant, agentId: agent.record.agentId };
  tables.putAgent(agent.record);
  for (const artifact of agent.artifacts) tables.putArtifact(key, artifact);
  for (const item of agent.inbox) tables.addToInbox(key, item);
  for (const timer of agent.timers) tables.setTimer(timer);
  for (const request of agent.requests) tables.putRequest(request);
}

function putAccount(tables: StoreTables, { tenant, rootAgentId, lines }: StoredTree, account: Account): void {
  tables.putAccount(tenant, rootAgentId, account);
  const waiters = (Object.hasOwn(lines, account.id) ? lines[account.id] : undefined) ?? [];
  if (account.line) tables.putWaiters(tenant, rootAgentId, { account, waiters, put: waiters, removed: [] });
}

/** If another process owns the stored agent, the epoch is raised so that this process cannot continue. */
function headOf(
  { record, epoch, isHeld, seq, at, sign, isParked, lastBatch, requests }: StoredAgent,
  before: Head,
  processId: string,
): Head {
  const isOthers = before.holder !== null && before.holder !== processId;
  return {
    epoch: Math.max(epoch, isOthers ? before.epoch + 1 : before.epoch),
    holder: isHeld ? processId : null,
    seq,
    at,
    sign,
    batchId: lastBatch?.id ?? null,
    openRequests: requests.filter((request) => request.status === "open").length,
    // The turn has not started: it is in the inbox.
    work: isParked ? "parked" : seq === 0 ? "none" : workOf(record),
  };
}

function moved(outcome: Committed, cursors: ReadonlyMap<number, number>): Committed {
  return { ...outcome, cursor: cursors.get(outcome.cursor) ?? 0 };
}

/** The cursors of the stored rows if the new tree only adds rows, because clients hold those cursors. */
function keptCursors(stored: readonly StoredRow[], rows: readonly StoredRow[]): readonly number[] {
  const goesOn = stored.every((row, index) => {
    const other = rows[index];
    return other !== undefined && other.agentId === row.agentId && isSameJson(row.entries, other.entries);
  });
  return goesOn ? stored.map((row) => row.cursor) : [];
}

function isSameJson(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other)));
}

function checkTree(tree: StoredTree): void {
  checkParts(tree);
  for (const definition of tree.definitions) {
    if (isOfHash(definition, definition.hash)) continue;
    throw refused(tree.rootAgentId, `definition "${definition.name}" does not match its hash ${definition.hash}`);
  }
}

/** Throws `InvalidInputError` unless agents, accounts, turns and rows belong together, with parents before their children. */
export function checkParts({ tenant, rootAgentId, agents, accounts, rows, turns }: StoredTree): void {
  const known = new Set<string>();
  for (const { record, timers, requests } of agents) {
    const { agentId, parentAgentId } = record;
    if (record.tenant !== tenant || record.rootAgentId !== rootAgentId) {
      throw refused(rootAgentId, `agent ${agentId} belongs to tree ${record.rootAgentId} of tenant ${record.tenant}`);
    }
    if (known.has(agentId)) throw refused(rootAgentId, `agent ${agentId} occurs twice`);
    if (parentAgentId !== null && !known.has(parentAgentId)) {
      throw refused(rootAgentId, `agent ${agentId} comes before its parent ${parentAgentId}`);
    }
    for (const one of [...timers, ...requests]) {
      if (one.tenant === tenant && one.agentId === agentId) continue;
      throw refused(rootAgentId, `agent ${agentId} contains a timer or request of agent ${one.agentId}`);
    }
    known.add(agentId);
  }
  if (!known.has(rootAgentId)) throw refused(rootAgentId, "its root agent is missing");
  for (const turn of turns) {
    if (turn.tenant === tenant && turn.agentId === rootAgentId) continue;
    throw refused(rootAgentId, `turn ${turn.turnId} belongs to agent ${turn.agentId} of tenant ${turn.tenant}`);
  }
  const parents = new Map(accounts.map(({ id, parentId }) => [id, parentId]));
  const ending = new Set<string | null>([null]);
  for (const { id } of accounts) {
    const chain = new Set<string>();
    for (let at: string | null = id; !ending.has(at); at = parents.get(at ?? "") ?? null) {
      if (at === null || chain.has(at)) throw refused(rootAgentId, `account ${id} is above itself`);
      chain.add(at);
    }
    for (const one of chain) ending.add(one);
  }
  let last = 0;
  for (const { agentId, cursor } of rows) {
    if (!known.has(agentId)) throw refused(rootAgentId, `row ${cursor} belongs to agent ${agentId}, which is missing`);
    if (cursor <= last) throw refused(rootAgentId, `row ${cursor} comes after row ${last}`);
    last = cursor;
  }
}

function refused(rootAgentId: string, why: string): InvalidInputError {
  return new InvalidInputError(`the tree of ${rootAgentId} is invalid: ${why}; import it exactly as it was exported`);
}
