import type { AgentKey, JournalRow } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

/** Rows that are kept of all agents together, and the agents that they are of. */
const MOST_ROWS = 200_000;
const MOST_AGENTS = 32;

/**
 * The journals of the agents that were asked about last, so that a further question reads only what came since.
 *
 * Invariants
 * 1. What is given is what is stored: the last row that is kept is read again with each question, and where it is another
 *    one, as after a store that was put back, the journal is read anew.
 * 2. It keeps a bounded number of rows; the journal of the last question is always kept.
 */
export class Journals {
  /** By store and agent, the one that was asked about last at the end. */
  readonly #kept = new Map<Stores, Map<string, readonly JournalRow[]>>();

  async read(stores: Stores, key: AgentKey): Promise<readonly JournalRow[]> {
    const name = JSON.stringify([key.tenant, key.agentId]);
    const known = this.#kept.get(stores)?.get(name) ?? [];
    const rows = await continued(stores, key, known);
    const ofStores = this.#kept.get(stores) ?? new Map<string, readonly JournalRow[]>();
    this.#kept.set(stores, ofStores);
    ofStores.delete(name);
    ofStores.set(name, rows);
    let count = [...ofStores.values()].reduce((sum, one) => sum + one.length, 0);
    for (const [other, { length }] of ofStores) {
      if (other === name || (count <= MOST_ROWS && ofStores.size <= MOST_AGENTS)) break;
      ofStores.delete(other);
      count -= length;
    }
    return rows;
  }

  /** Forgets the journals of some stores. */
  forget(stores: Stores): void {
    this.#kept.delete(stores);
  }
}

async function continued(stores: Stores, key: AgentKey, known: readonly JournalRow[]): Promise<readonly JournalRow[]> {
  const last = known.at(-1);
  const seq = last?.entries.at(-1)?.seq;
  if (last !== undefined && seq !== undefined) {
    const [first, ...later] = await stores.readJournal(key, seq);
    if (first !== undefined && isSame(first, last)) return later.length === 0 ? known : [...known, ...later];
  }
  return await stores.readJournal(key, 1);
}

function isSame(one: JournalRow, other: JournalRow): boolean {
  const [mine, theirs] = [one.entries.at(-1), other.entries.at(-1)];
  return (
    one.cursor === other.cursor && mine?.seq === theirs?.seq && mine?.at === theirs?.at && mine?.epoch === theirs?.epoch
  );
}
