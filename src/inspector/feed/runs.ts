import { type Account, shownAccount, turnAccountId } from "../../budget/index.ts";
import {
  type AgentRecord,
  type ForkedFrom,
  numberOfTurn,
  statusOf,
  type TurnRecord,
  turnIdOf,
} from "../../state/index.ts";
import { byAge, formatAgentCursor } from "../../stores/index.ts";
import type { RunHead, RunPage, RunRow, StoredAccounts } from "./answers.ts";
import type { FeedAgent, ForkOrigin } from "./messages.ts";
import { ownerOfRun } from "./owners.ts";
import type { RunDigests } from "./run-digests.ts";
import { type FeedSource, agentKeyIn, type RunSource, type Sources } from "./source.ts";
import { type Visibility, shownRequest } from "./visible-values.ts";

export interface RunQuery {
  /** `next` of the previous page. Default: start with the newest run. */
  readonly after?: string | undefined;
  /** Most runs in the page, 1 to 200. Default 50. */
  readonly limit?: number | undefined;
  /** A substring of the id or of the definition's name. */
  readonly text?: string | undefined;
  /** A lifecycle, the status or stop reason of the last turn, or `asking` for runs with a request to decide. */
  readonly status?: string | undefined;
  /** Only runs that have used this model. */
  readonly model?: string | undefined;
  /** Only runs in which an agent of this definition has used a model. */
  readonly agent?: string | undefined;
  /** Runs that began at this time or later, in milliseconds since the epoch. */
  readonly since?: number | undefined;
  /** Runs that began before this time. */
  readonly until?: number | undefined;
}

const ROOTS_AT_A_TIME = 50;
/** Most roots that one filtered answer examines; its `next` continues after them. */
const MOST_LOOKED_AT = 1_000;
const LONGEST_TASK = 160;
/** Most turns of a root whose accounts are read. If it has more, the newest are read. */
const MOST_TURNS = 100;

/** A page of the roots of all sources, newest first. */
export async function runPage(sources: Sources, query: RunQuery, sight: Visibility): Promise<RunPage> {
  const { limit = ROOTS_AT_A_TIME, text = "", status = "", since = 0, until = Number.POSITIVE_INFINITY } = query;
  const items: RunRow[] = [];
  let { after } = query;
  for (let seen = 0; seen < MOST_LOOKED_AT; ) {
    const roots = await rootsAfter(sources, after, ROOTS_AT_A_TIME);
    for (const { source, root } of roots) {
      seen += 1;
      after = formatAgentCursor(root);
      // The others are older still.
      if (root.createdAt < since) return { items, next: null };
      if (!isOfText(root, text) || root.createdAt >= until) continue;
      const row = await runRowOf({ source, digests: sources.digests }, root, sight);
      if (!isOfStatus(row, status) || !isOfSpending(row, query)) continue;
      items.push(row);
      if (items.length >= limit) return { items, next: after };
    }
    if (roots.length < ROOTS_AT_A_TIME) return { items, next: null };
  }
  return { items, next: after ?? null };
}

function isOfStatus({ status, turn, stopReason, openRequests }: RunRow, wanted: string): boolean {
  if (wanted === "asking") return openRequests > 0;
  return wanted === "" || status === wanted || turn === wanted || stopReason === wanted;
}

function isOfSpending({ spending }: RunRow, { model, agent }: RunQuery): boolean {
  if (model === undefined && agent === undefined) return true;
  return spending.some((one) => (model ?? one.model) === one.model && (agent ?? one.name) === one.name);
}

function isOfText({ agentId, definition }: AgentRecord, text: string): boolean {
  const wanted = text.toLowerCase();
  return agentId.toLowerCase().includes(wanted) || definition.name.toLowerCase().includes(wanted);
}

interface Root {
  readonly source: FeedSource;
  readonly root: AgentRecord;
}

async function rootsAfter(sources: Sources, after: string | undefined, limit: number): Promise<Root[]> {
  const lists = await Promise.all(
    sources.all().map(async (source) => {
      const filter = { tenant: source.tenant, rootsOnly: true, order: "newest", limit, after } as const;
      return (await source.stores.listAgents(filter)).map((root) => ({ source, root }));
    }),
  );
  return lists
    .flat()
    .toSorted((one, other) => byAge(one.root, other.root))
    .slice(0, limit);
}

/** The data from which the row of a run is made. */
export interface RowContext {
  readonly source: FeedSource;
  readonly digests: RunDigests;
}

export async function runRowOf(
  { source, digests }: RowContext,
  root: AgentRecord,
  { namesOnly, redactor }: Visibility,
): Promise<RunRow> {
  const { stores, tenant } = source;
  const { agentId: runId, definition, turnCount, createdAt, lastActivity, sessionId } = root;
  const { forkedFrom } = root;
  const [last, accounts, open, holder, digest, origin] = await Promise.all([
    lastTurnOf(source, root),
    topAccounts(source, root),
    stores.requests({ tenant, rootAgentId: runId, status: "open", limit: 1_000 }),
    stores.holder(agentKeyIn(source, runId)),
    digests.of(stores, tenant, runId),
    forkedFrom && stores.readAgent(agentKeyIn(source, forkedFrom.agentId)),
  ]);
  const status = statusOf(root);
  const owner = status === "busy" ? await ownerOfRun(source, holder, digest.busyIds) : undefined;
  const turnAccount = last && (await stores.account(tenant, turnAccountId(last.turnId)));
  return {
    runId,
    name: definition.name,
    status,
    turn: last?.status ?? null,
    stopReason: last?.stopReason ?? null,
    turns: turnCount,
    createdAt,
    lastActivity,
    task: namesOnly ? "" : firstWords(redactor.text(digest.task)),
    agents: digest.agents,
    failedAgents: digest.failedAgents,
    ...spentOn(accounts),
    spending: digest.spending,
    accounts: root.accountId === null ? [turnAccount ?? []].flat() : [...accounts, turnAccount ?? []].flat(),
    openRequests: open.length,
    isHeld: holder !== undefined,
    owner: owner?.state ?? null,
    sessionId: namesOnly ? null : sessionId,
    ...(forkedFrom ? { origin: { ...originOf(forkedFrom), isStored: origin !== undefined } } : {}),
    ...(root.stubs ? { isStubbed: true as const } : {}),
  };
}

