import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import { isKnownTo, isUnattended, livingFor } from "../rules/leases.ts";
import type { UnattendedQuery } from "../rules/queries.ts";
import { integerOf, type Row, textColumn } from "../rules/stored-values.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import type { ProcessRow } from "../rules/tables.ts";
import { prepared, type Query, type Statement } from "../../postgres/index.ts";
import { headColumns, headIn, itemsIn, recordIn } from "./postgres-loads.ts";
import { inSchema } from "./postgres-reader.ts";
import type { HeadRow } from "./postgres-session.ts";
import { columnText, textOfColumn } from "./postgres-text.ts";

/** An agent that may be unattended, and the rows that decide it. */
export interface CandidateAgent {
  readonly record: AgentRecord;
  readonly head: HeadRow;
  readonly inbox: readonly InboxItem[];
}

/** Searches for agents without a living owner that have work to do. */
export class PostgresUnattended {
  readonly #statements: Readonly<Record<"holders" | "after" | "candidates" | "items", Statement>>;

  constructor(schema: string) {
    const statement = (text: string): Statement => prepared(inSchema(text, schema));
    this.#statements = {
      // Each holder is found with one index lookup.
      holders: statement(
        `WITH RECURSIVE holders AS (
           (SELECT holder FROM $heads WHERE work = 'open' AND holder IS NOT NULL ORDER BY holder LIMIT 1)
           UNION ALL
           SELECT (SELECT h.holder FROM $heads AS h WHERE h.work = 'open' AND h.holder > holders.holder ORDER BY h.holder LIMIT 1)
           FROM holders WHERE holders.holder IS NOT NULL)
         SELECT holder FROM holders WHERE holder IS NOT NULL`,
      ),
      after: statement("SELECT n FROM $agents WHERE tenant = $1::text AND agent_id = $2::text"),
      candidates: statement(
        `WITH found AS (
           SELECT tree, agent_id FROM $inbox
           UNION SELECT tree, agent_id FROM $heads WHERE work = 'open' AND holder IS NULL
           UNION SELECT tree, agent_id FROM $heads WHERE work = 'open' AND holder = ANY($3::text[]))
         SELECT n, tree, agent_id, record AS body, ${headColumns}
         FROM found JOIN $agents USING (tree, agent_id) JOIN $heads USING (tree, agent_id)
         WHERE tenant = $1::text AND n > $2::bigint ORDER BY n LIMIT $4::bigint`,
      ),
      items: statement(
        `SELECT tree, agent_id, item_key AS sub, item AS body
         FROM $inbox JOIN unnest($1::bigint[], $2::text[]) AS u (tree, agent_id) USING (tree, agent_id) ORDER BY n`,
      ),
    };
  }

  /** In the order in which they were created. `processes`: all that are registered. */
  async find(
    query: Query,
    {
      tenant,
      wanted,
      steady,
      processes,
    }: {
      readonly tenant: string;
      readonly wanted: UnattendedQuery & { readonly limit: number };
      readonly steady: number;
      readonly processes: readonly ProcessRow[];
    },
    isHeldBack: (candidate: CandidateAgent) => Promise<boolean>,
  ): Promise<AgentKey[]> {
    const found: AgentKey[] = [];
    const { limit } = wanted;
    if (limit === 0) return found;
    const rows = new Map(processes.map((row) => [row.processId, row]));
    const isLiving = livingFor({ process: (id) => rows.get(id) }, wanted, steady);
    const holders = (await query(this.#statements.holders, [])).map((row) => textColumn(row, "holder", "a head"));
    const dead = holders.filter((holder) => !isLiving(textOfColumn(holder)));
    for (let after = await this.#start(query, tenant, wanted.after); ; ) {
      const page = await query(this.#statements.candidates, [columnText(tenant, "tenant"), after, dead, limit]);
      for (const { candidate } of await this.#read(query, tenant, page)) {
        if (!candidate) continue;
        const { holder } = candidate.head.head;
        if (holder !== null && isLiving(holder)) continue;
        if (await isHeldBack(candidate)) continue;
        if (!isKnownTo(wanted, candidate.record)) continue;
        found.push({ tenant, agentId: candidate.record.agentId });
        if (found.length === limit) return found;
      }
      if (page.length < limit) return found;
      after = integerOf(page.at(-1) ?? {}, "n", "an agent");
    }
  }

  async #start(query: Query, tenant: string, after: string | undefined): Promise<number> {
    if (after === undefined) return 0;
    const [row] = await query(this.#statements.after, [columnText(tenant, "tenant"), columnText(after, "agent id")]);
    return row ? integerOf(row, "n", "an agent") : 0;
  }

  /** Corrupt rows must not hide other agents. */
  async #read(
    query: Query,
    tenant: string,
    page: readonly Row[],
  ): Promise<{ readonly candidate: CandidateAgent | undefined }[]> {
    const items = await query(this.#statements.items, [
      page.map((row) => row["tree"]),
      page.map((row) => row["agent_id"]),
    ]);
    const ofAgent = Map.groupBy(items, (row) => `${String(row["tree"])} ${String(row["agent_id"])}`);
    return page.map((row) => {
      const agentId = textOfColumn(textColumn(row, "agent_id", "an agent"));
      try {
        const inbox = ofAgent.get(`${String(row["tree"])} ${String(row["agent_id"])}`) ?? [];
        return {
          candidate: {
            record: recordIn(row, { tenant, agentId }),
            head: headIn(row, agentId),
            inbox: [...itemsIn(inbox, agentId).values()],
          },
        };
      } catch (error) {
        if (error instanceof CorruptRecordError) return { candidate: undefined };
        throw error;
      }
    });
  }
}

/** Whether the agent has nothing to do now. */
export function isAtRest(tables: Parameters<typeof isUnattended>[0], { record, head, inbox }: CandidateAgent): boolean {
  try {
    return !isUnattended(tables, { record, head: head.head, inbox });
  } catch (error) {
    if (error instanceof CorruptRecordError) return true;
    throw error;
  }
}
