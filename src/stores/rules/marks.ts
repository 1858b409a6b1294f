import { randomUUID } from "node:crypto";
import { type Moment, turnAccountId } from "../../budget/index.ts";
import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import { Ledger } from "./ledger.ts";
import type { MarkOutcome } from "./outcomes.ts";
import type { AbortCommand } from "./ports.ts";
import type { Tables } from "./tables.ts";

interface EffectiveMark {
  readonly reason: "paused" | "aborted";
  /** The agent with the mark. */
  readonly agentId: string;
  /** The reason that the caller gave for the abort. */
  readonly message?: string;
}

/**
 * The mark on the agent or an agent above it that forbids new intents of the turn. Aborts take precedence over pauses, and the highest
 * abort over those that were derived from it.
 */
export function effectiveMark(
  tables: Pick<Tables, "agent">,
  record: AgentRecord,
  ofTurnId: string,
): EffectiveMark | undefined {
  let paused: EffectiveMark | undefined;
  let aborted: EffectiveMark | undefined;
  let turnId: string | null = ofTurnId;
  for (let at: AgentRecord | undefined = record; at; ) {
    const { abort, agentId } = at;
    if (abort && abort.turnId === turnId) aborted = { reason: "aborted", agentId, message: abort.reason };
    if (at.pause) paused ??= { reason: "paused", agentId };
    // A background agent outlives the turn above, so aborting that turn does not end it.
    turnId = at.background ? null : at.parentTurnId;
    at = at.parentAgentId === null ? undefined : tables.agent({ tenant: at.tenant, agentId: at.parentAgentId });
  }
  return aborted ?? paused;
}

/** Whether a pause mark on the agent or above it holds the agent, independent of other marks. */
export function isHeld(tables: Pick<Tables, "agent">, record: AgentRecord | undefined): boolean {
  for (let at = record; at; ) {
    if (at.pause) return true;
    at = at.parentAgentId === null ? undefined : tables.agent({ tenant: at.tenant, agentId: at.parentAgentId });
  }
  return false;
}

/** The state of an agent when a mark is set or removed on it or above it. */
export interface MarkSituation {
  /** The agent is shut down; it reads its marks at its next start. */
  readonly isAsleep: boolean;
  /** The agent has an open turn, started or not. */
  readonly hasOpenTurn: boolean;
  /** The open turn already has an abort mark. */
  readonly isEnding: boolean;
  /** The agent itself has a pause mark. */
  readonly isPaused: boolean;
  /** Whether a pause mark above holds the agent, before and after the command. */
  readonly heldAbove: { readonly before: boolean; readonly after: boolean };
}

/**
 * The meaning of a command for one agent. `pause` and `resume`: for the agent in the command. `hold`: for agents below a paused one.
 * `end`: for the agent whose turn is aborted. `endBelow`: for agents that work for that turn. `none`: for agents below that are only
 * released, if at all.
 */
export type MarkAsk = "pause" | "hold" | "resume" | "end" | "endBelow" | "none";

interface MarkEffect {
  readonly isPaused: boolean;
  /** Whether its open turn gets an abort mark. */
  readonly isEnded: boolean;
  /** The inbox items for the agent, in this order. */
  readonly items: readonly ("pause" | "abort" | "resume")[];
}

/**
 * The complete rules of marks for one agent:
 * 1. A pause mark on an agent or above it holds the agent. When no mark holds it any longer, it gets a `resume`, whichever command
 *    removed the mark; otherwise it would wait forever.
 * 2. Aborting a turn removes the agent's own pause, because a held agent starts nothing, not even the end of its turn.
 * 3. Without an open turn nothing can be aborted, and the agent gets no item.
 */
export function markEffect(at: MarkSituation, ask: MarkAsk): MarkEffect {
  const isEnded = at.hasOpenTurn && (ask === "endBelow" || (ask === "end" && !at.isEnding));
  const isPaused = ask === "pause" || (at.isPaused && ask !== "resume" && !isEnded);
  const wasHeld = at.isPaused || at.heldAbove.before;
  const isFreed = wasHeld && !(isPaused || at.heldAbove.after);
  const isAwake = !at.isAsleep;
  const items: MarkEffect["items"][number][] = [];
  if (isAwake && (ask === "pause" || ask === "hold")) items.push("pause");
  if (isEnded) items.push("abort");
  if (isAwake && isFreed) items.push("resume");
  return { isPaused, isEnded, items };
}

