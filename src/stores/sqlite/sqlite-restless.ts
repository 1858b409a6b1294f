import type { StatementSync } from "node:sqlite";
import type { AgentKey } from "../../state/index.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import { integerOf, textOf, textOrNullOf } from "./sqlite-row.ts";

const where = "the list of agents with something to do";

/** None of them costs more than what it gives. */
export const restlessQueries = {
  nextHolder: "SELECT holder FROM heads WHERE work = 'open' AND holder > ? ORDER BY holder LIMIT 1",
  atWork: "SELECT agent FROM heads WHERE work = 'open' AND holder IS ? AND agent > ? ORDER BY agent LIMIT ?",
  posted: "SELECT DISTINCT agent FROM inbox WHERE agent > ? ORDER BY agent LIMIT ?",
  agent: "SELECT tenant, agent_id FROM agents WHERE id = ?",
} as const;

/** Which agents have something to do, by the index of those at work and by their inboxes. */
export class SqliteRestless {
  readonly #statements: Readonly<Record<"nextHolder" | "atWork" | "posted" | "agent", StatementSync>>;

  constructor(connection: SqliteConnection) {
    const { nextHolder, atWork, posted, agent } = restlessQueries;
    this.#statements = {
      nextHolder: connection.prepare(nextHolder),
      atWork: connection.prepare(atWork),
      posted: connection.prepare(posted),
      agent: connection.prepare(agent),
    };
  }

  /** In the order of their keys here, after that of an agent; `page`: how many are read at once. */
  *after(tenant: string, isLiving: (processId: string) => boolean, start: number, page: number): Generator<AgentKey> {
    const lost = this.#lostHolders(isLiving);
    for (let after = start; ; ) {
      const pages = [
        this.#statements.posted.all(after, page),
        ...lost.map((holder) => this.#statements.atWork.all(holder, after, page)),
      ].map((rows) => rows.map((row) => integerOf(row, "agent", where)));
      // What comes after the end of a full page may be in another one's next.
      const end = Math.min(...pages.map((ids) => (ids.length < page ? Number.POSITIVE_INFINITY : (ids.at(-1) ?? 0))));
      const found = [...new Set(pages.flat())].filter((id) => id <= end).sort((one, other) => one - other);
      for (const id of found) {
        const row = this.#statements.agent.get(id);
        if (row && textOf(row, "tenant", where) === tenant) yield { tenant, agentId: textOf(row, "agent_id", where) };
      }
      if (end === Number.POSITIVE_INFINITY) return;
      after = end;
    }
  }

  /** Of those at work, whoever does not live, and nobody; each is found by one step in the index. */
  #lostHolders(isLiving: (processId: string) => boolean): (string | null)[] {
    const lost: (string | null)[] = [null];
    for (let holder = ""; ; ) {
      const row = this.#statements.nextHolder.get(holder);
      const next = row ? textOrNullOf(row, "holder", where) : null;
      if (next === null) return lost;
      if (!isLiving(next)) lost.push(next);
      holder = next;
    }
  }
}
