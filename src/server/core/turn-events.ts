import { eventsOfRow, type TurnRest, type TurnResult } from "../../runtime/index.ts";
import {
  agentOfTurn,
  type AgentRecord,
  type Json,
  type Message,
  parseCursor,
  type TroupeEvent,
} from "../../state/index.ts";
import type { Caller } from "./caller.ts";
import type { StartedTurn } from "./plain-message.ts";

/**
 * The events of one turn and its subagents after a cursor of the tree, up to the turn's end. Unlike iteration of
 * `turn`, it starts after a cursor and ends with a signal.
 */
export async function* turnEvents(
  caller: Caller,
  { agent, turn, turnId }: Pick<StartedTurn, "agent" | "turn" | "turnId">,
  { after, signal }: { readonly after: string | undefined; readonly signal: AbortSignal },
): AsyncGenerator<TroupeEvent, void, undefined> {
  const below = new BelowTurn(caller, turnId);
  // No event follows the cursor of a turn's end, so an ended turn is read from the beginning.
  const hasEnded = after !== undefined && "stopReason" in (await turn.current());
  const reading = { after: hasEnded ? undefined : after, signal };
  for await (const event of caller.events(agent.rootAgentId, reading)) {
    const isOwn = event.turnId === turnId || (await below.has(event));
    if (isOwn && !(hasEnded && isUpTo(event.cursor, after))) yield event;
    if (event.turnId === turnId && isEnd(event)) return;
  }
}

/**
 * The events of one turn and its subagents after a cursor, until the turn ends, or waits for a decision or a resume;
 * includes all events stored by then. Returns the turn at rest, or `undefined` when the signal aborts because the
 * reader has left.
 */
export async function* eventsUntilRest(
  caller: Caller,
  followed: Pick<StartedTurn, "agent" | "turn" | "turnId">,
  { from, signal }: { readonly from: string; readonly signal: AbortSignal },
): AsyncGenerator<TroupeEvent, TurnRest | undefined, undefined> {
  const left = new AbortController();
  const leaving = AbortSignal.any([signal, left.signal]);
  const events = turnEvents(caller, followed, { after: from, signal: leaving });
  const waits = waitOf(followed);
  const gone = new Promise<"gone">((resolve) => {
    if (signal.aborted) resolve("gone");
    signal.addEventListener("abort", () => resolve("gone"), { once: true });
  });
  let last = from;
  try {
    for (;;) {
      const news = await Promise.race([events.next(), waits, gone]);
      if (news === "gone" || signal.aborted) return undefined;
      if ("status" in news) {
        // While the turn waits, no new events are stored; the reader may still be behind the stored ones.
        left.abort();
        for (const event of await storedTurnEvents(caller, followed, last)) yield event;
        return news;
      }
      if (news.done === true) return await followed.turn.result;
      last = news.value.cursor ?? last;
      yield news.value;
    }
  } finally {
    left.abort();
  }
}

/** Resolves when the turn waits for a decision or a resume; never if the turn ends without waiting. */
function waitOf({ turn }: Pick<StartedTurn, "turn">): Promise<TurnRest> {
  const { promise, resolve, reject } = Promise.withResolvers<TurnRest>();
  turn.settled.then((rest) => {
    if (rest.status === "waiting") resolve(rest);
  }, reject);
  // If the last event is read first, no caller awaits this promise, which rejects if the runtime is shut down.
  promise.catch(() => undefined);
  return promise;
}

/** The stored message of an event: an answer, or a call's result. */
export async function messageOfEvent({ runtime }: Caller, event: TroupeEvent): Promise<Message | undefined> {
  const id = messageIdOf(event);
  if (id === undefined) return undefined;
  const { stores, tenant } = runtime;
  const [message] = await stores.messagesById({ tenant, agentId: event.agentId }, [id]);
  return message;
}

function messageIdOf(event: TroupeEvent): string | undefined {
  if (event.type === "model.responded") return `${event.turnId}:${event.step}`;
  if (event.type === "turn.answered") return event.messageId;
  return event.type === "tool.completed" || event.type === "tool.failed" ? event.callId : undefined;
}

/**
 * The stored events of one turn and its subagents after a cursor, at the time of the call; equal to the events of a
 * stream that ends now.
 */
export async function storedTurnEvents(
  caller: Caller,
  { agent, turnId }: Pick<StartedTurn, "agent" | "turnId">,
  after: string,
): Promise<readonly TroupeEvent[]> {
  const below = new BelowTurn(caller, turnId);
  const found: TroupeEvent[] = [];
  for await (const event of storedTreeEvents(caller, agent.rootAgentId, after)) {
    const isOwn = event.turnId === turnId || (await below.has(event));
    if (isOwn) found.push(event);
  }
  return found;
}

/** All stored events of a tree after a cursor, at the time of the call. */
export async function* storedTreeEvents(
  { runtime: { stores, tenant } }: Pick<Caller, "runtime">,
  rootAgentId: string,
  after: string,
): AsyncGenerator<TroupeEvent, void, undefined> {
  const sources = new Map<string, AgentRecord>();
  let row = Math.max(0, (parseCursor(after)?.row ?? 1) - 1);
  for (;;) {
    const rows = await stores.readTree(tenant, rootAgentId, row, ROWS_AT_A_TIME);
    for (const one of rows) {
      for (const event of await eventsOfRow(stores, tenant, one, sources))
        if (!isUpTo(event.cursor, after)) yield event;
    }
    if (rows.length < ROWS_AT_A_TIME) return;
    row = rows.at(-1)?.cursor ?? row;
  }
}

const ROWS_AT_A_TIME = 200;

/** Whether an event's cursor is at or before a cursor. */
function isUpTo(cursor: string | null, limit: string): boolean {
  const [one, other] = [parseCursor(cursor ?? ""), parseCursor(limit)];
  if (!one || !other) return false;
  return (one.row - other.row || one.seq - other.seq || one.index - other.index) <= 0;
}

function isEnd({ type }: TroupeEvent): boolean {
  return type === "turn.completed" || type === "turn.stopped" || type === "turn.failed";
}

/** Tracks which agents of a tree were spawned under one turn, directly or indirectly. */
class BelowTurn {
  readonly #caller: Caller;
  readonly #turnId: string;
  readonly #known = new Map<string, boolean>();

  constructor(caller: Caller, turnId: string) {
    this.#caller = caller;
    this.#turnId = turnId;
    this.#known.set(agentOfTurn(turnId), false);
  }

  async has(event: TroupeEvent): Promise<boolean> {
    const { agentId, rootAgentId } = event;
    if (!this.#known.has(agentId)) await this.#readTree(rootAgentId);
    const isBelow = this.#known.get(agentId) ?? false;
    // The spawn event precedes all events of the child.
    if (event.type === "subagent.spawned") this.#known.set(event.childId, isBelow || event.turnId === this.#turnId);
    return isBelow;
  }

  /** Reads the records, for a stream that starts after the spawn event. */
  async #readTree(rootAgentId: string): Promise<void> {
    const { runtime } = this.#caller;
    const records = await runtime.list({ rootAgentId, limit: Number.MAX_SAFE_INTEGER });
    const parents = new Map(records.map((record) => [record.agentId, record]));
    for (const { agentId } of records) {
      let one = parents.get(agentId);
      while (one && one.parentTurnId !== this.#turnId) one = parents.get(one.parentAgentId ?? "");
      this.#known.set(agentId, one !== undefined);
    }
  }
}

/** The validated output of a result, which the journal stores as JSON. */
export function outputOf({ output }: Pick<TurnResult, "output">): Json | undefined {
  return output as Json | undefined;
}
