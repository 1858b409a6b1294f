import { DatabaseSync } from "node:sqlite";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { largeTurn } from "./large-team.ts";

const CHILDREN = 20;
const STEPS = 50;
/** Cursors reserved between two rows of the lead, for copies of a row. */
const ROOM = 256;

/**
 * Writes a run of a million events into a SQLite file: a real run of a lead whose 20 children take 50 steps each, and
 * `copies` copies of each child, made in the tables. The lead's own journal contains only the 20.
 */
export async function writeLongRun(file: string, copies = 200): Promise<void> {
  const stores = sqliteStores(file);
  await largeTurn({ stores }, { children: CHILDREN, steps: STEPS });
  await stores.close();
  const database = new DatabaseSync(file);
  database.exec(`BEGIN;
    UPDATE journal SET cursor = -cursor * ${ROOM};
    UPDATE journal SET cursor = -cursor;
    UPDATE messages SET cursor = cursor * ${ROOM};
    CREATE TEMP TABLE child AS SELECT * FROM agents WHERE parent_agent_id IS NOT NULL;
    CREATE TEMP TABLE head AS SELECT h.* FROM heads h JOIN child c ON c.id = h.agent;
    CREATE TEMP TABLE budget AS SELECT a.*, c.agent_id FROM accounts a JOIN child c ON instr(a.account_id, c.agent_id) > 0;
    CREATE TEMP TABLE line AS SELECT j.*, c.agent_id FROM journal j JOIN child c ON c.id = j.agent;
    CREATE TEMP TABLE said AS SELECT m.*, c.agent_id FROM messages m JOIN child c ON c.id = m.agent;`);
  for (let copy = 1; copy <= Math.min(copies, ROOM - 1); copy += 1) {
    const added = copy * 2 * CHILDREN;
    const name = `'desk~${copy.toString(16).padStart(3, "0")}' || substr(agent_id, 9)`;
    const renamed = (text: string): string => `replace(${text}, agent_id, ${name})`;
    database.exec(`
      INSERT INTO agents SELECT id + ${added}, tenant, ${name}, root, parent_agent_id, session_id, owner_id, created_at,
        ${renamed("record")} FROM child;
      UPDATE head SET agent = agent + ${2 * CHILDREN};
      INSERT INTO heads SELECT * FROM head;
      INSERT INTO accounts (tenant, account_id, root, account)
        SELECT tenant, ${renamed("account_id")}, root, ${renamed("account")} FROM budget;
      INSERT INTO journal SELECT cursor + ${copy}, root, agent + ${added}, last_seq, version, ${renamed("entries")} FROM line;
      INSERT INTO messages (agent, message_id, cursor, message)
        SELECT agent + ${added}, ${renamed("message_id")}, cursor + ${copy}, ${renamed("message")} FROM said;`);
  }
  database.exec("COMMIT");
  database.close();
}