function originOf({ agentId, turn, step }: ForkedFrom): ForkOrigin {
  return { runId: agentId, turn, step: step ?? null };
}

function firstWords(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > LONGEST_TASK ? `${line.slice(0, LONGEST_TASK)}…` : line;
}

/** The turn with the highest number among the most recently changed turns. */
async function lastTurnOf({ stores, tenant }: FeedSource, { agentId }: AgentRecord): Promise<TurnRecord | undefined> {
  const turns = await stores.turns({ tenant, agentId, limit: 10 });
  return turns.toSorted((one, other) => numberOfTurn(other.turnId) - numberOfTurn(one.turnId))[0];
}

/** The root's lifetime account or, without one, the accounts of its turns. They include all spending of the tree. */
async function topAccounts({ stores, tenant }: FeedSource, root: AgentRecord): Promise<Account[]> {
  const { agentId, accountId, nextTurnNumber } = root;
  if (accountId !== null) return [await stores.account(tenant, accountId)].filter((one) => one !== undefined);
  const first = Math.max(root.firstTurnNumber ?? 1, nextTurnNumber - MOST_TURNS);
  const numbers = Array.from({ length: Math.max(0, nextTurnNumber - first) }, (_, index) => first + index);
  const found = await Promise.all(
    numbers.map((number) => stores.account(tenant, turnAccountId(turnIdOf(agentId, number)))),
  );
  return found.filter((account) => account !== undefined);
}

function spentOn(accounts: readonly Account[]): Pick<RunRow, "tokens" | "costMicros" | "calls" | "unpricedCalls"> {
  const sum = (of: (account: Account) => number): number => accounts.reduce((total, one) => total + of(one), 0);
  const uses = accounts.flatMap(({ models }) => Object.values(models));
  const calls = uses.reduce((total, use) => total + use.calls, 0);
  const unpricedCalls = uses.reduce((total, use) => total + use.unpricedCalls, 0);
  const costMicros = calls > unpricedCalls ? sum(({ used }) => used.costMicros) : null;
  return { tokens: sum(({ used }) => used.tokens), costMicros, calls, unpricedCalls };
}

export function feedAgentOf(record: AgentRecord, { namesOnly }: Visibility): FeedAgent {
  const { agentId, definition, parentAgentId, parentTurnId, parentStep, parentCallId, background } = record;
  const { depth, accountId, parentAccountId, sessionId, createdAt, forkedFrom } = record;
  return {
    agentId,
    name: definition.name,
    definition: definition.hash,
    parentAgentId,
    parentTurnId,
    parentStep,
    parentCallId,
    isBackground: background !== undefined,
    depth,
    accountId,
    parentAccountId,
    sessionId: namesOnly ? null : sessionId,
    createdAt,
    ...(forkedFrom ? { origin: originOf(forkedFrom) } : {}),
    ...(record.stubs ? { isStubbed: true as const } : {}),
  };
}

/** A run at one moment. */
export async function runHead(source: RunSource, sight: Visibility): Promise<RunHead> {
  const { stores, tenant, runId, root } = source;
  const [head, waiters, run] = await Promise.all([
    stores.treeHead(tenant, runId),
    stores.waiters(tenant, runId),
    runRowOf({ source, digests: source.digests }, root, sight),
  ]);
  const { cursor = 0, agents = [], accounts = [], openRequests = [] } = head ?? {};
  return {
    run,
    cursor,
    agents: parentsFirst(agents).map((agent) => feedAgentOf(agent, sight)),
    accounts: [...accounts],
    waiters,
    requests: openRequests.map((request) => shownRequest(request, sight)),
  };
}

/** The agents of a tree by creation time, then by id. */
function parentsFirst(agents: readonly AgentRecord[]): AgentRecord[] {
  return agents.toSorted((one, other) => one.depth - other.depth || one.createdAt - other.createdAt);
}

export async function storedAccountsOf({ stores, tenant, runId }: RunSource): Promise<StoredAccounts> {
  const [head, waiters] = await Promise.all([stores.treeHead(tenant, runId), stores.waiters(tenant, runId)]);
  const root = head?.agents.find(({ agentId }) => agentId === runId);
  const above = root ? await stores.outer.of(tenant, root.ownerId) : [];
  const stored = { cursor: head?.cursor ?? 0, accounts: [...(head?.accounts ?? [])], waiters };
  return above.length === 0 ? stored : { ...stored, above: above.map((account) => shownAccount(account, Date.now())) };
}
