import { turnAccountId } from "../../budget/index.ts";
import { UnsupportedError } from "../../errors/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  endOfTurn,
  entriesOfTurn,
  type Entry,
  numberOfTurn,
  settingsIn,
  type TurnItem,
  turnIdOf,
} from "../../state/index.ts";
import { abort } from "./marks.ts";
import type { OpenTurnOutcome, StoredLook } from "./outcomes.ts";
import type { TurnCommand, TurnKey } from "./ports.ts";
import type { StoreTables, Tables } from "./tables.ts";

/** Number of entries in the first read from the end; a turn with one call has fewer. */
const FIRST_REACH = 16;

/** Commands only change their own fields of a record and post to inboxes, and return at once. */
export function openTurn(tables: Tables, key: AgentKey, command: TurnCommand, now: number): OpenTurnOutcome {
  const found = tables.agent(key);
  if (!found) return { type: "notFound" };
  const { key: turnKey } = command;
  const known = turnKey && knownInput(tables, found, turnKey);
  if (known) return known;
  const { status } = found;
  if (command.onlyKnown || status === "created" || status === "shutdown") return { type: "refused", status };
  const { openTurnId } = found;
  if (command.isFirst && found.nextTurnNumber > 1) return { type: "given", turnId: turnIdOf(key.agentId, 1) };
  if (openTurnId !== null && command.ifBusy === "refuse") return { type: "busy", openTurnId };
  const isSuperseding = openTurnId !== null && command.ifBusy === "supersede";
  const aborted = isSuperseding ? supersede(tables, key, openTurnId, command.actorId, now) : [];
  // Aborting has changed the record.
  const record = tables.agent(key) ?? found;
  const opened = queueTurn(tables, record, command, now);
  const posted = [...new Set([key.agentId, ...aborted])];
  return { type: openTurnId === null ? "opened" : "queued", ...opened, posted };
}

/** The fields of a turn that its caller chooses. */
type AskedTurn = Omit<TurnCommand, "ifBusy"> & Pick<TurnItem, "steerId">;

/** Opens a turn, or queues it behind the open and the queued ones. */
export function queueTurn(tables: Tables, record: AgentRecord, asked: AskedTurn, now: number) {
  const { openTurnId, nextTurnNumber: number } = record;
  const turnId = turnIdOf(record.agentId, number);
  const item = itemOf(asked, { turnId, number, at: now });
  const changed: AgentRecord = {
    ...record,
    nextTurnNumber: number + 1,
    openTurnId: openTurnId ?? turnId,
    queuedTurnIds: openTurnId === null ? record.queuedTurnIds : [...record.queuedTurnIds, turnId],
  };
  tables.putAgent(changed);
  tables.addToInbox(record, item);
  addTurn(tables, changed, { turnId, number, key: asked.key }, now);
  return { turnId, number, item, record: changed };
}

function itemOf(asked: AskedTurn, turn: Pick<TurnItem, "turnId" | "number" | "at">): TurnItem {
  const { input, actorId, limits, trace, inputMessageIds, clientTools, settings, key, steerId } = asked;
  return {
    kind: "turn",
    key: `turn:${turn.turnId}`,
    ...turn,
    input,
    actorId,
    limits,
    ...(trace ? { trace } : {}),
    ...(inputMessageIds ? { inputMessageIds: [...inputMessageIds] } : {}),
    ...(clientTools ? { clientTools: [...clientTools] } : {}),
    ...(settings ? { settings: settingsIn(settings) } : {}),
    ...(key ? { turnKey: key } : {}),
    ...(steerId === undefined ? {} : { steerId }),
  };
}

type KnownInput = Extract<OpenTurnOutcome, { type: "known" | "conflict" }>;

/** Aborts the open turn and the work below it for a new message. Returns the agents whose inbox got an item. */
function supersede(
  tables: Tables,
  key: AgentKey,
  turnId: string,
  actorId: string | null,
  now: number,
): readonly string[] {
  const by = actorId ?? "user";
  const reason = "superseded by a new message";
  const outcome = abort(tables, key, { turnId, by, reason, stopReason: "user_requested", isSuperseded: true }, now);
  return outcome.type === "notFound" ? [] : outcome.posted;
}

