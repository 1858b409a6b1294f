import type { StatementSync } from "node:sqlite";
import { type TreeWebhooks, treeWebhooksSchema } from "../../state/index.ts";
import { parsed, type Row, textOf, wellFormed } from "../rules/stored-values.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

/** The webhooks of trees, a row for all of one tree. */
export class SqliteWebhooks {
  readonly #statements: Readonly<Record<"find" | "put" | "remove" | "due", StatementSync>>;

  constructor(connection: SqliteConnection) {
    this.#statements = {
      find: connection.prepare("SELECT webhooks FROM webhooks WHERE tenant = ? AND root_agent_id = ?"),
      put: connection.prepare(
        `INSERT INTO webhooks (tenant, root_agent_id, due_at, webhooks) VALUES (?, ?, ?, ?)
         ON CONFLICT (tenant, root_agent_id) DO UPDATE SET due_at = excluded.due_at, webhooks = excluded.webhooks`,
      ),
      remove: connection.prepare("DELETE FROM webhooks WHERE tenant = ? AND root_agent_id = ?"),
      due: connection.prepare(
        "SELECT webhooks FROM webhooks WHERE tenant = ? AND due_at <= ? ORDER BY due_at, root_agent_id LIMIT ?",
      ),
    };
  }

  find(tenant: string, rootAgentId: string): TreeWebhooks | undefined {
    const row = this.#statements.find.get(...keyOf(tenant, rootAgentId));
    return row && webhooksIn(row);
  }

  put(webhooks: TreeWebhooks): void {
    const { tenant, rootAgentId, dueAt } = webhooks;
    this.#statements.put.run(...keyOf(tenant, rootAgentId), dueAt, JSON.stringify(webhooks));
  }

  remove(tenant: string, rootAgentId: string): void {
    this.#statements.remove.run(...keyOf(tenant, rootAgentId));
  }

  due(tenant: string, now: number, limit: number): TreeWebhooks[] {
    return this.#statements.due.all(wellFormed(tenant, "tenant"), now, limit).map(webhooksIn);
  }
}

function webhooksIn(row: Row): TreeWebhooks {
  const where = "the webhooks of a tree";
  return parsed(treeWebhooksSchema, textOf(row, "webhooks", where), where);
}

function keyOf(tenant: string, rootAgentId: string): [string, string] {
  return [wellFormed(tenant, "tenant"), wellFormed(rootAgentId, "root agent id")];
}
