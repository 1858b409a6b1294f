import { type AgentKey, type Entry, type JournalRow, messagesAddedBy, rootOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { MachineHistory } from "../replay/machines.ts";
import { pauses } from "./pauses.ts";

/** Most rows, and most agents, that the cache keeps in all. */
const MOST_ROWS = 200_000;
const MOST_AGENTS = 32;

/** An agent's entry with the cursor of its row. */
export interface PlacedEntry {
  readonly cursor: number;
  readonly entry: Entry;
}

/**
 * One agent's journal with its entries, messages and machines. Appending rows updates them incrementally.
 *
 * Invariants
 * 1. Rows are in cursor order, without duplicates.
 * 2. Machines are folded only when `machines()` is called; each row is folded once.
 */
export class KeptJournal {
  readonly #agentId: string;
  readonly #rows: JournalRow[] = [];
  readonly #entries: PlacedEntry[] = [];
  readonly #messages = new Map<string, PlacedEntry>();
  readonly #messageIds: string[] = [];
  #history: MachineHistory | undefined;
  #folded = 0;

  constructor(agentId: string, rows: readonly JournalRow[]) {
    this.#agentId = agentId;
    this.append(rows);
  }

  get rows(): readonly JournalRow[] {
    return this.#rows;
  }

  get entries(): readonly PlacedEntry[] {
    return this.#entries;
  }

  /** Ids of the messages that its entries added since the conversation was last cleared, in order. */
  get messageIds(): readonly string[] {
    return this.#messageIds;
  }

  /** The entry that added a message to the conversation. */
  entryOf(messageId: string): PlacedEntry | undefined {
    return this.#messages.get(messageId);
  }

  append(rows: readonly JournalRow[]): void {
    const known = this.#rows.at(-1)?.cursor ?? 0;
    for (const row of rows) {
      // Two concurrent requests may have read the same rows.
      if (row.cursor <= known) continue;
      this.#rows.push(row);
      for (const entry of row.entries) this.#add({ cursor: row.cursor, entry });
    }
  }

  #add(placed: PlacedEntry): void {
    this.#entries.push(placed);
    if (placed.entry.type === "conversation.cleared" && placed.entry.scope === "all") {
      this.#messages.clear();
      this.#messageIds.length = 0;
    }
    for (const id of messagesAddedBy(placed.entry)) {
      if (this.#messages.has(id)) continue;
      this.#messages.set(id, placed);
      this.#messageIds.push(id);
    }
  }

  /** The agent's machines, with all rows folded. */
  async machines(): Promise<MachineHistory> {
    this.#history ??= new MachineHistory(this.#agentId);
    const pause = pauses();
    while (this.#folded < this.#rows.length) {
      const { entries, cursor } = this.#rows[this.#folded] as JournalRow;
      this.#folded += 1;
      for (const entry of entries) this.#history.apply(entry, cursor);
      await pause();
    }
    return this.#history;
  }
}

/**
 * A cache of the journals read most recently. Reading one of them again reads only its new rows.
 *
 * Invariants
 * 1. It never returns stale rows: each `read` reads the last kept row again. If the stored row differs, for instance in
 *    a store that was restored from a backup, the whole journal is read again.
 * 2. It keeps a bounded number of rows; the journal read last is always kept.
 */
export class Journals {
  /** By store and agent, the most recently read at the end. */
  readonly #kept = new Map<Stores, Map<string, KeptJournal>>();

  async read(stores: Stores, key: AgentKey): Promise<KeptJournal> {
    const name = JSON.stringify([key.tenant, key.agentId]);
    const journal = await continued(stores, key, this.#kept.get(stores)?.get(name));
    const ofStores = this.#kept.get(stores) ?? new Map<string, KeptJournal>();
    this.#kept.set(stores, ofStores);
    ofStores.delete(name);
    ofStores.set(name, journal);
    let count = [...ofStores.values()].reduce((sum, { rows }) => sum + rows.length, 0);
    for (const [other, { rows }] of ofStores) {
      if (other === name || (count <= MOST_ROWS && ofStores.size <= MOST_AGENTS)) break;
      ofStores.delete(other);
      count -= rows.length;
    }
    return journal;
  }

  /** Drops the cached journals of the agents of a run. */
  forgetRun(stores: Stores, root: AgentKey): void {
    const ofStores = this.#kept.get(stores);
    for (const name of ofStores?.keys() ?? []) {
      const [tenant, agentId] = JSON.parse(name) as [string, string];
      if (tenant === root.tenant && rootOf(agentId) === root.agentId) ofStores?.delete(name);
    }
  }

  /** Drops the cached journals of the stores. */
  forget(stores: Stores): void {
    this.#kept.delete(stores);
  }
}

async function continued(stores: Stores, key: AgentKey, known: KeptJournal | undefined): Promise<KeptJournal> {
  const last = known?.rows.at(-1);
  const seq = last?.entries.at(-1)?.seq;
  if (known && last && seq !== undefined) {
    const [first, ...later] = await stores.readJournal(key, seq);
    if (first !== undefined && isSame(first, last)) {
      known.append(later);
      return known;
    }
  }
  return new KeptJournal(key.agentId, await stores.readJournal(key, 1));
}

function isSame(one: JournalRow, other: JournalRow): boolean {
  const [mine, theirs] = [one.entries.at(-1), other.entries.at(-1)];
  return (
    one.cursor === other.cursor && mine?.seq === theirs?.seq && mine?.at === theirs?.at && mine?.epoch === theirs?.epoch
  );
}
