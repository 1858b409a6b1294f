import type { AgentKey, AgentRecord, Timer } from "../../state/index.ts";
import type { LocalTables, RestoredRow } from "../rules/local-tables.ts";
import { agentParts, treeParts } from "./redis-keys.ts";
import { RedisReads } from "./redis-reads.ts";
import { rowKinds } from "./redis-rows.ts";
import type { StoredRow, StoredTree } from "../rules/stored-tree.ts";

/** Whole trees, to take them out and put them in, and how far projections of them have come. */
export class RedisTrees extends RedisReads implements LocalTables {
  agentsOfTree(tenant: string, rootAgentId: string): AgentRecord[] {
    const tree = this.keys.treeOf(tenant, rootAgentId);
    const whole = this.readWhole(tree);
    const records = this.at(tree).all(whole.agentIds.map((agentId) => rowKinds.record(tenant, agentId)));
    // Asked for one that is no root, the tree is another one's.
    return records.filter((record) => record.rootAgentId === rootAgentId);
  }

  timersOf({ tenant, agentId }: AgentKey): Timer[] {
    const timers = this.readWhole(this.keys.treeOf(tenant, agentId)).timers.filter(
      (timer) => timer.agentId === agentId,
    );
    return timers.sort((a, b) => a.dueAt - b.dueAt || (a.id < b.id ? -1 : 1));
  }

  storedRows(tenant: string, rootAgentId: string): StoredRow[] {
    const { journal, agents } = this.readWhole(this.keys.treeOf(tenant, rootAgentId));
    const byCursor = new Map<number, StoredRow["messages"][number][]>();
    for (const { messages } of agents.values()) {
      for (const { cursor, message } of messages) {
        const ofRow = byCursor.get(cursor);
        if (ofRow) ofRow.push(message);
        else byCursor.set(cursor, [message]);
      }
    }
    return journal.map((row) => ({ ...row, messages: byCursor.get(row.cursor) ?? [] }));
  }

  removeTree(tenant: string, rootAgentId: string): void {
    const tree = this.keys.treeOf(tenant, rootAgentId);
    const { agentIds } = this.readWhole(tree);
    const session = this.writing(tree);
    for (const agentId of agentIds) {
      for (const part of agentParts) session.do("drop", { key: tree.ofAgent(part, agentId) });
    }
    for (const part of treeParts) session.do("drop", { key: tree[part] });
    session.removeAll();
  }

  restoreRows(tenant: string, rows: readonly RestoredRow[]): number[] {
    const [first] = rows;
    if (!first) return [];
    let last = this.readWhole(this.keys.treeOf(tenant, first.row.agentId)).lastCursor;
    return rows.map(({ row: { agentId, entries, messages }, cursor = last + 1 }) => {
      last = Math.max(last, cursor);
      return this.addRowAt({ tenant, agentId }, cursor, entries, messages);
    });
  }

  projections(tenant: string, rootAgentId: string): StoredTree["projections"] {
    const { projections } = this.readWhole(this.keys.treeOf(tenant, rootAgentId));
    return [...projections].map(([name, cursor]) => ({ name, cursor }));
  }

  projectionCursor(tenant: string, name: string, rootAgentId: string): number {
    const { projections } = this.keys.treeOf(tenant, rootAgentId);
    return this.ask("projection", () => this.reader.number(projections, name));
  }

  moveProjection(tenant: string, name: string, rootAgentId: string, cursor: number): void {
    const session = this.writing(this.keys.treeOf(tenant, rootAgentId));
    session.do("highest", { key: session.tree.projections }, name, String(cursor));
  }
}
