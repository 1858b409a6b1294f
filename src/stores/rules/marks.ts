import { randomUUID } from "node:crypto";
import { turnAccountId } from "../../budget/index.ts";
import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import { Ledger } from "./ledger.ts";
import type { MarkOutcome } from "./outcomes.ts";
import type { AbortCommand } from "./ports.ts";
import type { Moment } from "./queries.ts";
import type { Tables } from "./tables.ts";

export interface StandingMark {
  readonly reason: "paused" | "aborted";
  /** Whose mark it is. */
  readonly agentId: string;
  /** Why, in the words of whoever aborted it. */
  readonly message?: string;
}

/**
 * The mark on the agent or above it that forbids new intents of the turn. An abort counts before a pause, and the one that
 * stands highest before those it was handed down as.
 */
export function standingMark(
  tables: Pick<Tables, "agent">,
  record: AgentRecord,
  ofTurnId: string,
): StandingMark | undefined {
  let paused: StandingMark | undefined;
  let aborted: StandingMark | undefined;
  let turnId: string | null = ofTurnId;
  for (let at: AgentRecord | undefined = record; at; ) {
    const { abort, agentId } = at;
    if (abort && abort.turnId === turnId) aborted = { reason: "aborted", agentId, message: abort.reason };
    if (at.pause) paused ??= { reason: "paused", agentId };
    // One in the background outlasts the turn above: what ends that turn does not end it.
    turnId = at.background ? null : at.parentTurnId;
    at = at.parentAgentId === null ? undefined : tables.agent({ tenant: at.tenant, agentId: at.parentAgentId });
  }
  return aborted ?? paused;
}

/** Whether a pause mark on the agent or above it holds it, whatever else stands there. */
export function isHeld(tables: Pick<Tables, "agent">, record: AgentRecord | undefined): boolean {
  for (let at = record; at; ) {
    if (at.pause) return true;
    at = at.parentAgentId === null ? undefined : tables.agent({ tenant: at.tenant, agentId: at.parentAgentId });
  }
  return false;
}

/** Where an agent stands when a mark is set or taken away on it, or above it. */
export interface MarkSituation {
  /** Shut down: it finds its marks at its next start. */
  readonly isAsleep: boolean;
  /** A turn of it is open, begun or not. */
  readonly hasOpenTurn: boolean;
  /** The open turn has its abort mark. */
  readonly isEnding: boolean;
  /** It has a pause mark of its own. */
  readonly isPaused: boolean;
  /** Whether a pause mark above it holds it: before the command, and after it. */
  readonly heldAbove: { readonly before: boolean; readonly after: boolean };
}

/**
 * What a command asks of one agent. `pause`, `resume`: of the one that it names. `hold`: of those below a paused one. `end`:
 * the open turn of the one that it names; `endBelow`: of those that work for it. `none`: they stand below, and are only
 * held no longer.
 */
export type MarkAsk = "pause" | "hold" | "resume" | "end" | "endBelow" | "none";

export interface MarkEffect {
  readonly isPaused: boolean;
  /** Its open turn gets an abort mark. */
  readonly isEnded: boolean;
  /** What it is told, in this order. */
  readonly told: readonly ("pause" | "abort" | "resume")[];
}

/**
 * The whole rule of marks, for one agent:
 * 1. A pause mark on an agent or above it holds the agent. Who is held no longer is told to go on, whichever command took the
 *    mark away: an agent that nobody tells stays as it is for ever.
 * 2. What ends a turn takes the agent's own pause away, since one that is held begins nothing, not even its end.
 * 3. Without an open turn there is nothing to end, and nothing is told.
 */
