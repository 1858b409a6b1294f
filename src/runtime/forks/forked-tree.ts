import { hashOfArguments, waitTimerId } from "../../actors/index.ts";
import { type Account, type Binding, bindingField, bindingOf, type Limits, nothingBinds } from "../../budget/index.ts";
import {
  type AgentRecord,
  type AgentRequest,
  type Artifact,
  type Entry,
  type EntryOf,
  type ForkedFrom,
  type InboxItem,
  type Lifecycle,
  type Message,
  newRecord,
  textOf,
  type Timer,
  turnIdOf,
} from "../../state/index.ts";
import {
  limitTimerId,
  requestTimerId,
  type StoredAgent,
  type StoredRow,
  type StoredTree,
  type StoredTurn,
} from "../../stores/index.ts";
import { RECORDED_CALLS } from "../agent/recorded-calls.ts";
import { changedPast, type PastChanges } from "./changed-past.ts";
import { CopiedIds } from "./copied-ids.ts";
import type { CutPoint } from "./fork-points.ts";
import { accountsOf, turnsOf } from "./forked-accounts.ts";
import { withLaterTimes } from "./later-times.ts";
import { openRequestIdsOf, type Past, pastOf, type PastAgent } from "./past-of.ts";
import { recordedCallsOf } from "./recorded-list.ts";

/** How a fork differs from its origin. */
export interface ForkChanges extends PastChanges {
  /** The id of the new root agent. */
  readonly agentId: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Tools that run although they have an effect outside. */
  readonly allowed: readonly string[];
}

/**
 * The tree that continues from the point: the past with new ids, unused budgets and nothing in flight. Deadlines, expiries and waits keep
 * their distance from the point.
 */
export function forkedTree(tree: StoredTree, point: CutPoint, changes: ForkChanges): StoredTree {
  const { agentId, now, allowed } = changes;
  const { tenant, rootAgentId, definitions } = tree;
  const byMs = now - point.at;
  const past = changedPast(pastOf(tree, point), point, rootAgentId, {
    ...changes,
    limits: before(changes.limits, byMs),
  });
  const ids = new CopiedIds(rootAgentId, agentId);
  const { live: recordedLive, over } = accountsOf(tree, past);
  const live = recordedLive.map((account) => ({ ...withLaterTimes(account, byMs), openedAt: account.openedAt + byMs }));
  const rows = past.rows.map(
    (row, index): StoredRow => ({
      version: 1,
      cursor: index + 1,
      agentId: row.agentId,
      entries: withLaterTimes(row.entries, byMs),
      messages: row.messages.map(sentAsBefore),
    }),
  );
  const accounts = new Map([...live, ...over].map((account) => [account.id, account]));
  const agents = past.agents.map((agent) => storedAgent(past, agent, { tenant, byMs, live, accounts }));
  const copied = rehashed(
    rows,
    ids.copy({ agents, accounts: [...live, ...over], rows, turns: storedTurns(tree, past) }),
  );
  const forkedFrom = forkedFromOf(tree, point, allowed);
  const recorded = recordedArtifact(recordedCallsOf(tree, past, ids), now);
  return {
    tenant,
    rootAgentId: agentId,
    lines: {},
    projections: [],
    definitions,
    ...copied,
    agents: copied.agents.map((agent, index): StoredAgent => {
      const isRoot = agent.record.agentId === agentId;
      const before = past.agents[index]?.stored.record;
      return {
        ...agent,
        artifacts: [...agent.artifacts.filter((one) => one.artifactId !== RECORDED_CALLS), ...(isRoot ? recorded : [])],
        record: {
          ...agent.record,
          // Data of the program, whose texts may look like ids.
          metadata: before?.metadata ?? {},
          ...(before?.stubs ? { stubs: before.stubs } : {}),
          ...(isRoot ? { createdAt: now } : {}),
          forkedFrom,
        },
      };
    }),
  };
}

