import { DatabaseSync } from "node:sqlite";
import type { JournalRow } from "../../src/state/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { ROOT, ROOT_ACCOUNT, TENANT, tokensIn, type WriterLine } from "./f31-team.ts";

/** Everything that was acknowledged to one agent's writers. */
export interface Acknowledged {
  readonly agentId: string;
  readonly lines: readonly Extract<WriterLine, { type: "acknowledged" }>[];
}

/** The faults of the file, in words. */
export async function auditStore(path: string, acknowledged: readonly Acknowledged[]): Promise<string[]> {
  const faults = integrityFaults(path);
  const stores = sqliteStores(path);
  try {
    let tokens = 0;
    for (const { agentId, lines } of acknowledged) {
      const key = { tenant: TENANT, agentId };
      const rows = await stores.readJournal(key, 1);
      const seqs = rows.flatMap((row) => row.entries.map((entry) => entry.seq));
      faults.push(...orderFaults(agentId, seqs));
      const last = seqs.at(-1) ?? 0;
      for (const { seq } of lines) if (seq > last) faults.push(`${agentId}: acknowledged entry ${seq} is lost`);
      const ids = lines.map(({ messageId }) => messageId);
      const found = await stores.messagesById(key, ids);
      if (found.length !== ids.length)
        faults.push(`${agentId}: ${ids.length - found.length} acknowledged messages are lost`);
      const all = await stores.messages(key);
      if (all.length !== rows.length) faults.push(`${agentId}: ${all.length} messages for ${rows.length} batches`);
      tokens += tokensOf(rows);
    }
    const accounts = await stores.accounts(TENANT, ROOT);
    const shared = accounts.find(({ id }) => id === ROOT_ACCOUNT);
    if (shared?.used.tokens !== tokens)
      faults.push(`the account has ${shared?.used.tokens} tokens, the journals ${tokens}`);
    const tree = await stores.readTree(TENANT, ROOT, 0, Number.MAX_SAFE_INTEGER);
    const cursors = tree.map((row) => row.cursor);
    if (new Set(cursors).size !== cursors.length) faults.push("a cursor was given twice");
  } finally {
    await stores.close();
  }
  return faults;
}

function tokensOf(rows: readonly JournalRow[]): number {
  return rows.flatMap((row) => row.entries).reduce((sum, entry) => sum + tokensIn(entry), 0);
}

function integrityFaults(path: string): string[] {
  const database = new DatabaseSync(path);
  const rows = database.prepare("PRAGMA integrity_check").all();
  database.close();
  return rows.map((row) => String(row["integrity_check"])).filter((line) => line !== "ok");
}

function orderFaults(agentId: string, seqs: readonly number[]): string[] {
  const wrong = seqs.findIndex((seq, index) => seq !== index + 1);
  return wrong < 0 ? [] : [`${agentId}: entry ${wrong + 1} has seq ${seqs[wrong]}`];
}
