import { deepFreeze } from "../../base/index.ts";
import { type CorruptRecordError, StoreRolledBackError } from "../../errors/index.ts";
import {
  type AgentRecord,
  type Entry,
  type EventCursor,
  type EventSource,
  eventsOf,
  type JournalRow,
  parseCursor,
  textOf,
  type TroupeEvent,
} from "../../state/index.ts";
import {
  deletedError,
  type ForeignWrites,
  isTreeChanged,
  type RolledBackTree,
  type Stores,
} from "../../stores/index.ts";
import type { CommittedRow, EventBus, LiveBroadcast } from "./event-bus.ts";
import type { DamageWatch } from "./damage-watch.ts";
import { eventOfPart, isNotice, type LivePart, rowOf } from "./live-part.ts";
import { type Said, ShownAnswers } from "./shown-answers.ts";
import type { SpawnTrees } from "./spawn-trees.ts";

const ROWS_AT_A_TIME = 200;
/**
 * Maximum number of items waiting for a slow reader. Later items are dropped: rows are then read from the journal, and whole
 * texts replace pieces.
 */
const MOST_WAITING = 500;
/** Milliseconds between two requests to other processes for the answers that they are writing. */
const ASK_AGAIN_MS = 500;

export interface FollowSource {
  readonly stores: Stores;
  readonly bus: EventBus;
  readonly broadcast: Pick<LiveBroadcast, "follow">;
  readonly tenant: string;
  /** Records which agents were spawned under which turns, from the records that are read. */
  readonly trees: Pick<SpawnTrees, "note">;
  /** Calls the listener when another process may have written to the tree; returns a function that removes it. */
  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void;
  readonly damage: Pick<DamageWatch, "follow">;
  /** Aborted when the runtime has been shut down: no further events follow. */
  readonly closed: AbortSignal;
}

export interface Reading {
  /** Start after this event. Default: the start of the journal. */
  readonly from?: EventCursor | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called while the reader waits for the next event; the returned function is called when that event has arrived. */
  readonly hold?: (() => () => void) | undefined;
  /** Aborting it ends the stream after the waiting events. Shutting down the runtime has the same effect. */
  readonly over?: AbortSignal | undefined;
  /**
   * While this returns true, the stream starts with the next row and reads rows from the bus instead of the journal, because this
   * process writes everything that the reader wants. Called when reading starts, and after another process has written.
   */
  readonly isLocal?: (() => boolean) | undefined;
}

/**
 * One subscription to the events of one tree. It listens from its construction on, so that it misses no event before reading
 * starts.
 * Owns: the reader's position in the journal and in the answers that are being written.
 *
 * Invariants
 * 1. Durable events are those of committed rows, in the order of the journal, each once.
 * 2. A live event comes after the durable events that existed when it was created, and never after the end of its answer or call.
 * 3. A reader that received part of an answer receives all of it before that answer's durable end.
 */
export class TreeStream {
  readonly #source: FollowSource;
  readonly #rootAgentId: string;
  readonly #reading: Reading;
  readonly #shown = new ShownAnswers();
  readonly #records = new Map<string, AgentRecord>();
  readonly #ends: (() => void)[] = [];
  /** Removes the bus listeners that are needed only while `isLocal` holds. */
  #localEnds: (() => void)[] = [];
  #following: ReturnType<LiveBroadcast["follow"]> | undefined;
  #position: EventCursor;
  /** Cursor of the last durable event that the reader received. */
  #after: string | null;
  #queue: (LivePart | CommittedRow | "look")[] = [];
  /** Items in the queue that are not "look". */
  #waiting = 0;
  #isLocal: boolean;
  /** Set if the stores have lost writes of the tree, perhaps all of it. */
  #mayBeGone = false;
  /** Set if the open turn of the tree cannot continue. */
  #damage: CorruptRecordError | undefined;
  #arrived = Promise.withResolvers<void>();
  /** The part before which the journal was last read. */
  #lookedFor: LivePart | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(source: FollowSource, rootAgentId: string, reading: Reading) {
    const { from, isLocal } = reading;
    this.#source = source;
    this.#rootAgentId = rootAgentId;
    this.#reading = reading;
    this.#isLocal = isLocal !== undefined;
    // Rows are counted from 1; the cursor before the first event names row 0.
    this.#position = from && from.row > 0 ? from : { row: 1, seq: 0, index: -1 };
    this.#after = from ? `${from.row}.${from.seq}.${from.index}` : null;
    this.#listen();
    if (this.#isLocal) this.#listenLocally();
    else this.#listenEverywhere();
  }

