import { type AgentKey, rootOf } from "../../state/index.ts";
import { KeyedCache } from "./keyed-cache.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

const CAPACITY = 4000;

/**
 * The trees that this connection has begun in a generation. All their agents and accounts are in the caches, so that one that
 * is not there need not be looked for in the file. Whoever drops some of what is cached forgets all of them.
 */
export class SqliteNewTrees {
  readonly #connection: SqliteConnection;
  readonly #roots = new KeyedCache<true>(CAPACITY);
  #generation = 0;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  add({ tenant, agentId }: AgentKey): void {
    const { generation } = this.#connection;
    if (this.#generation !== generation) this.#roots.clear();
    this.#generation = generation;
    this.#roots.set(tenant, agentId, true);
  }

  /** Whether this agent is of such a tree. */
  has(tenant: string, agentId: string): boolean {
    const { generation, isInTransaction } = this.#connection;
    return isInTransaction && this.#generation === generation && this.#roots.get(tenant, rootOf(agentId)) === true;
  }

  rest(keys: readonly AgentKey[]): void {
    this.#roots.dropTrees(keys, (agentId) => agentId);
  }

  forget(): void {
    this.#roots.clear();
  }
}