/** The outcome for a command with a known key; `undefined` if the command is new. */
export function knownInput(tables: Tables, record: AgentRecord, key: TurnKey): KnownInput | undefined {
  if (record.parentAgentId !== null) {
    throw new UnsupportedError(
      `agent ${record.agentId} is a subagent, but keys are only for turns of root agents; leave out the key`,
    );
  }
  const known = tables.meaningOf(record, key.text);
  if (!known) return undefined;
  if ("requestId" in known) return { type: "conflict", ...known };
  const { turnId, hash } = known;
  return hash === key.hash ? { type: "known", turnId, record } : { type: "conflict", turnId };
}

interface ListedTurn {
  readonly turnId: string;
  readonly number: number;
  readonly key?: TurnKey | undefined;
}

/**
 * Adds a turn of a root agent to the list of turns; turns of subagents belong to the turn that spawned them, and are not listed. Call it
 * with the record after the command.
 */
export function addTurn(tables: Tables, record: AgentRecord, { turnId, number, key }: ListedTurn, now: number): void {
  const { tenant, agentId, parentAgentId, sessionId, ownerId, openTurnId } = record;
  if (parentAgentId !== null) return;
  tables.putTurn({
    tenant,
    agentId,
    turnId,
    number,
    sessionId,
    ownerId,
    key: key?.text ?? null,
    hash: key?.hash ?? null,
    status: openTurnId === turnId ? "open" : "queued",
    stopReason: null,
    openedAt: now,
    changedAt: now,
  });
}

interface TurnEnd {
  readonly entries: readonly Entry[];
  readonly closedTurnId: string | null;
  readonly now: number;
}

/** Records the end of a turn and the start of the queued one that follows it. */
export function moveTurns(tables: Tables, before: AgentRecord, after: AgentRecord, end: TurnEnd): void {
  const { entries, closedTurnId, now: changedAt } = end;
  if (closedTurnId === null || before.parentAgentId !== null) return;
  const entry = entries.find((one) => one.type === "turn.ended");
  const { outcome: status = "stopped", stopReason = "unknown" } = entry?.type === "turn.ended" ? entry : {};
  tables.moveTurn(before, closedTurnId, { status, stopReason, changedAt });
  const { openTurnId } = after;
  if (openTurnId === null || openTurnId === before.openTurnId) return;
  tables.moveTurn(before, openTurnId, { status: "open", stopReason: null, changedAt });
}

/** Whether a turn was opened, and is neither open nor queued any more. */
export function isPast({ nextTurnNumber, openTurnId, queuedTurnIds }: AgentRecord, turnId: string): boolean {
  return nextTurnNumber > numberOfTurn(turnId) && openTurnId !== turnId && !queuedTurnIds.includes(turnId);
}

/** Reads the journal only if the turn may have ended, because a waiter calls this after each change of its agent. */
export function lookAtTurn(
  tables: Pick<StoreTables, "agent" | "rowsFrom" | "messagesById" | "account">,
  key: AgentKey,
  turnId: string,
  after?: number,
): StoredLook | undefined {
  const record = tables.agent(key);
  if (!record || !isPast(record, turnId)) return record && { record, past: undefined };
  const entries = entriesOf(tables, record, turnId, after);
  const id = answerIdOf(entries);
  const [answer] = id === null ? [] : tables.messagesById(key, [id]);
  return { record, past: { entries, answer, account: tables.account(key.tenant, turnAccountId(turnId)) } };
}

/** The message that the end of a turn refers to, from the turn's entries. */
export function answerIdOf(entries: readonly Entry[]): string | null {
  return endOfTurn(entries)?.outputMessageId ?? null;
}

/** The entries of a turn, read backwards from the end: most waiters need one of the last turns. */
function entriesOf(
  tables: Pick<StoreTables, "rowsFrom">,
  record: AgentRecord,
  turnId: string,
  after?: number,
): readonly Entry[] {
  const end = record.checkpoint?.seq ?? 0;
  let from = after === undefined ? end - FIRST_REACH : after + 1;
  for (;;) {
    const rows = tables.rowsFrom(record, Math.max(1, from));
    const all = rows.flatMap((row): readonly Entry[] => row.entries);
    const entries = entriesOfTurn(all, turnId);
    if (from <= 1 || entries.some(({ type }) => type === "turn.started")) return entries;
    from = end - 4 * Math.max(FIRST_REACH, end - from);
  }
}
