import type { JournalRow } from "../../state/index.ts";
import type { FeedAgent, FeedRow } from "./messages.ts";
import { feedAgentOf } from "./runs.ts";
import { agentKeyIn, type RunSource } from "./source.ts";
import { feedRowOf, type Visibility } from "./visible-values.ts";

const ROWS_AT_A_TIME = 200;
const ENTRIES_IN_A_BATCH = 500;
const CHARACTERS_IN_A_BATCH = 200_000;
/** Most batches of one run that are kept for further readers. */
const MOST_KEPT = 16;

/** The rows of a run that are sent in one message. */
export interface Batch {
  readonly rows: readonly FeedRow[];
  /** The agents whose first row is in the batch. */
  readonly agents: readonly FeedAgent[];
  /** The cursor after which the next batch begins. */
  readonly head: number;
  /** Whether there were no further rows when the batch was read. */
  readonly isLast: boolean;
}

interface Kept {
  readonly read: Promise<Batch>;
  /** `undefined` until it is read. */
  batch: Batch | undefined;
}

/**
 * The rows of one run as batches. Readers that continue at the same cursor share a batch, and the batches of a page of
 * rows share one read.
 *
 * Invariants
 * 1. After `refresh`, a batch that was the last one before it is read again.
 * 2. At most `MOST_KEPT` batches are kept, the most recently used ones.
 */
export class RunBatches {
  readonly #source: RunSource;
  readonly #sight: Visibility;
  /** By the cursor after which a batch begins. */
  readonly #kept = new Map<number, Kept>();
  /** Number of calls to `refresh`. */
  #age = 0;

  constructor(source: RunSource, sight: Visibility) {
    this.#source = source;
    this.#sight = sight;
  }

  /** The batch after a cursor; has no rows if there are none. */
  after(cursor: number): Promise<Batch> {
    const known = this.#kept.get(cursor);
    if (known) {
      this.#kept.delete(cursor);
      this.#kept.set(cursor, known);
      return known.read;
    }
    const read = this.#read(cursor);
    const kept: Kept = { read, batch: undefined };
    this.#keep(cursor, kept);
    const forget = (): void => {
      if (this.#kept.get(cursor) === kept) this.#kept.delete(cursor);
    };
    read.then((batch) => {
      kept.batch = batch;
    }, forget);
    return read;
  }

  /** Call when rows may have been written: drops the last batch, so that it is read again. */
  refresh(): void {
    this.#age += 1;
    for (const [cursor, { batch }] of this.#kept) if (batch?.isLast !== false) this.#kept.delete(cursor);
  }

  async #read(cursor: number): Promise<Batch> {
    const age = this.#age;
    const { stores, tenant, runId } = this.#source;
    const rows = await stores.readTree(tenant, runId, cursor, ROWS_AT_A_TIME);
    const [first, ...others] = await this.#batchesOf(rows, cursor);
    let place = first.head;
    for (const batch of others) {
      if (!batch.isLast || age === this.#age) this.#keep(place, { read: Promise.resolve(batch), batch });
      place = batch.head;
    }
    return first;
  }

  #keep(cursor: number, kept: Kept): void {
    this.#kept.set(cursor, kept);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MOST_KEPT) return;
      this.#kept.delete(oldest);
    }
  }

  async #batchesOf(page: readonly JournalRow[], cursor: number): Promise<readonly [Batch, ...Batch[]]> {
    const parts: FeedRow[][] = [[]];
    let entries = 0;
    let characters = 0;
    for (const one of page) {
      const row = feedRowOf(one, this.#sight);
      entries += row.entries.length;
      characters += JSON.stringify(row).length;
      const isFull = entries > ENTRIES_IN_A_BATCH || characters > CHARACTERS_IN_A_BATCH;
      if (isFull && (parts.at(-1)?.length ?? 0) > 0) {
        parts.push([]);
        entries = row.entries.length;
        characters = JSON.stringify(row).length;
      }
      parts.at(-1)?.push(row);
    }
    const agents = await this.#agentsOf(page);
    const isEnd = page.length < ROWS_AT_A_TIME;
    const batches = parts.map((rows, index): Batch => {
      const isLast = isEnd && index === parts.length - 1;
      const own = rows.flatMap((row) => (isFirst(row) ? (agents.get(row.agentId) ?? []) : []));
      return { rows, agents: own, head: rows.at(-1)?.cursor ?? cursor, isLast };
    });
    return batches as [Batch, ...Batch[]];
  }

  async #agentsOf(rows: readonly JournalRow[]): Promise<ReadonlyMap<string, FeedAgent>> {
    const ids = new Set(rows.flatMap((row) => (isFirst(row) ? [row.agentId] : [])));
    const { stores } = this.#source;
    const records = await Promise.all([...ids].map((id) => stores.readAgent(agentKeyIn(this.#source, id))));
    const known = records.filter((record) => record !== undefined);
    return new Map(known.map((record) => [record.agentId, feedAgentOf(record, this.#sight)]));
  }
}

/** Whether the row is its agent's first: the first entry of an agent has the number 1. */
function isFirst({ entries }: Pick<FeedRow, "entries">): boolean {
  return entries[0]?.seq === 1;
}