/** A deadline that was chosen for the fork must not move with the others. */
function before(limits: Limits | undefined, byMs: number): Limits | undefined {
  if (limits?.deadlineAt === undefined) return limits;
  return { ...limits, deadlineAt: limits.deadlineAt - byMs };
}

function forkedFromOf({ rootAgentId, agents }: StoredTree, point: CutPoint, allowed: readonly string[]): ForkedFrom {
  const before = agents.find(({ record }) => record.agentId === rootAgentId)?.record.forkedFrom;
  return {
    agentId: rootAgentId,
    turn: point.turn,
    ...(point.step === null ? {} : { step: point.step }),
    ...(before ? { firstAgentId: before.firstAgentId ?? before.agentId } : {}),
    ...(allowed.length > 0 ? { allowed: [...allowed] } : {}),
  };
}

/** Prompts are formed with the ids of the first tree, so that providers see the same prefix. */
function sentAsBefore(message: Message): Message {
  if (message.role === "tool") return { ...message, sentCallId: message.sentCallId ?? message.callId };
  if (message.role !== "assistant" || !message.toolCalls) return message;
  const toolCalls = message.toolCalls.map((call) => ({ ...call, sentCallId: call.sentCallId ?? call.callId }));
  return { ...message, toolCalls };
}

interface ForkParts {
  readonly tenant: string;
  readonly byMs: number;
  readonly live: readonly Account[];
  /** All accounts of the fork, by id. */
  readonly accounts: ReadonlyMap<string, Account>;
}

function storedAgent(past: Past, agent: PastAgent, { tenant, byMs, live, accounts }: ForkParts): StoredAgent {
  const { stored, entries, turn } = agent;
  const { agentId } = stored.record;
  const open = openRequestIdsOf(entries);
  const opened = new Set(entries.flatMap((entry) => (entry.type === "request.opened" ? [entry.requestId] : [])));
  const requests = stored.requests
    .filter(({ requestId }) => opened.has(requestId))
    .map((request) => (open.has(request.requestId) ? reopened(request, byMs) : request));
  const saved = new Set(entries.flatMap((entry) => (entry.type === "artifact.saved" ? [entry.artifactId] : [])));
  const last = entries.at(-1);
  return {
    record: recordOf(agent, accounts),
    epoch: entries.reduce((most, { epoch }) => Math.max(most, epoch), 0),
    isHeld: false,
    seq: last?.seq ?? 0,
    at: last?.at ?? 0,
    sign: 0,
    lastBatch: null,
    artifacts: stored.artifacts.filter(({ artifactId }) => saved.has(artifactId)),
    inbox: turn ? [turn] : inboxOf(past, agent),
    timers: [
      ...requests.filter(({ status }) => status === "open").flatMap(requestTimer),
      ...waitTimers(tenant, agent, byMs),
      ...live.filter((account) => account.agentId === agentId).flatMap((account) => deadlineTimer(tenant, account)),
    ],
    requests,
  };
}

function recordOf(
  { stored: { record }, entries, turn }: PastAgent,
  accounts: ReadonlyMap<string, Account>,
): AgentRecord {
  const { queued: _queued, forkedFrom: _before, binding: _ofOrigin, ...rest } = record;
  const { ended, open } = turnsOf({ entries });
  const end = ended.at(-1);
  const newest = open?.number ?? end?.number ?? 0;
  const openTurnId = turn?.turnId ?? open?.turnId ?? null;
  return {
    ...rest,
    ...ownedFields(newRecord(record), entries),
    ...bindingField(bindingAt(record.accountId ?? record.parentAccountId, accounts)),
    checkpoint: null,
    openTurnId,
    queuedTurnIds: [],
    nextTurnNumber: turn ? turn.number + 1 : Math.max(newest + 1, record.firstTurnNumber ?? 1),
    pause: null,
    abort: null,
  };
}

/** The binding of an account: the limits of the fork's turn may differ from those of the origin's. */
function bindingAt(id: string | null, accounts: ReadonlyMap<string, Account>): Binding {
  const account = id === null ? undefined : accounts.get(id);
  return account ? bindingOf(account.limits, bindingAt(account.parentId, accounts)) : nothingBinds;
}

