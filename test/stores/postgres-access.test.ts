import { describe, expect, onTestFinished, test, vi } from "vitest";
import { InvalidInputError, UnsupportedError } from "../../src/errors/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { postgresStores, type PostgresStoresOptions } from "../../src/stores/postgres.ts";
import { migrations } from "../../src/stores/postgres/migrations/index.ts";
import { identityOf, agentKey } from "../contracts/stores-fixtures.ts";
import { PostgresServer, postgresProgram } from "../support/postgres-server.ts";
import { ownSchema, postgresStoresOn } from "../support/postgres-stores.ts";
import { postgresOfSuite } from "../support/postgres-suite.ts";

describe("the options of postgresStores()", () => {
  test.each<[PostgresStoresOptions, RegExp]>([
    [{}, /takes one of url and connection; none is given/],
    [{ url: "postgres://h/d", connection: {} }, /takes one of url and connection; both are given/],
    [{ url: "redis://app:hunter2@h" }, /url: invalid Postgres URL; expected postgres:/],
    [{ url: "hunter2" }, /url: invalid Postgres URL/],
    [{ url: "postgres://h/d", schema: "Troupe" }, /schema is the text "Troupe"; expected 1 to 40 characters/],
    [{ url: "postgres://h/d", schema: 'a"; DROP SCHEMA b' }, /expected 1 to 40 characters/],
    [{ url: "postgres://h/d", schema: "pg_own" }, /not with pg_/],
    [{ url: "postgres://h/d", maxConnections: 0 }, /maxConnections/],
    [{ url: "postgres://h/d", timeoutMs: 0.5 }, /timeoutMs/],
    [{ url: "postgres://h/d", pool: 3 } as PostgresStoresOptions, /no option "pool": did you mean connection/],
  ])("%j is refused, and no password is shown", (options, message) => {
    expect(() => postgresStores(options)).toThrow(InvalidInputError);
    expect(() => postgresStores(options)).toThrow(message);
    expect(() => postgresStores(options)).not.toThrow(/hunter2/);
  });
});

function opened(options: PostgresStoresOptions): Stores {
  const stores = postgresStores({ timeoutMs: 10_000, ...options });
  onTestFinished(() => stores.close());
  return stores;
}

const failureOf = async (stores: Stores): Promise<unknown> =>
  await stores.readAgent(agentKey()).catch((error: unknown) => error);

describe.skipIf(!postgresProgram)("access to Postgres", () => {
  const postgres = postgresOfSuite();

  test("the first use creates the tables once, however many processes begin at the same moment", async () => {
    const schema = ownSchema();
    const all = Array.from({ length: 4 }, () => opened({ url: postgres.server.url, schema }));
    const created = await Promise.all(all.map((stores) => stores.createAgent(identityOf("desk"), null)));
    expect(created.filter((outcome) => outcome.created)).toHaveLength(1);
    expect(
      await postgres.server.query(`SELECT number, troupe FROM "${schema}".troupe_migrations ORDER BY number`),
    ).toEqual(migrations.map(({ number, troupe }) => ({ number, troupe })));
  });

  test("a layout of a later version is refused, with the version that reads it", async () => {
    const schema = ownSchema();
    await failureOf(opened({ url: postgres.server.url, schema }));
    await postgres.server.query(`INSERT INTO "${schema}".troupe_migrations VALUES (99, '7.1.0')`);
    const failure = await failureOf(opened({ url: postgres.server.url, schema }));
    expect(failure).toBeInstanceOf(UnsupportedError);
    expect(String(failure)).toMatch(
      /has layout 99, and this version of troupe reads layouts up to \d+; use troupe 7\.1\.0 or later/,
    );
  });

  test("a schema of another program is refused and left as it is", async () => {
    const schema = ownSchema();
    await postgres.server.query(`CREATE SCHEMA "${schema}"; CREATE TABLE "${schema}".trees (leaves int)`);
    const failure = await failureOf(opened({ url: postgres.server.url, schema }));
    expect(String(failure)).toMatch(/has tables of another program; give another schema/);
    const tables = await postgres.server.query("SELECT tablename FROM pg_tables WHERE schemaname = $1", [schema]);
    expect(tables).toEqual([{ tablename: "trees" }]);
  });

  test("a user with rights on one schema can work there, and is refused another one", async () => {
    const [own, foreign] = [ownSchema(), ownSchema()];
    await postgres.server.query(`CREATE ROLE clerk LOGIN; CREATE SCHEMA "${own}" AUTHORIZATION clerk`);
    const url = postgres.server.url.replace("troupe@", "clerk@");
    await opened({ url, schema: own }).createAgent(identityOf("desk"), null);
    const failure = await failureOf(opened({ url, schema: foreign }));
    expect(String(failure)).toMatch(/the user may not create the schema .* or its tables; run CREATE SCHEMA/);
  });

  test("unknown users and databases fail at once, with the cause", async () => {
    const [stranger, nowhere] = [
      await failureOf(opened({ url: postgres.server.url.replace("troupe@", "stranger@") })),
      await failureOf(opened({ url: postgres.server.url.replace(/postgres$/, "nowhere") })),
    ];
    expect(stranger).toMatchObject({ code: "store_unavailable", details: { code: "28000" } });
    expect(nowhere).toMatchObject({ code: "store_unavailable", details: { code: "3D000" } });
  });

  test("options of a pg client are used instead of a URL", async () => {
    const { hostname, port } = new URL(postgres.server.url);
    const connection = {
      host: hostname,
      port: Number(port),
      user: "troupe",
      database: "postgres",
      password: () => "any",
    };
    const stores = opened({ connection, schema: ownSchema() });
    expect(await stores.createAgent(identityOf("desk"), null)).toMatchObject({ created: true });
  });

  test("the views show people what is stored, with any characters in it", async () => {
    const schema = ownSchema();
    const stores = postgresStoresOn(postgres.server, { schema });
    onTestFinished(() => stores.close());
    await stores.createAgent(identityOf("desk\0", { metadata: { odd: "a\0b \\u0000" } }), null);
    const [row] = await postgres.server.query(`SELECT tenant, name, status FROM "${schema}".team`);
    expect(row).toMatchObject({ tenant: "acme", status: "created" });
    for (const view of ["conversation", "spending", "entries"]) {
      expect(await postgres.server.query(`SELECT * FROM "${schema}".${view}`)).toEqual([]);
    }
  });

  test("a server that acknowledges before it writes is used with a warning", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
    onTestFinished(() => {
      warned.mockRestore();
    });
    const server = await PostgresServer.start({ settings: { synchronous_commit: "off" } });
    onTestFinished(() => server.stop());
    await failureOf(opened({ url: server.url }));
    expect(warned).toHaveBeenCalledExactlyOnceWith(
      expect.stringMatching(/^Postgres acknowledges writes before they are on its disk \(synchronous_commit is off\)/),
      { code: "TROUPE_POSTGRES_DURABILITY" },
    );
  });
});
