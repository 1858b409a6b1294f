import { type Schedule, scheduleDueAt, scheduleSchema } from "../../state/index.ts";
import type { ScheduleCursor, ScheduleFilter } from "../rules/queries.ts";
import { CorruptTimers, parsed, type Row, textColumn, wellFormed } from "../rules/stored-values.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { Statement } from "./sqlite-statement.ts";

type StatementName = "find" | "put" | "remove" | "all" | "ofAgent" | "ofOwner" | "ofBoth" | "due" | "next";

/** The schedules of tenants, one row per schedule. */
export class SqliteSchedules {
  readonly #statements: Readonly<Record<StatementName, Statement>>;

  readonly #damaged = new CorruptTimers();

  constructor(connection: SqliteConnection) {
    const listed = (condition: string): Statement =>
      connection.prepare(
        `SELECT schedule FROM schedules WHERE tenant = ?${condition} AND key > ? ORDER BY key LIMIT ?`,
      );
    this.#statements = {
      find: connection.prepare("SELECT schedule FROM schedules WHERE tenant = ? AND key = ?"),
      put: connection.prepare(
        `INSERT INTO schedules (tenant, key, due_at, agent_id, owner_id, schedule) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (tenant, key) DO UPDATE SET due_at = excluded.due_at, agent_id = excluded.agent_id,
           owner_id = excluded.owner_id, schedule = excluded.schedule`,
      ),
      remove: connection.prepare("DELETE FROM schedules WHERE tenant = ? AND key = ?"),
      all: listed(""),
      ofAgent: listed(" AND agent_id = ?"),
      ofOwner: listed(" AND owner_id = ?"),
      ofBoth: listed(" AND agent_id = ? AND owner_id = ?"),
      due: connection.prepare(
        `SELECT schedule FROM schedules WHERE tenant = ? AND due_at <= ? AND (due_at, key) > (?, ?)
         ORDER BY due_at, key LIMIT ?`,
      ),
      next: connection.prepare("SELECT min(due_at) AS due_at FROM schedules WHERE tenant = ? AND due_at > ?"),
    };
  }

  find(tenant: string, key: string): Schedule | undefined {
    const row = this.#statements.find.get(wellFormed(tenant, "tenant"), wellFormed(key, "schedule key"));
    return row && scheduleIn(row);
  }

  put(schedule: Schedule): void {
    const { tenant, key, agentId, ownerId } = schedule;
    const place = [wellFormed(tenant, "tenant"), wellFormed(key, "schedule key"), scheduleDueAt(schedule)] as const;
    const agent = agentId === null ? null : wellFormed(agentId, "agent id");
    const owner = ownerId === null ? null : wellFormed(ownerId, "owner id");
    this.#statements.put.run(...place, agent, owner, JSON.stringify(schedule));
  }

  remove(tenant: string, key: string): void {
    this.#statements.remove.run(wellFormed(tenant, "tenant"), wellFormed(key, "schedule key"));
  }

  list({ tenant, agentId, ownerId, after = "" }: ScheduleFilter, limit: number): Schedule[] {
    const { all, ofAgent, ofOwner, ofBoth } = this.#statements;
    const of = [agentId, ownerId].flatMap((id) => (id === undefined ? [] : wellFormed(id, "id")));
    const one = agentId === undefined ? ofOwner : ofAgent;
    const statement = [all, one, ofBoth][of.length] ?? all;
    return statement.all(wellFormed(tenant, "tenant"), ...of, after, limit).map(scheduleIn);
  }

  due(tenant: string, now: number, limit: number, place?: ScheduleCursor): Schedule[] {
    const { dueAt, key } = place ?? { dueAt: Number.MIN_SAFE_INTEGER, key: "" };
    return this.#statements.due
      .all(wellFormed(tenant, "tenant"), now, dueAt, key, limit)
      .flatMap((row) => this.#damaged.skipCorrupt(() => scheduleIn(row)) ?? []);
  }

  nextAt(tenant: string, after: number): number | undefined {
    const found = this.#statements.next.get(wellFormed(tenant, "tenant"), after)?.["due_at"];
    return typeof found === "number" ? found : undefined;
  }
}

function scheduleIn(row: Row): Schedule {
  const where = "a schedule";
  return parsed(scheduleSchema, textColumn(row, "schedule", where), where);
}
