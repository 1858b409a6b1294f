import { createDeferred } from "../../base/index.ts";
import { type CorruptRecordError, StoreRolledBackError } from "../../errors/index.ts";
import {
  type AgentRecord,
  type Entry,
  type EventCursor,
  parseCursor,
  textOf,
  type TroupeEvent,
} from "../../state/index.ts";
import { type ForeignWrites, isTreeChanged, type RolledBackTree, type Stores } from "../../stores/index.ts";
import type { DamageWatch } from "./damage-watch.ts";
import type { EventBus } from "./event-bus.ts";
import type { LiveDesk } from "./live-desk.ts";
import { eventOfPart, type LivePart, rowOf } from "./live-part.ts";
import { eventsOfRow } from "./row-events.ts";
import { ShownAnswers } from "./shown-answers.ts";
import type { FollowOptions } from "../doors/types.ts";

const ROWS_AT_A_TIME = 200;
/** Live parts that wait for a slow reader; past that they are dropped, and the whole text takes their place. */
const MOST_WAITING = 500;
/** Between two times that others are asked for what is open. */
const ASK_AGAIN_MS = 500;

export interface FollowSource {
  readonly stores: Stores;
  readonly bus: EventBus;
  readonly liveDesk: Pick<LiveDesk, "follow">;
  readonly tenant: string;
  /** Called when another process may have written to the tree; the returned function ends it. */
  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void;
  readonly damage: Pick<DamageWatch, "follow">;
  /** Aborted when the runtime has been shut down: nothing more comes. */
  readonly closed: AbortSignal;
}

/** What somebody wants to read of a tree. */
export interface Reading extends FollowOptions {
  /** Called while the reader waits for what comes next; what it gives is called when it has come. */
  readonly hold?: (() => () => void) | undefined;
}

/**
 * One reading of one tree.
 * Owns: how far its reader has come, in the journal and in the answers that are being written.
 *
 * Invariants
 * 1. Durable events come from the journal alone, in its order, each once.
 * 2. What is live comes after the durable events that it belongs behind, and never after the end of what it is about.
 * 3. A reader that is given part of an answer is given all of it before that answer's durable end.
 */