type Owned = Pick<AgentRecord, "status" | "turnCount" | "lastActivity" | "error">;

function ownedFields(before: AgentRecord, entries: readonly Entry[]): Owned {
  let { status, turnCount, lastActivity, error }: Owned = before;
  for (const entry of entries) {
    const next = lifecycleAfter(entry);
    if (next === undefined) continue;
    status = next;
    lastActivity = entry.at;
    if (entry.type !== "turn.ended") continue;
    turnCount = entry.number;
    error = entry.error;
  }
  return { status, turnCount, lastActivity, error };
}

function lifecycleAfter(entry: Entry): Lifecycle | undefined {
  if (entry.type === "agent.started") return "ready";
  if (entry.type === "agent.shutdown") return "shutdown";
  if (entry.type === "agent.resumed") return entry.to === "busy" ? "ready" : entry.to;
  return entry.type === "turn.ended" ? entry.lifecycle : undefined;
}

/** An open request as it was before any decision on it. */
function reopened({ decidedWith: _key, ...request }: AgentRequest, byMs: number): AgentRequest {
  const expiresAt = request.expiresAt === null ? null : request.expiresAt + byMs;
  return { ...request, expiresAt, status: "open", decision: null, decidedAt: null };
}

function requestTimer({ tenant, agentId, requestId, expiresAt }: AgentRequest): Timer[] {
  if (expiresAt === null) return [];
  return [{ kind: "request", tenant, agentId, id: requestTimerId(requestId), dueAt: expiresAt, requestId }];
}

function waitTimers(tenant: string, { stored, entries }: PastAgent, byMs: number): Timer[] {
  const { agentId } = stored.record;
  const over = new Set(entries.flatMap((entry) => (entry.type === "tool.settled" ? [entry.callId] : [])));
  const expired = new Set(entries.flatMap((entry) => (entry.type === "call.expired" ? [entry.callId] : [])));
  return entries.flatMap((entry): Timer[] => {
    if (entry.type !== "call.waiting" || entry.until === null) return [];
    const { callId, turnId, until } = entry;
    if (over.has(callId) || expired.has(callId)) return [];
    return [{ kind: "wait", tenant, agentId, id: waitTimerId(callId), dueAt: until + byMs, turnId, callId }];
  });
}

/** Timers of working time are set when an agent begins to work. */
function deadlineTimer(tenant: string, { id, agentId, limits }: Account): Timer[] {
  const { deadlineAt } = limits;
  if (deadlineAt === undefined) return [];
  const timerId = limitTimerId("deadlineAt", id);
  return [{ kind: "limit", tenant, agentId, id: timerId, dueAt: deadlineAt, accountId: id, limit: "deadlineAt" }];
}

/** The ends of subagents that had been posted to the agent, and that it had not taken. */
function inboxOf(past: Past, { stored, entries }: PastAgent): InboxItem[] {
  const taken = new Set(
    entries.flatMap((entry) =>
      entry.type === "child.ended" || entry.type === "child.reported" ? [entry.childId] : [],
    ),
  );
  const { open } = turnsOf({ entries });
  return past.agents.flatMap((child): InboxItem[] => {
    const { record } = child.stored;
    const { agentId: childId, parentAgentId, parentTurnId, parentStep, parentCallId, background } = record;
    if (parentAgentId !== stored.record.agentId || taken.has(childId)) return [];
    const first = turnIdOf(childId, 1);
    const ended = child.entries.find((entry): entry is EntryOf<"turn.ended"> => isEndOf(entry, first));
    if (!ended) return [];
    const leavesWork = leavesWorkAt(child);
    const end = { childId, childTurnId: first, ...endOf(past, ended), ...(leavesWork ? { leavesWork } : {}) };
    const { at } = ended;
    if (background) {
      const { onEnd } = background;
      const started = child.entries.find((entry) => entry.type === "turn.started");
      const actorId = started?.type === "turn.started" ? started.actorId : null;
      const name = record.definition.name;
      return [{ kind: "child.reported", key: `child.reported:${first}`, at, name, onEnd, actorId, ...end }];
    }
    if (parentTurnId === null || parentStep === null || open?.turnId !== parentTurnId) return [];
    const key = `child.ended:${first}`;
    return [{ kind: "child.ended", key, at, parentTurnId, step: parentStep, callId: parentCallId, ...end }];
  });
}

