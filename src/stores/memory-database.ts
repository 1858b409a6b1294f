import type { Account } from "../budget/index.ts";
import type { AgentKey, AgentRecord, Artifact, InboxItem, JournalRow, Message, Timer } from "../state/index.ts";
import type { LocalDatabase, LocalTables } from "./local-stores.ts";
import { MemoryTables } from "./memory-tables.ts";
import { MemoryUndo } from "./memory-undo.ts";
import type { AgentFilter } from "./ports.ts";

/** Everything in this process' memory: gone with the process, seen by nobody else. */
export class MemoryDatabase implements LocalDatabase {
  readonly tables: LocalTables;
  readonly #undo = new MemoryUndo();

  constructor() {
    this.tables = new MemoryReads(this.#undo);
  }

  async write<T>(work: () => T): Promise<T> {
    return this.#undo.run(work);
  }

  part<T>(work: () => T): T {
    return this.#undo.run(work);
  }

  isFatal(): boolean {
    return false;
  }

  async read<T>(work: () => T): Promise<T> {
    return work();
  }

  onForeignWrite(): () => void {
    return () => {};
  }

  /** Frees nothing: whoever holds the stores may go on with them. */
  async close(): Promise<void> {}
}

class MemoryReads extends MemoryTables implements LocalTables {
  listAgents(filter: AgentFilter, limit: number): AgentRecord[] {
    const { after, rootAgentId, sessionId, ownerId, rootsOnly } = filter;
    const found: AgentRecord[] = [];
    for (const { record } of this.rows.tenants.get(filter.tenant)?.agents.values() ?? []) {
      if (after !== undefined && record.agentId <= after) continue;
      if (rootAgentId !== undefined && record.rootAgentId !== rootAgentId) continue;
      if (sessionId !== undefined && record.sessionId !== sessionId) continue;
      if (ownerId !== undefined && record.ownerId !== ownerId) continue;
      if (rootsOnly && record.parentAgentId !== null) continue;
      found.push(record);
    }
    return found.sort((a, b) => (a.agentId < b.agentId ? -1 : 1)).slice(0, limit);
  }

  inbox(key: AgentKey): InboxItem[] {
    return [...(this.find(key)?.inbox.values() ?? [])].map((row) => row.item);
  }

  rowsFrom(key: AgentKey, fromSeq: number): JournalRow[] {
    const journal = this.find(key)?.journal ?? [];
    const start = journal.findLastIndex((row) => (row.entries.at(-1)?.seq ?? 0) < fromSeq) + 1;
    return journal.slice(start);
  }

  treeRows(tenant: string, rootAgentId: string, afterCursor: number, limit: number): JournalRow[] {
    const start = Math.max(0, afterCursor);
    return (
      this.rows.tenants
        .get(tenant)
        ?.trees.get(rootAgentId)
        ?.journal.slice(start, start + limit) ?? []
    );
  }

  messages(key: AgentKey, newest: number | undefined): Message[] {
    const messages = this.find(key)?.messages ?? [];
    return newest === undefined ? [...messages] : messages.slice(Math.max(0, messages.length - newest));
  }

  messagesById(key: AgentKey, ids: readonly string[]): Message[] {
    const byId = this.find(key)?.messagesById;
    return ids.flatMap((id) => byId?.get(id) ?? []);
  }

  artifacts(key: AgentKey): Omit<Artifact, "content">[] {
    const artifacts = [...(this.find(key)?.artifacts.values() ?? [])];
    return artifacts.map(({ content: _content, ...meta }) => meta);
  }

  artifact(key: AgentKey, artifactId: string): Artifact | undefined {
    return this.find(key)?.artifacts.get(artifactId);
  }

  accounts(tenant: string, rootAgentId: string): Account[] {
    return [...(this.rows.tenants.get(tenant)?.trees.get(rootAgentId)?.accounts.values() ?? [])];
  }

  dueTimers(now: number, limit: number): Timer[] {
    return this.timers.due(now, limit);
  }

  nextTimerAt(): number | undefined {
    return this.timers.nextAt();
  }
}
