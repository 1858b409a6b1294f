import { z } from "zod";
import { CorruptRecordError } from "../../errors/index.ts";
import type { SteerMeaning } from "../rules/outcomes.ts";
import { wellFormed } from "../rules/stored-values.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { AgentSlot } from "./sqlite-heads.ts";
import type { Statement } from "./sqlite-statement.ts";

const steerSchema = z.object({
  steer: z.enum(["posted", "taken", "deferred"]),
  turnId: z.string(),
  step: z.number().nullable(),
  hash: z.string(),
});

/** The rows of inputs for open turns. */
export class SqliteSteers {
  readonly #put: Statement;
  readonly #find: Statement;

  constructor(connection: SqliteConnection) {
    this.#put = connection.prepare("INSERT OR REPLACE INTO steers VALUES (?, ?, ?, ?, ?, ?)");
    this.#find = connection.prepare(
      "SELECT state AS steer, turn_id AS turnId, step, hash FROM steers WHERE agent = ? AND steer_id = ?",
    );
  }

  put({ id }: AgentSlot, steerId: string, { steer, turnId, step, hash }: SteerMeaning): void {
    this.#put.run(id, wellFormed(steerId, "key of an input"), steer, turnId, step, hash);
  }

  find({ id }: AgentSlot, steerId: string): SteerMeaning | undefined {
    const row = this.#find.get(id, wellFormed(steerId, "key of an input"));
    if (!row) return undefined;
    const found = steerSchema.safeParse(row);
    if (found.success) return found.data;
    const [issue] = found.error.issues;
    throw new CorruptRecordError(`input ${steerId}: ${issue?.message} at ${issue?.path.join(".")}; it is not changed`);
  }
}
