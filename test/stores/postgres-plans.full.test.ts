// How Postgres runs the statements that are sent often, with 10,000 trees and 100,000 messages: none may read a whole table.
import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { messageOf, note } from "../contracts/entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "../contracts/names.ts";
import { agentKey, openAgent } from "../contracts/stores-fixtures.ts";
import { postgresProgram } from "../support/postgres-server.ts";
import { ownSchema, postgresStoresOn } from "../support/postgres-stores.ts";
import { postgresOfSuite } from "../support/postgres-suite.ts";

const TREES = 10_000;
const MESSAGES_OF_TREE = 10;

interface Sent {
  readonly text: string;
  readonly values?: readonly unknown[];
}

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly Plan[];
}

/** The tables that a plan reads from the first row to the last. */
function scanned(plan: Plan): string[] {
  const own = plan["Node Type"] === "Seq Scan" ? [plan["Relation Name"] ?? "?"] : [];
  return [...own, ...(plan.Plans ?? []).flatMap(scanned)];
}

/** Copies the one tree of a schema, with all of its rows, so that there are many. */
function copies(schema: string): string {
  const columns = (table: string, own: Readonly<Record<string, string>>, times = 1): string => `
    INSERT INTO "${schema}".${table} OVERRIDING SYSTEM VALUE
    SELECT (jsonb_populate_record(NULL::"${schema}".${table}, to_jsonb(t) || jsonb_build_object(${Object.entries(own)
      .map(([name, value]) => `'${name}', ${value}`)
      .join(", ")}))).*
    FROM (SELECT * FROM "${schema}".${table} LIMIT 1) AS t, generate_series(2, ${TREES}) AS copy,
      generate_series(1, ${times}) AS part;`;
  const number = `copy * ${MESSAGES_OF_TREE} + part + 1000`;
  return `
    ${columns("trees", { id: "copy + 1000", root: "'desk-' || copy" })}
    ${columns("agents", { tree: "copy + 1000", agent_id: "'desk-' || copy", n: "copy + 1000", created_at: "copy", record: `replace(t.record, '"agentId":"${ROOT}"', '"agentId":"desk-' || copy || '"')` })}
    ${columns("heads", { tree: "copy + 1000", agent_id: "'desk-' || copy", holder: "null", work: "'none'" })}
    ${columns("journal", { tree: "copy + 1000", agent_id: "'desk-' || copy", cursor: "part", last_seq: "part" }, MESSAGES_OF_TREE)}
    ${columns("messages", { tree: "copy + 1000", agent_id: "'desk-' || copy", message_id: "'m' || part", n: number }, MESSAGES_OF_TREE)}
    ${columns("turns", { tree: "copy + 1000", agent_id: "'desk-' || copy", turn_id: "'desk-' || copy || '#1'", stop_reason: "'completed'" })}
    ANALYZE;`;
}

async function useEverything(stores: Stores): Promise<void> {
  const key = agentKey();
  await stores.readAgent(key);
  await stores.listAgents({ tenant: TENANT, limit: 20 });
  await stores.listAgents({ tenant: TENANT, rootsOnly: true, order: "newest", limit: 20 });
  await stores.listAgents({ tenant: TENANT, ownerId: "ann", limit: 20 });
  await stores.turns({ tenant: TENANT, limit: 20 });
  await stores.requests({ tenant: TENANT, status: "open", limit: 20 });
  await stores.messages(key);
  await stores.readJournal(key, 1);
  await stores.readTree(TENANT, ROOT, 0, 100);
  await stores.treeHead(TENANT, ROOT);
  await stores.treeActivity(TENANT, ROOT);
  await stores.accounts(TENANT, ROOT);
  await stores.inbox(key);
  await stores.posted([key]);
  await stores.dueTimers(NOW, 20);
  await stores.nextTimerAt();
  await stores.dueWebhooks(TENANT, NOW, 20);
  await stores.dueSchedules(TENANT, NOW, 20);
  await stores.deletions({ tenant: TENANT, limit: 20 });
  await stores.unattended(TENANT, { processId: "p1", leaseMs: 10_000 }, NOW);
}

describe.skipIf(!postgresProgram)("Postgres with many trees", () => {
  const postgres = postgresOfSuite();

  test("finds what is read and written often by an index", { timeout: 300_000 }, async () => {
    const schema = ownSchema();
    const stores = postgresStoresOn(postgres.server, { schema, timeoutMs: 60_000 });
    onTestFinished(() => stores.close());
    const owner = await openAgent(stores);
    await owner.commit({ entries: [note("first")], messages: [messageOf("m1")] });
    await stores.openTurn(agentKey(), { input: "go", actorId: null, limits: null, ifBusy: "queue" }, NOW);
    await postgres.server.query(copies(schema));
    const [counted] = await postgres.server.query(`SELECT count(*)::int AS count FROM "${schema}".messages`);
    expect(counted?.["count"]).toBeGreaterThan(TREES * MESSAGES_OF_TREE - 100);

    const sent = new Map<string, Sent>();
    // oxlint-disable-next-line typescript/unbound-method -- it is called with its client.
    const query = Client.prototype.query as (...given: unknown[]) => unknown;
    Client.prototype.query = function record(this: Client, ...given: unknown[]) {
      const [config] = given as [Sent | string];
      if (typeof config === "object") sent.set(config.text, config);
      return query.apply(this, given);
    } as typeof Client.prototype.query;
    onTestFinished(() => {
      Client.prototype.query = query as typeof Client.prototype.query;
    });
    await useEverything(stores);
    await owner.commit({ entries: [note("second")], messages: [messageOf("m2")] });
    Client.prototype.query = query as typeof Client.prototype.query;

    const planned = [...sent.values()].filter(
      ({ text }) => /^(?:SELECT|WITH)\b/.test(text.trim()) && text.includes(schema),
    );
    expect(planned.length).toBeGreaterThan(15);
    const client = await postgres.server.client();
    onTestFinished(() => client.end());
    const large = new Set(["trees", "agents", "heads", "journal", "messages", "turns"]);
    const costly: string[] = [];
    for (const { text, values = [] } of planned) {
      const { rows } = await client.query<{ "QUERY PLAN": readonly { Plan: Plan }[] }>({
        text: `EXPLAIN (FORMAT JSON) ${text}`,
        values: [...values],
      });
      const tables = scanned(rows[0]?.["QUERY PLAN"][0]?.Plan ?? { "Node Type": "?" }).filter((name) =>
        large.has(name),
      );
      if (tables.length > 0) costly.push(`${tables.join(", ")}: ${text.replaceAll(/\s+/g, " ").slice(0, 300)}`);
    }
    expect(costly).toEqual([]);
  });
});
