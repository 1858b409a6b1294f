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
  // In the texts of a row one character stands for its agent's id, so that they are copied as they are.
  database.exec(`BEGIN;
    UPDATE journal SET cursor = -cursor * ${ROOM}, previous = previous * ${ROOM};
    UPDATE journal SET cursor = -cursor;
    UPDATE standings SET cursor = cursor * ${ROOM}, placed = placed * ${ROOM} WHERE agent IS NOT NULL;
    UPDATE messages SET cursor = cursor * ${ROOM};
    CREATE TEMP TABLE child AS SELECT * FROM agents WHERE parent_agent_id IS NOT NULL;
    CREATE TEMP TABLE budget AS SELECT s.*, c.agent_id FROM standings s JOIN child c ON instr(s.account_id, c.agent_id) > 0;
    CREATE TEMP TABLE line AS SELECT j.* FROM journal j JOIN child c ON c.id = j.agent;
    CREATE TEMP TABLE said AS SELECT m.* FROM messages m JOIN child c ON c.id = m.agent;
    CREATE TEMP TABLE head AS SELECT s.* FROM standings s JOIN child c ON c.id = s.agent;`);
  const perCopy = 2 * CHILDREN;
  const places = Number(
    database.prepare("SELECT max(place) - min(place) + 1 AS places FROM standings").get()?.["places"],
  );
  for (let copy = 1; copy <= Math.min(copies, ROOM - 1); copy += 1) {
    const added = copy * perCopy;
    const moved = copy * places;
    const name = `'desk~${copy.toString(16).padStart(3, "0")}' || substr(c.agent_id, 9)`;
    const renamed = (text: string): string => `replace(${text}, c.agent_id, ${name})`;
    database.exec(`
      INSERT INTO agents SELECT c.id + ${added}, c.tenant, ${name}, c.tree, c.place + ${moved}, c.parent_agent_id,
        c.session_id, c.owner_id, c.created_at, ${renamed("c.record")} FROM child c;
      UPDATE head SET place = place + ${places}, agent = agent + ${perCopy}, cursor = cursor + 1, placed = max(0, placed + 1);
      INSERT INTO standings SELECT * FROM head;
      INSERT INTO accounts SELECT 'default', ${renamed("account_id")}, place + ${moved} FROM budget c;
      INSERT INTO standings (place, account_id, terms, standing)
        SELECT place + ${moved}, ${renamed("account_id")}, ${renamed("terms")}, standing FROM budget c;
      INSERT INTO journal SELECT cursor + ${copy}, tree, agent + ${added},
        CASE previous WHEN 0 THEN 0 ELSE previous + ${copy} END, 0, 0, last_seq, version, entries, messages FROM line;
      INSERT INTO messages SELECT m.agent + ${added}, ${renamed("m.message_id")}, m.cursor + ${copy}
        FROM said m JOIN child c ON c.id = m.agent;`);
  }
  database.exec(`
    CREATE TEMP TABLE places AS SELECT cursor, row_number() OVER (ORDER BY cursor) AS number,
      lag(cursor, 1, 0) OVER (ORDER BY cursor) AS before FROM journal;
    UPDATE journal SET number = places.number, before = places.before FROM places WHERE places.cursor = journal.cursor;
    UPDATE standings SET tree_cursor = (SELECT max(cursor) FROM journal), tree_rows = (SELECT count(*) FROM journal)
      WHERE place = (SELECT min(place) FROM standings);`);
  database.exec("COMMIT");
  database.close();
}
