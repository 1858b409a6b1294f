import { type Schedule, scheduleSchema } from "../../state/index.ts";
import type { ScheduleCursor, ScheduleFilter } from "../rules/queries.ts";
import { CorruptTimers, integerOf, parsed, type Row, textColumn } from "../rules/stored-values.ts";
import { prepared, type Query } from "../../postgres/index.ts";
import { inSchema, wholeOf } from "./postgres-reader.ts";
import { columnsOf, columnText, rowsBeside, type TreeName } from "./postgres-text.ts";

/** The schedules of a tenant, which are stored like a tree. */
export function schedulesOf(tenant: string): TreeName {
  return rowsBeside("schedules", tenant);
}

/** Reads schedules. */
export class PostgresSchedules {
  readonly #schema: string;
  readonly #damaged = new CorruptTimers();

  constructor(schema: string) {
    this.#schema = schema;
  }

  async find(query: Query, tenant: string, key: string): Promise<Schedule | undefined> {
    const [row] = await this.#rows(query, tenant, "AND key = $3::text", [columnText(key, "schedule key")]);
    return row && scheduleIn(row);
  }

  async list(query: Query, filter: ScheduleFilter, limit: number): Promise<Schedule[]> {
    const { tenant, agentId, ownerId, after } = filter;
    const values: unknown[] = [];
    const only = (column: string, value: string | undefined): string =>
      value === undefined ? "" : ` AND ${column} $${values.push(columnText(value, column)) + 2}::text`;
    const conditions = `${only("agent_id =", agentId)}${only("owner_id =", ownerId)}${only("key >", after)}`;
    const order = `ORDER BY key LIMIT $${values.push(limit) + 2}::bigint`;
    return (await this.#rows(query, tenant, `${conditions} ${order}`, values)).map(scheduleIn);
  }

  /** Without corrupt ones, which never fire. */
  async due(query: Query, tenant: string, now: number, { limit, place }: DuePage): Promise<Schedule[]> {
    const after = place ? " AND (due_at, key) > ($5::bigint, $6::text)" : "";
    const rows = await this.#rows(
      query,
      tenant,
      `AND due_at <= $3::bigint${after} ORDER BY due_at, key LIMIT $4::bigint`,
      [wholeOf(now), limit, ...(place ? [wholeOf(place.dueAt), columnText(place.key, "schedule key")] : [])],
    );
    return rows.flatMap((row) => this.#damaged.skipCorrupt(() => scheduleIn(row)) ?? []);
  }

  async nextAt(query: Query, tenant: string, after: number): Promise<number | undefined> {
    const [row] = await this.#rows(query, tenant, "AND due_at > $3::bigint ORDER BY due_at LIMIT 1", [wholeOf(after)]);
    return row && integerOf(row, "due_at", "a schedule");
  }

  async #rows(query: Query, tenant: string, where: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const tree = "(SELECT id FROM $trees WHERE tenant = $1::text AND root = $2::text)";
    const text = `SELECT due_at, schedule FROM $schedules WHERE tree = ${tree} ${where}`;
    return await query(prepared(inSchema(text, this.#schema)), [...columnsOf(schedulesOf(tenant)), ...values]);
  }
}

interface DuePage {
  readonly limit: number;
  readonly place: ScheduleCursor | undefined;
}

function scheduleIn(row: Row): Schedule {
  return parsed(scheduleSchema, textColumn(row, "schedule", "a schedule"), "a schedule");
}
