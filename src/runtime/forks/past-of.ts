import { InvalidInputError } from "../../errors/index.ts";
import {
  addressOf,
  agentOfTurn,
  callOfRequest,
  type Entry,
  type EntryOf,
  type Message,
  messagesAddedBy,
  type TurnItem,
} from "../../state/index.ts";
import type { StoredAgent, StoredTree } from "../../stores/index.ts";
import type { CutPoint } from "./fork-points.ts";

/** A row of the past. */
export interface PastRow {
  readonly agentId: string;
  readonly entries: readonly Entry[];
  readonly messages: readonly Message[];
}

/** An agent at the point of the fork, with nothing in flight. */
export interface PastAgent {
  readonly stored: StoredAgent;
  /** In order; numbered anew. */
  readonly entries: readonly Entry[];
  /** The turn of a subagent that has not started. */
  readonly turn: TurnItem | undefined;
}

/** A tree at the point of the fork. The cut follows the order of the tree's commits, so it is consistent over its agents. */
export interface Past {
  /** Parents before their children. */
  readonly agents: readonly PastAgent[];
  readonly rows: readonly PastRow[];
}

/**
 * The past of a tree: its commits up to the point, without work in flight. The fork starts that work itself: model calls and attempts of
 * tools without an outcome, waits for budget, and pauses are left out.
 */
export function pastOf(tree: StoredTree, point: CutPoint): Past {
  const before = tree.rows.flatMap((row): PastRow[] => {
    if (row.cursor < point.cursor) return [row];
    if (row.cursor > point.cursor || row.agentId !== tree.rootAgentId) return [];
    const entries = row.entries.slice(0, point.entries);
    const added = new Set(entries.flatMap((entry) => messagesAddedBy(entry)));
    return entries.length === 0 ? [] : [{ ...row, entries, messages: row.messages.filter(({ id }) => added.has(id)) }];
  });
  const unstarted = unstartedChildren(before);
  const kept = new Map(
    [...unstarted].filter(([, isRepeated]) => !isRepeated).map(([childId]) => [childId, firstTurnOf(tree, childId)]),
  );
  const dropped = new Set<Entry>();
  for (const rows of Map.groupBy(before, ({ agentId }) => agentId).values()) {
    for (const entry of inFlight(rows.flatMap(({ entries }) => entries))) dropped.add(entry);
  }
  for (const { entries } of before) {
    for (const entry of entries) if (entry.type === "child.spawned" && unstarted.get(entry.childId)) dropped.add(entry);
  }
  const agents = tree.agents.map(
    (stored): PastAgent => ({ stored, entries: [], turn: kept.get(stored.record.agentId) }),
  );
  const paused = new Set([...dropped].filter(({ type }) => type === "turn.ended"));
  const rows = before.map((row) => ({
    ...row,
    entries: row.entries.flatMap((entry) =>
      paused.has(entry) ? [unpaused(entry)] : dropped.has(entry) ? [] : [entry],
    ),
  }));
  return numbered({ agents, rows: [] }, rows);
}

/** The end of a turn that was paused while it ended, without the pause. */
function unpaused(entry: Entry): Entry {
  if (entry.type !== "turn.ended") return entry;
  return { ...entry, lifecycle: entry.outcome === "failed" ? "failed" : "ready" };
}

/** The past with these rows: numbers the entries anew, and leaves out agents that have neither an entry nor a turn. */
export function numbered({ agents }: Past, all: readonly PastRow[]): Past {
  const numbers = new Map<string, number>();
  const rows = all.flatMap(({ agentId, entries: given, messages }): PastRow[] => {
    const first = (numbers.get(agentId) ?? 0) + 1;
    numbers.set(agentId, first + given.length - 1);
    const entries = given.map((entry, index) => ({ ...entry, seq: first + index }));
    return entries.length === 0 ? [] : [{ agentId, entries, messages }];
  });
  const byAgent = Map.groupBy(rows, ({ agentId }) => agentId);
  return {
    rows,
    agents: agents.flatMap(({ stored, turn }): PastAgent[] => {
      const entries = byAgent.get(stored.record.agentId)?.flatMap((row) => row.entries) ?? [];
      return entries.length === 0 && !turn ? [] : [{ stored, entries, turn }];
    }),
  };
}

/**
 * Children that were spawned, but had not started, and whether the call that spawned them is repeated: then the fork spawns them again.
 */
function unstartedChildren(rows: readonly PastRow[]): Map<string, boolean> {
  const begun = new Set(rows.map(({ agentId }) => agentId));
  const entries = rows.flatMap((row) => row.entries);
  const settled = new Set(entries.flatMap((entry) => (entry.type === "tool.settled" ? [entry.callId] : [])));
  const spawned = entries.flatMap((entry) => (entry.type === "child.spawned" ? [entry] : []));
  return new Map(
    spawned
      .filter(({ childId }) => !begun.has(childId))
      .map(({ childId, callId }) => [childId, callId !== undefined && !settled.has(callId)]),
  );
}

