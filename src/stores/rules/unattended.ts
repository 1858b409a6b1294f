import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import { isAlive } from "./leases.ts";
import type { LocalTables, RestlessTables } from "./local-tables.ts";
import { isAnyNews } from "./news.ts";
import { isRunning } from "./process-identity.ts";
import type { UnattendedQuery } from "./queries.ts";
import type { Head, ProcessRow, Tables } from "./tables.ts";

/** What is known of an agent that may need somebody. */
export interface RestlessAgent {
  readonly record: AgentRecord;
  readonly head: Head;
  readonly inbox: readonly InboxItem[];
}

/** Whether somebody has to take up an agent that no living process holds. */
export function needsSomebody(tables: Pick<Tables, "agent">, { record, head, inbox }: RestlessAgent): boolean {
  if (record.status === "shutdown") return false;
  return head.work === "open" || isAnyNews(tables, record, inbox);
}

/** Those of the tables of this process that somebody has to take up. */
export function unattendedIn(
  tables: RestlessTables,
  tenant: string,
  query: UnattendedQuery & { readonly limit: number },
  steady: number,
): AgentKey[] {
  const { after, limit } = query;
  const isLiving = livingFor(tables, query, steady);
  const found: AgentKey[] = [];
  if (limit === 0) return found;
  for (const key of tables.restless(tenant, isLiving, after, limit)) {
    if (isUnattended(tables, key, isLiving)) found.push(key);
    if (found.length === limit) break;
  }
  return found;
}

/** False where something of the agent cannot be read: it hides no other one. */
function isUnattended(tables: LocalTables, key: AgentKey, isLiving: (processId: string) => boolean): boolean {
  try {
    const head = tables.head(key);
    const record = tables.agent(key);
    if (!record || (head.holder !== null && isLiving(head.holder))) return false;
    return needsSomebody(tables, { record, head, inbox: tables.inbox(key) });
  } catch (error) {
    if (error instanceof CorruptRecordError) return false;
    throw error;
  }
}

/** Who lives, in the eyes of whoever asks; each process is looked at once. */
export function livingFor(
  tables: Pick<Tables, "process">,
  { processId, leaseMs }: Pick<UnattendedQuery, "processId" | "leaseMs">,
  steady: number,
): (processId: string) => boolean {
  const known = new Map([[processId, true]]);
  const isProcessLiving = (row: ProcessRow | undefined): boolean =>
    row !== undefined && isAlive(tables, row, { processId, leaseMs, isRunning }, steady);
  return (id) => {
    const isLiving = known.get(id) ?? isProcessLiving(tables.process(id));
    known.set(id, isLiving);
    return isLiving;
  };
}
