// What operators do to a Postgres, and what agents write into it.
import { execFileSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import type { PostgresStoresOptions } from "../../src/stores/postgres.ts";
import { messageOf, note } from "../contracts/entry-fixtures.ts";
import { agentKey, identityOf, openAgent } from "../contracts/stores-fixtures.ts";
import { PostgresServer, postgresProgram } from "../support/postgres-server.ts";
import { ownSchema, postgresStoresOn } from "../support/postgres-stores.ts";
import { postgresOfSuite } from "../support/postgres-suite.ts";

describe.skipIf(!postgresProgram)("Postgres in operation", () => {
  const postgres = postgresOfSuite();

  function opened(options: PostgresStoresOptions = {}): Stores {
    const stores = postgresStoresOn(postgres.server, { timeoutMs: 20_000, ...options });
    onTestFinished(() => stores.close());
    return stores;
  }

  test.each([
    ["of two million characters", "x".repeat(2_000_000)],
    ["with NUL", "before\0after \\u0000"],
    ["with half a surrogate pair", "half \ud83d of a pair"],
    ["with text that looks like JSON and SQL", `'; DROP TABLE trees; -- {"a":"\\`],
  ])("a message %s is stored, announced and read as it was", async (_what, content) => {
    const schema = ownSchema();
    const [mine, theirs] = [opened({ schema }), opened({ schema })];
    const owner = await openAgent(mine);
    await owner.commit({ entries: [note(content)], messages: [{ ...messageOf("m1"), content }] });
    expect(await theirs.messages(agentKey())).toMatchObject([{ content }]);
    const entries = (await theirs.readJournal(agentKey(), 1)).flatMap((row) => row.entries);
    expect(entries).toContainEqual(expect.objectContaining({ message: content }));
  });

  test("limits of the server's own for statements and idle transactions do not apply to the stores", async () => {
    const role = ownSchema();
    await postgres.server.query(`CREATE ROLE "${role}" LOGIN; CREATE SCHEMA "${role}" AUTHORIZATION "${role}"`);
    await postgres.server.query(`ALTER ROLE "${role}" SET statement_timeout = '2s'`);
    await postgres.server.query(`ALTER ROLE "${role}" SET default_transaction_isolation = 'serializable'`);
    const url = postgres.server.url.replace("troupe@", `${role}@`);
    const stores = opened({ url: `${url}?application_name=${role}`, schema: role, maxConnections: 1 });
    const owner = await openAgent(stores);
    const client = await postgres.server.client();
    await client.query("BEGIN");
    await client.query(`SELECT 1 FROM "${role}".trees FOR UPDATE`);
    const commit = owner.commit({ entries: [note("waits for the lock")] });
    await client.query("SELECT pg_sleep(3)");
    await client.query("COMMIT");
    await client.end();
    await commit;
    expect((await stores.readJournal(agentKey(), 1)).flatMap((row) => row.entries)).toContainEqual(
      expect.objectContaining({ message: "waits for the lock" }),
    );
  });

  test("no free connection on the server is waited for, and reported with what to do", async () => {
    const server = await PostgresServer.start({
      settings: { max_connections: "5", superuser_reserved_connections: "0" },
    });
    onTestFinished(() => server.stop());
    const stores = postgresStoresOn(server, { timeoutMs: 1_500, maxConnections: 1 });
    onTestFinished(() => stores.close());
    const others = await Promise.all(Array.from({ length: 5 }, () => server.client()));
    const failure = await stores.createAgent(identityOf("desk"), null).catch((error: unknown) => error);
    expect(String(failure)).toMatch(
      /53300: it has too many connections; lower maxConnections or raise max_connections/,
    );
    await others[0]?.end();
    await others[1]?.end();
    expect(await stores.createAgent(identityOf("desk"), null)).toMatchObject({ created: true });
    await Promise.all(others.slice(2).map((client) => client.end()));
  });

  test("TLS is used with a certificate that is trusted, and refused with another one", async () => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-tls-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const [key, certificate] = [join(folder, "server.key"), join(folder, "server.crt")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
    execFileSync(
      "openssl",
      ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", certificate, ...subject],
      { stdio: "ignore" },
    );
    if (process.getuid?.() === 0) for (const path of [folder, key, certificate]) chownSync(path, 65_534, 65_534);
    const settings = { ssl: "on", ssl_cert_file: certificate, ssl_key_file: key };
    const server = await PostgresServer.start({ settings });
    onTestFinished(() => server.stop());
    const at = (parameters: string): Stores => {
      const url = `${server.url.replace("127.0.0.1", "localhost")}?${parameters}`;
      const stores = postgresStoresOn(server, { url, timeoutMs: 20_000 });
      onTestFinished(() => stores.close());
      return stores;
    };
    const trusted = at(`sslmode=verify-full&sslrootcert=${encodeURIComponent(certificate)}&application_name=trusted`);
    expect(await trusted.createAgent(identityOf("desk"), null)).toMatchObject({ created: true });
    expect(
      await server.query(
        "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'trusted'",
      ),
    ).toEqual([{ ssl: true }]);
    const failure = await at("sslmode=verify-full")
      .createAgent(identityOf("desk"), null)
      .catch((error: unknown) => error);
    expect(String(failure)).toMatch(/its certificate is not trusted; name its CA with sslrootcert in the url/);
  });
});
