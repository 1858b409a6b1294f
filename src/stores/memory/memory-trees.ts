import type { AgentKey, AgentRecord, Message, Timer } from "../../state/index.ts";
import type { RestlessTables, RestoredRow } from "../rules/local-tables.ts";
import { MemoryReads } from "./memory-reads.ts";
import { type AgentRows, emptyTree } from "./memory-rows.ts";
import type { StoredRow, StoredTree } from "../rules/stored-tree.ts";

/** Whole trees, to take them out and put them in, and how far projections of them have come. */
export class MemoryTrees extends MemoryReads implements RestlessTables {
  agentsOfTree(tenant: string, rootAgentId: string): AgentRecord[] {
    return this.#rowsOfTree(tenant, rootAgentId).map((rows) => rows.record);
  }

  timersOf(key: AgentKey): Timer[] {
    const timers = [...(this.find(key)?.timers.values() ?? [])];
    return timers.sort((a, b) => a.dueAt - b.dueAt || (a.id < b.id ? -1 : 1));
  }

  storedRows(tenant: string, rootAgentId: string): StoredRow[] {
    const messages = new Map<number, Message[]>();
    for (const { messagesById } of this.#rowsOfTree(tenant, rootAgentId)) {
      for (const { cursor, message } of messagesById.values()) {
        const ofRow = messages.get(cursor);
        if (ofRow) ofRow.push(message);
        else messages.set(cursor, [message]);
      }
    }
    const journal = this.rows.tenants.get(tenant)?.trees.get(rootAgentId)?.journal ?? [];
    return journal.map((row) => ({ ...row, messages: messages.get(row.cursor) ?? [] }));
  }

  removeTree(tenant: string, rootAgentId: string): void {
    const rows = this.rows.tenants.get(tenant);
    const tree = rows?.trees.get(rootAgentId);
    if (!rows || !tree) return;
    const agents = this.#rowsOfTree(tenant, rootAgentId);
    for (const agent of agents) {
      for (const timerId of agent.timers.keys()) this.timers.clear(agent, timerId);
    }
    const agentIds = agents.map(({ record }) => record.agentId);
    this.undo.removeAll(rows.agents, agentIds);
    this.undo.removeAll(rows.restless, agentIds);
    this.undo.removeAll(rows.treesOfAccounts, tree.accounts.keys());
    this.undo.set(rows.trees, rootAgentId, emptyTree(tree.lastCursor));
  }

  restoreRows(tenant: string, restored: readonly RestoredRow[]): number[] {
    return restored.map(({ row: { agentId, entries, messages }, cursor }) => {
      const key = { tenant, agentId };
      if (cursor === undefined) return this.addRow(key, entries, messages);
      this.addRowAt(key, cursor, entries, messages);
      return cursor;
    });
  }

  projections(tenant: string, rootAgentId: string): StoredTree["projections"] {
    const cursors = this.rows.tenants.get(tenant)?.projections.get(rootAgentId) ?? [];
    return [...cursors].map(([name, cursor]) => ({ name, cursor }));
  }

  projectionCursor(tenant: string, name: string, rootAgentId: string): number {
    return this.rows.tenants.get(tenant)?.projections.get(rootAgentId)?.get(name) ?? 0;
  }

  moveProjection(tenant: string, name: string, rootAgentId: string, cursor: number): void {
    if (cursor <= this.projectionCursor(tenant, name, rootAgentId)) return;
    const { projections } = this.tenantRows(tenant);
    const cursors = projections.get(rootAgentId) ?? new Map<string, number>();
    this.undo.set(projections, rootAgentId, cursors);
    this.undo.set(cursors, name, cursor);
  }

  /** In the order in which they were made. */
  #rowsOfTree(tenant: string, rootAgentId: string): AgentRows[] {
    const agents = [...(this.rows.tenants.get(tenant)?.agents.values() ?? [])];
    return agents.filter(({ record }) => record.rootAgentId === rootAgentId);
  }
}