function isEndOf(entry: Entry, turnId: string): boolean {
  return entry.type === "turn.ended" && entry.turnId === turnId;
}

function endOf({ rows }: Past, { outcome, stopReason, error, outputMessageId }: EntryOf<"turn.ended">) {
  const message = rows.flatMap((row) => row.messages).find(({ id }) => id === outputMessageId);
  const text = textOf(message?.content ?? "");
  return { outcome, stopReason, text: outcome === "failed" ? (error?.message ?? text) : text, error };
}

/** Whether a child has background children of its own that have not ended. */
function leavesWorkAt({ entries }: PastAgent): boolean {
  const running = new Set<string>();
  for (const entry of entries) {
    if (entry.type === "child.spawned" && entry.background) running.add(entry.childId);
    if (entry.type === "child.reported") running.delete(entry.childId);
  }
  return running.size > 0;
}

/** The turns of the root agent. Keys of commands are not copied: the same key may be used again. */
function storedTurns({ rootAgentId, turns }: StoredTree, { agents }: Past): StoredTurn[] {
  const root = agents.find(({ stored }) => stored.record.agentId === rootAgentId);
  const { ended, open } = turnsOf(root ?? { entries: [] });
  const past = new Set([...ended.map(({ turnId }) => turnId), ...(open ? [open.turnId] : [])]);
  return turns.flatMap((turn): StoredTurn[] => {
    if (!past.has(turn.turnId)) return [];
    const kept = { ...turn, key: null, hash: null };
    return [turn.turnId === open?.turnId ? { ...kept, status: "open", stopReason: null, changedAt: open.at } : kept];
  });
}

interface Copied {
  readonly agents: readonly StoredAgent[];
  readonly accounts: readonly Account[];
  readonly rows: readonly StoredRow[];
  readonly turns: readonly StoredTurn[];
}

/** Arguments may contain ids of subagents: the hashes by which approvals are bound to them follow. */
function rehashed(before: readonly StoredRow[], copied: Copied): Copied {
  const hashes = new Map<string, string>();
  for (const [row, { entries }] of before.entries()) {
    for (const [index, entry] of entries.entries()) {
      const copy = copied.rows[row]?.entries[index];
      if (entry.type !== "call.gated" || copy?.type !== "call.gated" || entry.argumentsHash === "") continue;
      // Arguments that were changed in the store stay refused.
      if (hashOfArguments(entry.arguments) !== entry.argumentsHash) continue;
      const hash = hashOfArguments(copy.arguments);
      if (hash !== entry.argumentsHash) hashes.set(entry.argumentsHash, hash);
    }
  }
  if (hashes.size === 0) return copied;
  const follow = <T extends { readonly argumentsHash: string }>(one: T): T => ({
    ...one,
    argumentsHash: hashes.get(one.argumentsHash) ?? one.argumentsHash,
  });
  return {
    ...copied,
    rows: copied.rows.map((row) => ({
      ...row,
      entries: row.entries.map((entry) => ("argumentsHash" in entry ? follow(entry) : entry)),
    })),
    agents: copied.agents.map((agent) => ({ ...agent, requests: agent.requests.map(follow) })),
  };
}

function recordedArtifact(calls: readonly unknown[], now: number): Artifact[] {
  if (calls.length === 0) return [];
  const content = JSON.stringify(calls);
  return [
    {
      artifactId: RECORDED_CALLS,
      name: RECORDED_CALLS,
      version: 1,
      contentType: "application/json",
      size: Buffer.byteLength(content),
      createdAt: now,
      turnId: null,
      callId: null,
      content,
    },
  ];
}