function situationOf(
  { status, openTurnId, abort, pause }: Pick<AgentRecord, "status" | "openTurnId" | "abort" | "pause">,
  heldAbove: MarkSituation["heldAbove"],
): MarkSituation {
  return {
    isAsleep: status === "shutdown",
    hasOpenTurn: openTurnId !== null,
    isEnding: openTurnId !== null && abort?.turnId === openTurnId,
    isPaused: pause !== null,
    heldAbove,
  };
}

interface PauseCommand {
  readonly by: string;
  /** Whether to drop model calls in flight. */
  readonly isHurried?: boolean | undefined;
  /** Default: `now`. */
  readonly steady?: number | undefined;
}

export function pause(
  tables: Tables,
  key: AgentKey,
  { by, isHurried = false, steady }: PauseCommand,
  now: number,
): MarkOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  if (record.pause && !isHurried) return { type: "unchanged", posted: [] };
  const { posted } = markTree(tables, record, (at) => (at === record ? "pause" : "hold"), { by, now, isHurried });
  const held = posted.flatMap((agentId) => tables.agent({ tenant: key.tenant, agentId }) ?? []);
  return {
    type: "marked",
    posted: [...posted, ...leaveQueues(tables, held, switchKey("pause", key.agentId), { now, steady: steady ?? now })],
  };
}

export function resume(tables: Tables, key: AgentKey, by: string, now: number): MarkOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  if (!record.pause) return { type: "unchanged", posted: [] };
  const { posted } = markTree(tables, record, (at) => (at === record ? "resume" : null), { by, now });
  return { type: "marked", posted };
}

/** `isSuperseded`: a new message replaces the turn. */
interface MarkedAbort extends AbortCommand {
  readonly isSuperseded?: boolean | undefined;
}

/** With a turn id: aborts that turn and the work below it. Without one: aborts all open work of the agent and below it. */
export function abort(tables: Tables, key: AgentKey, command: MarkedAbort, now: number): MarkOutcome {
  const { turnId, by, accountId } = command;
  if (accountId !== undefined) return abortUnderAccount(tables, key, { ...command, accountId }, now);
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  const source = `abort:${key.agentId}`;
  if (turnId !== null && record.queuedTurnIds.includes(turnId)) {
    // The item waits in the inbox behind its turn, and ends the turn before its first step.
    const { reason, stopReason } = command;
    const item: InboxItem = { kind: "abort", key: `${source}:${turnId}`, at: now, turnId, by, reason, stopReason };
    return tables.addToInbox(key, item) ? { type: "marked", posted: [key.agentId] } : { type: "unchanged", posted: [] };
  }
  const isOpen = turnId === null || record.openTurnId === turnId;
  const isEnding = record.openTurnId !== null && record.abort?.turnId === record.openTurnId;
  if (!isOpen || (turnId !== null && isEnding)) return { type: "unchanged", posted: [] };
  const ask = (at: AgentRecord, isBound: boolean): MarkAsk | null => {
    if (at === record) return "end";
    return isBound || turnId === null ? "endBelow" : null;
  };
  const { posted, isMarked } = markTree(tables, record, ask, { by, now, abort: { ...command, source } });
  return { type: isMarked || posted.length > 0 ? "marked" : "unchanged", posted };
}

/**
 * Aborts all turns below the agent that spend under one of its accounts, because its time limit is reached. Agents that work for the
 * agent's own open turn are skipped, because that turn ends them.
 */
function abortUnderAccount(
  tables: Tables,
  key: AgentKey,
  command: AbortCommand & { readonly accountId: string },
  now: number,
): MarkOutcome {
  const holder = tables.agent(key);
  if (!holder) return { type: "notFound" };
  const { accountId, by } = command;
  const ask = (at: AgentRecord, isBound: boolean): MarkAsk | null => {
    if (at === holder) return "none";
    if (isBound) return null;
    return at.openTurnId !== null && spendsUnder(tables, at, at.openTurnId, accountId) ? "end" : "none";
  };
  const { posted } = markTree(tables, holder, ask, { by, now, abort: { ...command, source: `abort:${accountId}` } });
  return { type: posted.length > 0 ? "marked" : "unchanged", posted };
}

function spendsUnder(tables: Tables, spender: AgentRecord, turnId: string, accountId: string): boolean {
  const { tenant } = spender;
  // A turn that has not started has no account yet.
  const first = tables.account(tenant, turnAccountId(turnId))?.id ?? spender.accountId;
  for (let id = first; id !== null; id = tables.account(tenant, id)?.parentId ?? null)
    if (id === accountId) return true;
  return false;
}

/**
 * Removes held agents of one tree from the reservation queues; when they are resumed they ask again, behind later waiters. Returns the
 * agents that may ask now.
 */