  async *events(): AsyncGenerator<TroupeEvent, void, undefined> {
    try {
      if (this.#isLocal && !this.#reading.isLocal?.()) this.#readJournal();
      while (!this.#reading.signal?.aborted) {
        const item = this.#queue.shift();
        if (item === undefined) {
          if (this.#isOver) return;
          await this.#next();
        } else if (item === "look") yield* this.#look();
        else {
          this.#waiting -= 1;
          if ("entries" in item) yield* this.#committed(item);
          else if (!this.#mustLook(item)) {
            if (this.#shown.isUnknown(item)) await this.#learn(item);
            const event = this.#live(item);
            if (event) yield event;
          }
        }
      }
    } catch (error) {
      // Shutting down the runtime closes its stores.
      if (!this.#source.closed.aborted) throw error;
    } finally {
      this.close();
    }
  }

  close(): void {
    for (const end of [...this.#ends.splice(0), ...this.#localEnds.splice(0)]) end();
  }

  get #isOver(): boolean {
    return this.#source.closed.aborted || this.#reading.over?.aborted === true;
  }

  async #next(): Promise<void> {
    this.#arrived = Promise.withResolvers<void>();
    if (this.#queue.length > 0 || this.#reading.signal?.aborted || this.#isOver) return;
    const letGo = this.#reading.hold?.();
    await this.#arrived.promise;
    letGo?.();
  }

  #listen(): void {
    const { stores, closed, tenant } = this.#source;
    const onAbort = (): void => this.#arrived.resolve();
    const ends: readonly (AbortSignal | undefined)[] = [this.#reading.signal, this.#reading.over, closed];
    for (const signal of ends) {
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#ends.push(() => signal?.removeEventListener("abort", onAbort));
    }
    const key = { tenant, agentId: this.#rootAgentId };
    const look = (): void => this.#push("look");
    this.#ends.push(this.#source.onForeignWrite((writes) => (isTreeChanged(writes, key) ? look() : undefined)));
    const lose = (found: RolledBackTree): void => {
      if (found.tenant !== tenant || found.rootAgentId !== this.#rootAgentId) return;
      this.#mayBeGone = true;
      // Waiting rows may be lost too.
      this.#queue = this.#queue.filter((item) => item === "look" || !("entries" in item));
      this.#waiting = this.#queue.filter((item) => item !== "look").length;
      this.#queue.unshift("look");
      this.#arrived.resolve();
    };
    this.#ends.push(stores.onRolledBack(lose));
  }

  #listenLocally(): void {
    const { bus } = this.#source;
    this.#localEnds.push(
      bus.listenToRows((row) => this.#push(row), this.#rootAgentId),
      bus.listenLive((part) => this.#push(part), this.#rootAgentId),
    );
  }

  #listenEverywhere(): void {
    const { bus, broadcast } = this.#source;
    this.#queue.push("look");
    this.#ends.push(bus.listenToRows((row) => this.#push(row), this.#rootAgentId));
    this.#following = broadcast.follow(this.#rootAgentId, (part) => this.#push(part));
    this.#ends.push(() => this.#following?.end());
    const stop = this.#source.damage.follow(this.#rootAgentId, (error) => {
      this.#damage = error;
      this.#push("look");
    });
    this.#ends.push(stop);
  }

  /** Switches to the journal, which contains every row of the dropped queue. */
  #readJournal(): void {
    for (const end of this.#localEnds.splice(0)) end();
    this.#isLocal = false;
    this.#queue = [];
    this.#waiting = 0;
    this.#shown.missed();
    this.#listenEverywhere();
  }

  #push(item: LivePart | CommittedRow | "look"): void {
    if (item === "look") {
      if (this.#queue.at(-1) !== "look") this.#queue.push(item);
    } else if (this.#waiting < MOST_WAITING) {
      this.#queue.push(item);
      this.#waiting += 1;
    } else if (this.#isLocal) this.#readJournal();
    else {
      this.#queue = "entries" in item ? ["look"] : ["look", item];
      this.#waiting = this.#queue.length - 1;
      this.#shown.missed();
    }
    this.#arrived.resolve();
  }

  /** A row directly after the reader's position is emitted unchanged; after a gap the journal is read. */
  async *#committed(row: CommittedRow): AsyncGenerator<TroupeEvent, void, undefined> {
    const isNext = row.follows !== undefined && row.follows < this.#position.row;
    if (this.#isLocal) yield* this.#row(row);
    else if (row.cursor < this.#position.row) return;
    else yield* isNext ? this.#row(row) : this.#look();
  }

  async *#look(): AsyncGenerator<TroupeEvent, void, undefined> {
    if (this.#isLocal) {
      if (this.#mayBeGone || !this.#reading.isLocal?.()) this.#readJournal();
      return;
    }
    await this.#assertStored();
    const { stores, tenant } = this.#source;
    for (;;) {
      const rows = await stores.readTree(tenant, this.#rootAgentId, this.#position.row - 1, ROWS_AT_A_TIME);
      for (const row of rows) yield* this.#stored(row);
      if (rows.length < ROWS_AT_A_TIME) break;
    }
    if (this.#damage) throw this.#damage;
  }

  /** Throws if the stores have lost the tree, because no further events can follow. */
  async #assertStored(): Promise<void> {
    if (!this.#mayBeGone) return;
    this.#mayBeGone = false;
    const { stores, tenant } = this.#source;
    const agentId = this.#rootAgentId;
    if (await stores.readAgent({ tenant, agentId })) return;
    const deletion = await stores.deletion(tenant, agentId);
    if (deletion) throw deletedError(agentId, deletion);
    throw new StoreRolledBackError(`the stores have lost the tree of agent "${agentId}": it has no further events`, {
      details: { agentId },
    });
  }

  async *#stored(row: JournalRow): AsyncGenerator<TroupeEvent, void, undefined> {
    const { stores, tenant, trees } = this.#source;
    const isNew = !this.#records.has(row.agentId);
    const events = deepFreeze(await eventsOfRow(stores, tenant, row, this.#records));
    const source = this.#records.get(row.agentId);
    if (source && isNew) trees.note(source);
    const textNow = async (messageId: string): Promise<string> => {
      const [message] = source ? await stores.messagesById(source, [messageId]) : [];
      return message ? textOf(message.content) : "";
    };
    if (source) yield* this.#row({ cursor: row.cursor, source, entries: row.entries, events, textOf: textNow });
    else this.#position = { row: row.cursor + 1, seq: 0, index: -1 };
  }

  async *#row({ cursor, source, entries, events, textOf }: Row): AsyncGenerator<TroupeEvent, void, undefined> {
    const { agentId } = source;
    for (const entry of entries) {
      const isPast = cursor === this.#position.row && entry.seq <= this.#position.seq;
      if (!isPast) yield* this.#before(source, entry, textOf);
      this.#shown.note(agentId, entry, isPast);
      for (const event of events) {
        if (!isOf(event, cursor, entry, this.#position)) continue;
        this.#after = event.cursor;
        yield event;
      }
    }
    // The bus may deliver the rows of one commit in another order than the journal's.
    if (cursor >= this.#position.row) this.#position = { row: cursor + 1, seq: 0, index: -1 };
  }

  /** Whether the journal is read first; the part waits, because its end may be among the rows that are read. */
  #mustLook(part: LivePart): boolean {
    if (this.#isLocal || rowOf(part) < this.#position.row || this.#lookedFor === part) return false;
    this.#lookedFor = part;
    this.#queue.unshift("look", part);
    this.#waiting += 1;
    return true;
  }

  #live(part: LivePart): TroupeEvent | undefined {
    const taken = this.#shown.take(part);
    return taken === "gap" ? this.#ask() : taken && eventOfPart(taken, this.#after);
  }

  /** Reads the entries of a call that started before this stream. */
  async #learn(part: Said): Promise<void> {
    const key = { tenant: this.#source.tenant, agentId: part.agentId };
    const rows = await this.#source.stores.readJournal(key, part.seq);
    const passed = rows.filter(({ cursor }) => cursor < this.#position.row).flatMap(({ entries }) => entries);
    this.#shown.learn(
      part,
      passed.filter(({ seq }) => seq >= part.seq),
    );
  }

  #ask(): undefined {
    const now = performance.now();
    if (now - this.#askedAt < ASK_AGAIN_MS) return;
    this.#askedAt = now;
    this.#following?.ask();
  }

  /** Emits the queued parts that belong before the durable end of their answer or call. */
  async *#before(
    source: EventSource,
    entry: Entry,
    textOf: Row["textOf"],
  ): AsyncGenerator<TroupeEvent, void, undefined> {
    if (entry.type !== "model.responded" && entry.type !== "tool.settled") return;
    const isWaiting = (item: LivePart | CommittedRow | "look"): item is LivePart => {
      if (item === "look" || "entries" in item) return false;
      if (item.agentId !== source.agentId || isNotice(item)) return false;
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
    const rest = await this.#restOf(source, entry, textOf);
    if (rest) yield eventOfPart(rest, this.#after);
  }

  /** The whole text of an ended answer, if the reader may have only part of it. */
  async #restOf(source: EventSource, entry: Entry, textOf: Row["textOf"]): Promise<LivePart | undefined> {
    if (entry.type !== "model.responded") return undefined;
    const given = this.#shown.givenOf(source.agentId, entry);
    if (given === undefined) return undefined;
    const text = await textOf(entry.messageId);
    if (text === "" || text.length === given) return undefined;
    const { agentId, parentAgentId, rootAgentId, sessionId, definition } = source;
    const who = { agentId, agentName: definition.name, parentAgentId, rootAgentId, sessionId };
    const { turnId, step, attempt, at, seq } = entry;
    // Reasoning is stored only in the provider's format, so it cannot be emitted.
    const cursor = this.#after ?? "0.0.0";
    return { kind: "whole", ...who, cursor, turnId, step, attempt, at, seq, text, reasoning: null };
  }
}

/** A committed row, from the bus or from the journal. */
type Row = Omit<CommittedRow, "textOf" | "follows"> & {
  readonly textOf: (messageId: string) => string | Promise<string>;
};

/** Whether an event belongs to this entry, and the reader has not received it yet. */
function isOf(event: TroupeEvent, row: number, entry: Entry, position: EventCursor): boolean {
  const at = parseCursor(event.cursor ?? "");
  if (!at || at.seq !== entry.seq) return false;
  if (row !== position.row) return true;
  return at.seq !== position.seq ? at.seq > position.seq : at.index > position.index;
}

/**
 * The durable events of one stored row, equal to those that live listeners received. `sources` caches the records for the rows
 * that follow. Without `hasTexts` no message is read, and the texts of the events are empty.
 */
export async function eventsOfRow(
  stores: Stores,
  tenant: string,
  row: JournalRow,
  sources: Map<string, AgentRecord>,
  hasTexts = true,
): Promise<readonly TroupeEvent[]> {
  const key = { tenant, agentId: row.agentId };
  const source = sources.get(row.agentId) ?? (await stores.readAgent(key));
  if (!source) return [];
  sources.set(row.agentId, source);
  const ids = hasTexts ? row.entries.flatMap(textIdsOf) : [];
  const messages = ids.length === 0 ? [] : await stores.messagesById(key, ids);
  const texts = new Map(messages.map(({ id, content }) => [id, textOf(content)]));
  return row.entries.flatMap((entry) => eventsOf(entry, source, row.cursor, (id) => texts.get(id) ?? ""));
}

function textIdsOf(entry: Entry): readonly string[] {
  if (entry.type === "turn.started") return entry.inputMessageIds;
  return entry.type === "turn.ended" && entry.outputMessageId !== null ? [entry.outputMessageId] : [];
}
