import { prepared } from "../../postgres/index.ts";
import { processIn } from "../rules/stored-processes.ts";
import { textColumn } from "../rules/stored-values.ts";
import { columnsOf, columnText, processesTree } from "./postgres-text.ts";
import type { StoresConnection } from "./stores-connection.ts";

/**
 * The heartbeats of processes. Each changes one row that only its own process changes, without the version of the processes: heartbeats
 * of several processes would wait for each other, and all of them for one that stopped in the midst of a write.
 */
export class PostgresHeartbeats {
  readonly #connection: StoresConnection;

  constructor(connection: StoresConnection) {
    this.#connection = connection;
  }

  /** Returns false if the process is not registered. */
  async write(processId: string, steady: number): Promise<boolean> {
    const { schema } = this.#connection;
    const ofProcess = `tree = (SELECT id FROM "${schema}".trees WHERE tenant = $1::text AND root = $2::text) AND process_id = $3::text`;
    const key = [...columnsOf(processesTree), columnText(processId, "process id")];
    for (;;) {
      const [row] = await this.#connection.read(
        prepared(`SELECT process FROM "${schema}".processes WHERE ${ofProcess}`),
        key,
      );
      if (!row) return false;
      const stored = textColumn(row, "process", "a process");
      const known = processIn(stored, `process ${processId}`, processId);
      if (known.heartbeatAt === steady) return true;
      // A heartbeat that was sent before and arrives late changes nothing.
      const written = await this.#connection.read(
        prepared(
          `UPDATE "${schema}".processes SET process = $4::text WHERE ${ofProcess} AND process = $5::text RETURNING 1 AS one`,
        ),
        [...key, JSON.stringify({ ...known, heartbeatAt: steady }), stored],
      );
      if (written.length > 0) return true;
    }
  }
}
