import { DatabaseSync } from "node:sqlite";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { largeTurn } from "./large-team.ts";

const CHILDREN = 20;
const STEPS = 50;
/** Cursors between two rows of the lead, for the copies of a row. */
const ROOM = 256;

/**
 * Writes a run of a million events into a SQLite file: a lead whose 20 children take 50 steps each, in earnest, and `copies`
 * copies of each child, made in the tables. The lead's own journal knows the 20 alone.
 */
export async function writeLongRun(file: string, copies = 200): Promise<void> {
  const stores = sqliteStores(file);
  await largeTurn({ stores }, { children: CHILDREN, steps: STEPS });
  await stores.close();
  const database = new DatabaseSync(file);
  database.exec(`BEGIN;
    UPDATE journal SET cursor = -cursor * ${ROOM}, previous = previous * ${ROOM};
    UPDATE journal SET cursor = -cursor;
    UPDATE heads SET cursor = cursor * ${ROOM};
    UPDATE messages SET cursor = cursor * ${ROOM};
    CREATE TEMP TABLE child AS SELECT * FROM agents WHERE parent_agent_id IS NOT NULL;
    CREATE TEMP TABLE budget AS SELECT a.id, a.tenant, a.account_id, a.place, a.terms, s.standing, c.agent_id
      FROM accounts a JOIN standings s ON s.place = a.place JOIN child c ON instr(a.account_id, c.agent_id) > 0;
    CREATE TEMP TABLE line AS SELECT j.* FROM journal j JOIN child c ON c.id = j.agent;
    CREATE TEMP TABLE said AS SELECT m.* FROM messages m JOIN child c ON c.id = m.agent;
    CREATE TEMP TABLE head AS SELECT h.* FROM heads h JOIN child c ON c.id = h.agent;`);
  const perCopy = 2 * CHILDREN;
  for (let copy = 1; copy <= Math.min(copies, ROOM - 1); copy += 1) {
    const added = copy * perCopy;
    const name = `'desk~${copy.toString(16).padStart(3, "0")}' || substr(c.agent_id, 9)`;
    const renamed = (text: string): string => `replace(${text}, c.agent_id, ${name})`;
    database.exec(`
      INSERT INTO agents SELECT c.id + ${added}, c.tenant, ${name}, c.tree, c.parent_agent_id, c.session_id, c.owner_id,
        c.created_at, ${renamed("c.record")} FROM child c;
      INSERT INTO heads SELECT agent + ${added}, epoch, holder, seq, at, sign, batch_id, open_requests, cursor + ${copy},
        outcome, work FROM head;
      INSERT INTO accounts SELECT id + ${added}, tenant, ${renamed("account_id")}, place + ${added}, ${renamed("terms")}
        FROM budget c;
      INSERT INTO standings SELECT place + ${added}, id + ${added}, standing FROM budget;
      INSERT INTO journal SELECT j.cursor + ${copy}, j.tree, j.agent + ${added},
        CASE j.previous WHEN 0 THEN 0 ELSE j.previous + ${copy} END, j.last_seq, j.version, ${renamed("j.entries")},
        ${renamed("j.messages")} FROM line j JOIN child c ON c.id = j.agent;
      INSERT INTO messages SELECT m.agent + ${added}, ${renamed("m.message_id")}, m.cursor + ${copy}
        FROM said m JOIN child c ON c.id = m.agent;`);
  }
  database.exec("COMMIT");
  database.close();
}
