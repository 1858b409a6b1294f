import { outputOf } from "../actors/index.ts";
import { createDeferred, type Deferred } from "../base/index.ts";
import {
  agentOfTurn,
  type Entry,
  type EntryOf,
  type ExecutionState,
  errorsOf,
  foldTurn,
  type Message,
  rootOf,
  startTurn,
  type TurnState,
  textOf,
} from "../state/index.ts";
import type { Stores } from "../stores/index.ts";
import type { TurnRest, TurnResult, WaitingTurn } from "./types.ts";

/** The result of a turn from its last entry, its execution, and the text of its answer. */
export function turnResultOf(
  entry: EntryOf<"turn.ended">,
  execution: ExecutionState | null,
  text: string,
  entries: readonly Entry[],
): TurnResult {
  const output = entry.outcome === "completed" ? outputOf(entries) : undefined;
  const { turnId, outcome, stopReason, signal, usage, costMicros, steps, toolCalls, error } = entry;
  return {
    agentId: agentOfTurn(turnId),
    turnId,
    status: outcome,
    text,
    stopReason,
    signal,
    usage,
    cost: costMicros === null ? null : costMicros / 1_000_000,
    steps,
    toolCalls,
    error,
    errors: execution ? errorsOf(execution) : error ? [error] : [],
    execution,
    ...(output === undefined ? {} : { output }),
  };
}

/** Reads the result of an ended turn from the journal; undefined while it is open or unknown. */
export async function readTurnResult(stores: Stores, tenant: string, turnId: string): Promise<TurnResult | undefined> {
  const key = { tenant, agentId: agentOfTurn(turnId) };
  const record = await stores.readAgent(key);
  // Looked for at every write of another process: the journal is read only when there is something to find.
  if (!record || record.openTurnId === turnId || record.queuedTurnIds.includes(turnId)) return undefined;
  const rows = await stores.readJournal(key, 1);
  let turn: TurnState | undefined;
  let ended: EntryOf<"turn.ended"> | undefined;
  const all = rows.flatMap((row): readonly Entry[] => row.entries);
  const entries = all.filter((entry) => "turnId" in entry && entry.turnId === turnId);
  for (const entry of entries) {
    if (entry.type === "turn.started") turn = startTurn(entry);
    if (turn) turn = foldTurn(turn, entry);
    if (entry.type === "turn.ended") ended = entry;
  }
  if (!ended) return undefined;
  const id = ended.outputMessageId;
  const [message]: (Message | undefined)[] = id === null ? [] : await stores.messagesById(key, [id]);
  return turnResultOf(ended, turn?.execution ?? null, textOf(message?.content ?? ""), entries);
}

/** Those who wait for turns to end or to come to rest. */
export class TurnResults {
  readonly #ends = new Map<string, Deferred<TurnResult>>();
  readonly #rests = new Map<string, Deferred<TurnRest>>();

  end(turnId: string): Promise<TurnResult> {
    return waiterIn(this.#ends, turnId);
  }

  rest(turnId: string): Promise<TurnRest> {
    return waiterIn(this.#rests, turnId);
  }

  isAwaited(turnId: string): boolean {
    return this.#ends.has(turnId) || this.#rests.has(turnId);
  }

  ended(result: TurnResult): void {
    this.#ends.get(result.turnId)?.resolve(result);
    this.#ends.delete(result.turnId);
    this.#rests.get(result.turnId)?.resolve(result);
    this.#rests.delete(result.turnId);
  }

  rested(rest: WaitingTurn): void {
    this.#rests.get(rest.turnId)?.resolve(rest);
    this.#rests.delete(rest.turnId);
  }

  /** Turns of one tree whose coming to rest somebody awaits. */
  restsAwaited(rootAgentId: string): string[] {
    return [...this.#rests.keys()].filter((turnId) => rootOf(agentOfTurn(turnId)) === rootAgentId);
  }

  /** Turn ids whose end somebody awaits. */
  awaited(): string[] {
    return [...new Set([...this.#ends.keys(), ...this.#rests.keys()])];
  }

  /** Nobody will end them here any more. */
  reject(error: Error): void {
    for (const waiters of [this.#ends, this.#rests]) {
      for (const deferred of waiters.values()) {
        deferred.promise.catch(() => undefined);
        deferred.reject(error);
      }
      waiters.clear();
    }
  }
}

function waiterIn<T>(waiters: Map<string, Deferred<T>>, turnId: string): Promise<T> {
  const known = waiters.get(turnId) ?? createDeferred<T>();
  waiters.set(turnId, known);
  return known.promise;
}