/** The first turn of a child, which its inbox contained at the point. */
function firstTurnOf({ rootAgentId, agents, rows }: StoredTree, childId: string): TurnItem {
  const waiting = agents.find(({ record }) => record.agentId === childId)?.inbox.find(({ kind }) => kind === "turn");
  if (waiting?.kind === "turn") return waiting;
  const row = rows.find(({ agentId, entries }) => agentId === childId && entries.some(isTurnStarted));
  const started = row?.entries.find(isTurnStarted);
  if (!row || !started) {
    throw new InvalidInputError(
      `"${rootAgentId}" cannot be forked at this point: the file does not have the input of its subagent "${childId}", which had not started; fork at an earlier point, or in the stores of the run`,
    );
  }
  const { turnId, number, actorId, at, inputMessageIds, trace } = started;
  const input = row.messages.find(({ id }) => id === inputMessageIds[0])?.content ?? null;
  const item = { kind: "turn", key: `turn:${turnId}`, at, turnId, number, input, actorId, limits: null } as const;
  return trace ? { ...item, trace } : item;
}

function isTurnStarted(entry: Entry): entry is EntryOf<"turn.started"> {
  return entry.type === "turn.started";
}

/** The entries of an agent about work that had no outcome at its last entry. */
function inFlight(entries: readonly Entry[]): Entry[] {
  const open = new OpenWork();
  for (const entry of entries) open.note(entry);
  return open.entries();
}

/** The entries about work without an outcome, by the key of the work. */
class OpenWork {
  readonly #open = new Map<string, Entry[]>();
  readonly #notes = new Map<string, Entry[]>();

  note(entry: Entry): void {
    const { callId } = addressOf(entry);
    switch (entry.type) {
      case "model.requested":
        return void this.#open.set(modelKey(entry.turnId), [entry]);
      case "model.responded":
      case "model.failed":
        return void this.#open.delete(modelKey(entry.turnId));
      case "generate.requested":
        return void this.#open.set(`side:${entry.turnId}:${entry.run}:${entry.index}`, [entry]);
      case "generate.responded":
      case "generate.failed":
        return void this.#open.delete(`side:${entry.turnId}:${entry.run}:${entry.index}`);
      case "tool.started":
        return this.#add(callKey(entry.callId), entry);
      case "tool.noted":
        return void this.#notes.set(entry.callId, [...(this.#notes.get(entry.callId) ?? []), entry]);
      case "tool.retrying":
      case "child.ordered":
      case "child.awaited":
      case "call.waiting":
        return void this.#open.delete(callKey(entry.callId));
      case "tool.settled":
        this.#notes.delete(entry.callId);
        return void this.#open.delete(callKey(entry.callId));
      case "request.opened":
        // The code that asks has ended, and reads its note when it goes on.
        if (entry.asked) this.#notes.delete(entry.callId);
        return void (entry.asked && this.#open.delete(callKey(entry.callId)));
      case "intent.refused":
        if (entry.reason !== "mustWait" && entry.reason !== "paused") return;
        return this.#add(`refused:${callId ?? entry.turnId}:${entry.intent}`, entry);
      case "agent.pausing":
      case "agent.paused":
        return this.#add("pause", entry);
      case "agent.resumed":
        this.#forget((key) => key === "pause" || key.startsWith("refused:"));
        return;
      case "budget.freed":
        this.#forget((key) => key.startsWith("refused:"));
        return;
      case "turn.ended":
        this.#forget((key) => key !== "pause");
        this.#notes.clear();
        if (entry.lifecycle === "paused") this.#add("pause", entry);
        return;
      default:
    }
  }

  entries(): Entry[] {
    return [...this.#open.values(), ...this.#notes.values()].flat();
  }

  #add(key: string, entry: Entry): void {
    this.#open.set(key, [...(this.#open.get(key) ?? []), entry]);
  }

  #forget(isOver: (key: string) => boolean): void {
    for (const key of this.#open.keys()) if (isOver(key)) this.#open.delete(key);
  }
}

function modelKey(turnId: string): string {
  return `model:${turnId}`;
}

function callKey(callId: string): string {
  return `call:${callId}`;
}

/** Ids of requests that are open at the end of these entries. */
export function openRequestIdsOf(entries: readonly Entry[]): Set<string> {
  const open = new Set<string>();
  for (const entry of entries) {
    if (entry.type === "request.opened") open.add(entry.requestId);
    if (entry.type === "request.decided") open.delete(entry.requestId);
    if (entry.type === "tool.settled") for (const id of open) if (callOfRequest(id) === entry.callId) open.delete(id);
    if (entry.type === "turn.ended") {
      for (const id of open) if (agentOfTurn(callOfRequest(id)) === agentOfTurn(entry.turnId)) open.delete(id);
    }
  }
  return open;
}