export function markEffect(at: MarkSituation, ask: MarkAsk): MarkEffect {
  const isEnded = at.hasOpenTurn && (ask === "endBelow" || (ask === "end" && !at.isEnding));
  const isPaused = ask === "pause" || (at.isPaused && ask !== "resume" && !isEnded);
  const wasHeld = at.isPaused || at.heldAbove.before;
  const isFreed = wasHeld && !(isPaused || at.heldAbove.after);
  const isTold = !at.isAsleep;
  const told: MarkEffect["told"][number][] = [];
  if (isTold && (ask === "pause" || ask === "hold")) told.push("pause");
  if (isEnded) told.push("abort");
  if (isTold && isFreed) told.push("resume");
  return { isPaused, isEnded, told };
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

/** In whose name, and why. */
interface MarkWords {
  readonly by: string;
  readonly now: number;
  readonly isHurried?: boolean;
  /** `source`: what all aborts of one command have in their keys. */
  readonly abort?: Pick<AbortCommand, "reason" | "stopReason"> & {
    readonly isSuperseded?: boolean | undefined;
    readonly source: string;
  };
}

/**
 * Asks an agent and everything below it for what a command means there; null: of it and all below it nothing, but that they
 * go on where they are held no longer. `isBound`: whether the agent works for the turn that is open on the first one, which
 * those in the background do not. Gives those whose inbox got something, and whether a mark of the first one has changed.
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
  // Of its own: the mark above goes with the turn above, which may be over first.
  return { ...at, pause, abort: { by, at: now, turnId: at.openTurnId, reason: words.reason } };
}

function itemsOf(
  { agentId, openTurnId }: AgentRecord,
  { told }: MarkEffect,
  { by, now, isHurried = false, isFirst, abort: words }: MarkWords & { readonly isFirst: boolean },
): InboxItem[] {
  return told.flatMap((kind): InboxItem[] => {
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
 * Pause and resume alternate, so none of them is a double of another; the record's own field tells the second pause
 * from the first, and the key must not make the two one item when both come within a millisecond.
 */
function switchKey(kind: "pause" | "resume", agentId: string): string {
  return `${kind}:${agentId}:${randomUUID()}`;
}

/**
 * Ends whatever is open below the agent and spends under one account of it: its limit on time has run out. What belongs to the
 * agent's own open turn is left to that turn, which ends it with itself.
 */
function abortSpenders(
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
  // A turn that waits to begin has no account yet.
  const first = tables.account(tenant, turnAccountId(turnId))?.id ?? spender.accountId;
  for (let id = first; id !== null; id = tables.account(tenant, id)?.parentId ?? null)
    if (id === accountId) return true;
  return false;
}

export interface PauseCommand {
  readonly by: string;
  /** Whether model calls in flight are to be dropped. */
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
    posted: [...posted, ...endWaitsOf(tables, held, switchKey("pause", key.agentId), { now, steady: steady ?? now })],
  };
}

export function resume(tables: Tables, key: AgentKey, by: string, now: number): MarkOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  if (!record.pause) return { type: "unchanged", posted: [] };
  const { posted } = markTree(tables, record, (at) => (at === record ? "resume" : null), { by, now });
  return { type: "marked", posted };
}

/** `isSuperseded`: a new message takes the place of the turn. */
export interface MarkedAbort extends AbortCommand {
  readonly isSuperseded?: boolean | undefined;
}

/** With a turn: that turn and what works below it. Without: whatever is open on the agent and on all below it. */
export function abort(tables: Tables, key: AgentKey, command: MarkedAbort, now: number): MarkOutcome {
  const { turnId, by, accountId } = command;
  if (accountId !== undefined) return abortSpenders(tables, key, { ...command, accountId }, now);
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  const source = `abort:${key.agentId}`;
  if (turnId !== null && record.queuedTurnIds.includes(turnId)) {
    // It waits in the inbox behind its turn, and ends it before its first step.
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
 * The same for agents of one tree that were told to hold: they ask again when they go on, behind those that came meanwhile.
 * Gives the agents that may ask now.
 */
function endWaitsOf(tables: Tables, records: readonly AgentRecord[], cause: string, moment: Moment): readonly string[] {
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