export class TreeStream {
  readonly #source: FollowSource;
  readonly #rootAgentId: string;
  readonly #signal: AbortSignal | undefined;
  readonly #hold: Reading["hold"];
  readonly #shown = new ShownAnswers();
  readonly #records = new Map<string, AgentRecord>();
  readonly #ends: (() => void)[] = [];
  #following: ReturnType<LiveDesk["follow"]> | undefined;
  #position: EventCursor;
  /** The last durable event that the reader has. */
  #after: string | null;
  #queue: (LivePart | "look")[] = ["look"];
  /** The stores have lost something of the tree: perhaps all of it. */
  #mayBeGone = false;
  /** Why the open turn of the tree cannot go on. */
  #damage: CorruptRecordError | undefined;
  #waiting = 0;
  #arrived = createDeferred();
  /** The part before which the journal was read last. */
  #lookedFor: LivePart | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(source: FollowSource, rootAgentId: string, { from, signal, hold }: From) {
    this.#source = source;
    this.#rootAgentId = rootAgentId;
    this.#signal = signal;
    this.#hold = hold;
    this.#position = from ?? { row: 1, seq: 0, index: -1 };
    this.#after = from ? `${from.row}.${from.seq}.${from.index}` : null;
  }

  async *events(): AsyncGenerator<TroupeEvent, void, undefined> {
    const { closed } = this.#source;
    this.#listen();
    while (!this.#signal?.aborted) {
      const item = this.#queue.shift();
      if (item === "look") {
        await this.#assertStored();
        yield* this.#read();
        if (this.#damage) throw this.#damage;
      } else if (item) {
        this.#waiting -= 1;
        yield* this.#live(item);
      } else {
        if (closed.aborted) return;
        this.#arrived = createDeferred();
        if (this.#queue.length > 0 || this.#signal?.aborted || closed.aborted) continue;
        const letGo = this.#hold?.();
        await this.#arrived.promise;
        letGo?.();
      }
    }
  }

  /** Of a tree that the stores have lost nothing more can come. */
  async #assertStored(): Promise<void> {
    if (!this.#mayBeGone) return;
    this.#mayBeGone = false;
    const { stores, tenant } = this.#source;
    const agentId = this.#rootAgentId;
    if (await stores.readAgent({ tenant, agentId })) return;
    throw new StoreRolledBackError(`the stores have lost the tree of agent "${agentId}": it has no further events`, {
      details: { agentId },
    });
  }

  close(): void {
    for (const end of this.#ends.splice(0)) end();
  }

  #listen(): void {
    const { bus, liveDesk, closed, tenant } = this.#source;
    const look = (): void => this.#push("look");
    const onAbort = (): void => this.#arrived.resolve();
    for (const signal of [this.#signal, closed]) {
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#ends.push(() => signal?.removeEventListener("abort", onAbort));
    }
    this.#ends.push(bus.listen((event) => (event.cursor === null ? undefined : look()), this.#rootAgentId));
    const key = { tenant, agentId: this.#rootAgentId };
    this.#ends.push(this.#source.onForeignWrite((writes) => (isTreeChanged(writes, key) ? look() : undefined)));
    const lose = (found: RolledBackTree): void => {
      if (found.tenant !== tenant || found.rootAgentId !== this.#rootAgentId) return;
      this.#mayBeGone = true;
      look();
    };
    this.#ends.push(this.#source.stores.onRolledBack(lose));
    const stop = this.#source.damage.follow(this.#rootAgentId, (error) => {
      this.#damage = error;
      look();
    });
    this.#ends.push(stop);
    const following = liveDesk.follow(this.#rootAgentId, (part) => this.#push(part));
    this.#following = following;
    this.#ends.push(() => following.end());
  }

  #push(item: LivePart | "look"): void {
    if (item === "look") {
      if (this.#queue.at(-1) !== "look") this.#queue.push(item);
    } else if (this.#waiting < MOST_WAITING) {
      this.#queue.push(item);
      this.#waiting += 1;
    } else {
      this.#queue = ["look", item];
      this.#waiting = 1;
      this.#shown.missed();
    }
    this.#arrived.resolve();
  }

  async *#live(part: LivePart): AsyncGenerator<TroupeEvent, void, undefined> {
    if (rowOf(part) >= this.#position.row && this.#lookedFor !== part) {
      // It stays in the queue, for its end may be among what is read.
      this.#lookedFor = part;
      this.#queue.unshift("look", part);
      this.#waiting += 1;
      return;
    }
    if (part.kind !== "progress" && part.kind !== "warning" && this.#shown.isUnknown(part)) {
      const key = { tenant: this.#source.tenant, agentId: part.agentId };
      const rows = await this.#source.stores.readJournal(key, part.seq);
      const passed = rows.filter(({ cursor }) => cursor < this.#position.row).flatMap(({ entries }) => entries);
      this.#shown.learn(
        part,
        passed.filter(({ seq }) => seq >= part.seq),
      );
    }
    const taken = this.#shown.take(part);
    if (taken === "gap") this.#ask();
    else if (taken) yield eventOfPart(taken, this.#after);
  }

  #ask(): void {
    const now = performance.now();
    if (now - this.#askedAt < ASK_AGAIN_MS) return;
    this.#askedAt = now;
    this.#following?.ask();
  }

  /** The journal from where the reader is, to its end. */
  async *#read(): AsyncGenerator<TroupeEvent, void, undefined> {
    const { stores, tenant } = this.#source;
    for (;;) {
      const rows = await stores.readTree(tenant, this.#rootAgentId, this.#position.row - 1, ROWS_AT_A_TIME);
      for (const row of rows) {
        const events = await eventsOfRow(stores, tenant, row, this.#records);
        for (const entry of row.entries) {
          const isPast = row.cursor === this.#position.row && entry.seq <= this.#position.seq;
          if (!isPast) yield* this.#before(row.agentId, entry);
          this.#shown.note(row.agentId, entry, isPast);
          for (const event of events) if (isOf(event, entry, this.#position)) yield this.#durable(event);
        }
        this.#position = { row: row.cursor + 1, seq: 0, index: -1 };
      }
      if (rows.length < ROWS_AT_A_TIME) return;
    }
  }

  /** What of an answer or of a call has to be given before its durable end is. */
  async *#before(agentId: string, entry: Entry): AsyncGenerator<TroupeEvent, void, undefined> {
    if (entry.type !== "model.responded" && entry.type !== "tool.settled") return;
    const isWaiting = (item: LivePart | "look"): item is LivePart => {
      if (item === "look" || item.agentId !== agentId || item.kind === "warning") return false;
      if (item.kind !== "progress") return entry.type === "model.responded" && this.#shown.isOpen(item);
      return entry.type === "tool.settled" && entry.callId === item.callId;
    };
    const waiting = this.#queue.filter(isWaiting);
    if (waiting.length > 0) {
      this.#queue = this.#queue.filter((item) => !isWaiting(item));
      this.#waiting -= waiting.length;
    }
    for (const part of waiting) {
      const taken = this.#shown.take(part);
      if (taken && taken !== "gap") yield eventOfPart(taken, this.#after);
    }
    const rest = await this.#restOf(agentId, entry);
    if (rest) yield eventOfPart(rest, this.#after);
  }

  #durable(event: TroupeEvent): TroupeEvent {
    this.#after = event.cursor;
    return event;
  }

  /** All of an answer whose end has come, where the reader may have only a part of it. */
  async #restOf(agentId: string, entry: Entry): Promise<LivePart | undefined> {
    if (entry.type !== "model.responded") return undefined;
    const given = this.#shown.givenOf(agentId, entry);
    const record = this.#records.get(agentId);
    if (given === undefined || !record) return undefined;
    const [message] = await this.#source.stores.messagesById(record, [entry.messageId]);
    const text = message ? textOf(message.content) : "";
    if (text === "" || text.length === given) return undefined;
    const { parentAgentId, rootAgentId, sessionId, definition } = record;
    const who = { agentId, agentName: definition.name, parentAgentId, rootAgentId, sessionId };
    const { turnId, step, attempt, at, seq } = entry;
    // What the model thought is with its message, in its provider's own words.
    const all = { turnId, step, attempt, at, seq, text, reasoning: null };
    return { kind: "whole", ...who, cursor: this.#after ?? "0.0.0", ...all };
  }
}

type From = Pick<Reading, "signal" | "hold"> & { readonly from: EventCursor | undefined };

/** Whether an event is of this entry, and the reader does not have it yet. */
function isOf(event: TroupeEvent, entry: Entry, position: EventCursor): boolean {
  const at = parseCursor(event.cursor ?? "");
  if (!at || at.seq !== entry.seq) return false;
  if (at.row !== position.row) return at.row > position.row;
  return at.seq !== position.seq ? at.seq > position.seq : at.index > position.index;
}