function leaveQueues(
  tables: Tables,
  records: readonly AgentRecord[],
  cause: string,
  moment: Moment,
): readonly string[] {
  const [first] = records;
  if (!first) return [];
  const { tenant, agentId, rootAgentId } = first;
  const ledger = new Ledger(tables, { id: cause, key: { tenant, agentId }, rootAgentId }, moment);
  const held = new Set(records.map((record) => record.agentId));
  for (const { openTurnId } of records) {
    if (openTurnId !== null) ledger.leave(turnAccountId(openTurnId), ({ ask }) => held.has(ask.agentId));
  }
  return ledger.flush().posted;
}

/** The author and the reason of the command. */
interface MarkWords {
  readonly by: string;
  readonly now: number;
  readonly isHurried?: boolean;
  /** `source`: the common prefix of the item keys of one command. */
  readonly abort?: Pick<AbortCommand, "reason" | "stopReason"> & {
    readonly isSuperseded?: boolean | undefined;
    readonly source: string;
  };
}

/**
 * Applies a command to an agent and everything below it. `askOf` returns the meaning of the command for each agent; `null`: no effect on
 * it and all agents below, except that they may be released. `isBound`: whether the agent works for the open turn of the first one, which
 * background agents do not. Returns the agents whose inbox got an item, and whether the record of the first one has changed.
 */
function markTree(
  tables: Tables,
  first: AgentRecord,
  askOf: (at: AgentRecord, isBound: boolean) => MarkAsk | null,
  words: MarkWords,
): { readonly posted: string[]; readonly isMarked: boolean } {
  const posted: string[] = [];
  let isMarked = false;
  const visit = (at: AgentRecord, isBound: boolean, heldAbove: { before: boolean; after: boolean }): void => {
    const key = { tenant: at.tenant, agentId: at.agentId };
    const ask = askOf(at, isBound);
    if (ask === null && heldAbove.before === heldAbove.after) return;
    const effect = markEffect(situationOf(at, heldAbove), ask ?? "none");
    if (effect.isEnded || effect.isPaused !== (at.pause !== null)) {
      tables.putAgent(markedRecord(at, effect, words));
      isMarked ||= at === first;
    }
    const added = itemsOf(at, effect, { ...words, isFirst: at === first }).filter((item) =>
      tables.addToInbox(key, item),
    );
    if (added.length > 0 && at.status !== "shutdown") posted.push(at.agentId);
    const held = { before: heldAbove.before || at.pause !== null, after: heldAbove.after || effect.isPaused };
    for (const child of tables.childrenOf(key)) {
      const isOfTurn = child.parentTurnId === at.openTurnId && !child.background;
      visit(child, at === first ? isOfTurn : isBound, held);
    }
  };
  const above = first.parentAgentId === null ? undefined : { tenant: first.tenant, agentId: first.parentAgentId };
  const isHeldAbove = above !== undefined && isHeld(tables, tables.agent(above));
  visit(first, true, { before: isHeldAbove, after: isHeldAbove });
  return { posted, isMarked };
}

function markedRecord(at: AgentRecord, { isPaused, isEnded }: MarkEffect, { by, now, abort: words }: MarkWords) {
  const pause = isPaused ? (at.pause ?? { by, at: now }) : null;
  if (!isEnded || at.openTurnId === null || !words) return { ...at, pause };
  // A separate mark, because the mark above is removed with the turn above, which may end first.
  return { ...at, pause, abort: { by, at: now, turnId: at.openTurnId, reason: words.reason } };
}

function itemsOf(
  { agentId, openTurnId }: AgentRecord,
  { items }: MarkEffect,
  { by, now, isHurried = false, isFirst, abort: words }: MarkWords & { readonly isFirst: boolean },
): InboxItem[] {
  return items.flatMap((kind): InboxItem[] => {
    if (kind === "pause") {
      return [{ kind, key: switchKey(kind, agentId), at: now, by, ...(isHurried ? { now: true } : {}) }];
    }
    if (kind === "resume") return [{ kind, key: switchKey(kind, agentId), at: now, by }];
    if (!words) return [];
    const { source, reason, stopReason } = words;
    const superseded = words.isSuperseded && isFirst ? { isSuperseded: true } : {};
    return [
      { kind, key: `${source}:${openTurnId}`, at: now, turnId: openTurnId, by, reason, stopReason, ...superseded },
    ];
  });
}

/**
 * Every pause and resume gets a unique key: two of them in the same millisecond must not become one item. The record shows whether a
 * pause is set already.
 */
function switchKey(kind: "pause" | "resume", agentId: string): string {
  return `${kind}:${agentId}:${randomUUID()}`;
}
