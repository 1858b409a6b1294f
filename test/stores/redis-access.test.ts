import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { StoreUnavailableError } from "../../src/errors/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { type RedisStoresOptions, redisStores } from "../../src/stores/redis.ts";
import { note } from "../contracts/entry-fixtures.ts";
import { NOW } from "../contracts/names.ts";
import { agentKey, identityOf, openAgent } from "../contracts/stores-fixtures.ts";
import { freePort, RedisServer, redisProgram } from "../support/redis-server.ts";
import { listening, ownPrefix } from "../support/redis-stores.ts";
import { redisOfSuite } from "../support/redis-suite.ts";

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;

/** The operations that cover all uses of the stores. */
async function work(stores: Stores): Promise<void> {
  const owner = await openAgent(stores);
  await owner.commit({ entries: [note("one")] });
  await stores.nextTimerAt();
  expect(await stores.readAgent(agentKey())).toMatchObject({ agentId: "desk" });
}

function opened(options: RedisStoresOptions): Stores {
  const stores = redisStores(options);
  onTestFinished(() => stores.close());
  return stores;
}

async function failureOf(stores: Stores): Promise<StoreUnavailableError> {
  const failure = await stores.readAgent(agentKey()).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(StoreUnavailableError);
  expect(failure).toMatchObject({ retryable: true });
  return failure as StoreUnavailableError;
}

describe.skipIf(!redisProgram)("access to a secured Redis", () => {
  const redis = redisOfSuite();
  afterEach(() => vi.restoreAllMocks());

  test("a user with a password and only the documented rights can do everything", async () => {
    const emitWarning = vi.spyOn(process, "emitWarning").mockReturnValue();
    const rights = ["resetchannels", "~mine:*", "&mine:*", "+@all", "-@admin", "-@dangerous", "+info"];
    await redis.client.call("ACL", "SETUSER", "clerk", "on", ">p%ss word", ...rights);
    const url = `redis://clerk:${encodeURIComponent("p%ss word")}@127.0.0.1:${redis.server.port}`;
    const [mine, theirs] = [opened({ url, prefix: "mine:" }), opened({ url, prefix: "mine:" })];
    const { heard } = await listening(mine);
    await work(theirs);
    expect(emitWarning.mock.calls.map(([message]) => message)).toEqual([expect.stringMatching(/CONFIG is refused/)]);
    let count = 0;
    const writing = setInterval(() => void theirs.heartbeat("here", NOW + (count += 1)), 5);
    onTestFinished(() => clearInterval(writing));
    await theirs.pause(agentKey(), "ann", NOW);
    await theirs.resume(agentKey(), "ann", NOW);
    await heard;
    const elsewhere = await failureOf(opened({ url, prefix: "theirs:" }));
    expect(elsewhere).toMatchObject({ details: { code: "NOPERM" } });
    expect(elsewhere.message).toMatch(/NOPERM: the user may not do this/);
  });

  test("a wrong password is reported as such, and the error does not contain it", async () => {
    await redis.client.call("ACL", "SETUSER", "porter", "on", ">right", "~*", "&*", "+@all");
    for (const user of ["porter", "nobody"]) {
      const start = performance.now();
      const failure = await failureOf(opened({ url: `redis://${user}:secret-word@127.0.0.1:${redis.server.port}` }));
      expect(failure.message).toMatch(/WRONGPASS: the user or the password is wrong/);
      expect(failure.details).toEqual({ code: "WRONGPASS" });
      // Retrying would not help.
      expect(performance.now() - start).toBeLessThan(900);
      expect(JSON.stringify(failure) + failure.stack + String(failure.cause)).not.toContain("secret-word");
    }
  });

  test("the number in the URL selects the database", async () => {
    await work(opened({ url: `${redis.server.url}/3`, prefix: "third:" }));
    const third = new Redis(`${redis.server.url}/3`);
    onTestFinished(() => third.disconnect());
    expect((await third.keys("third:*")).length).toBeGreaterThan(0);
    expect(await redis.client.keys("third:*")).toEqual([]);
    const nowhere = opened({ url: `${redis.server.url}/99`, prefix: "third:" });
    await expect(nowhere.readAgent(agentKey())).rejects.toThrow(
      /this Redis has no database with the configured number/,
    );
    expect(await redis.client.keys("third:*")).toEqual([]);
  });

  test("a replica refuses writes as retryable, and accepts them once it is the master", async () => {
    const settings = ["--replicaof", "127.0.0.1", String(redis.server.port)];
    await redis.client.call("CONFIG", "SET", "repl-diskless-sync-delay", "0");
    const replica = await RedisServer.start({ settings });
    onTestFinished(() => replica.stop());
    const promoted = replica.client();
    onTestFinished(() => promoted.disconnect());
    // A replica answers late while it copies the master's data and writes its own log.
    const isReady = /aof_rewrite_in_progress:0[^]*aof_rewrite_scheduled:0[^]*master_link_status:up/;
    await expect.poll(async () => String(await promoted.call("INFO"))).toMatch(isReady);
    const stores = opened({ url: replica.url, prefix: "copy:" });
    const failure = await stores.createAgent(identityOf(), null).catch((error: unknown) => error);
    expect(failure).toMatchObject({ retryable: true, details: { code: "READONLY" } });
    expect(String(failure)).toMatch(/READONLY: it is a replica/);
    await promoted.call("REPLICAOF", "NO", "ONE");
    await work(stores);
  });

  test.each([{ stringNumbers: true }, { protocol: 3, replyMapping: "resp3" } as const])(
    "a client that is configured for another reply format works: %o",
    async (form) => {
      const client = new Redis(redis.server.port, "127.0.0.1", { ...form, lazyConnect: true });
      const stores = opened({ client, prefix: ownPrefix() });
      const owners = await Promise.all(["ann", "bea", "cleo"].map((agentId) => openAgent(stores, { agentId })));
      expect(owners.map(({ epoch }) => epoch)).toEqual([1, 1, 1]);
      await work(stores);
    },
  );

  test.skipIf(!hasOpenssl)(
    "TLS works with the certificate authority; without it, the error names the reason",
    async () => {
      const folder = mkdtempSync(join(tmpdir(), "troupe-tls-"));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
      const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
      const made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", certificate];
      execFileSync("openssl", [...made, ...subject], { stdio: "ignore" });
      const port = await freePort();
      const files = ["--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate];
      const settings = ["--tls-port", String(port), ...files, "--tls-auth-clients", "no"];
      const guarded = await RedisServer.start({ settings });
      onTestFinished(() => guarded.stop());
      const failure = await failureOf(opened({ url: `rediss://127.0.0.1:${port}` }));
      expect(failure.details).toEqual({ code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
      expect(failure.message).toMatch(/certificate/);
      const trusting = new Redis(port, "127.0.0.1", { tls: { ca: readFileSync(certificate) }, lazyConnect: true });
      await work(opened({ client: trusting }));
      const plain = await failureOf(opened({ url: `redis://127.0.0.1:${port}` }));
      expect(plain.details).toMatchObject({ code: expect.any(String) });
    },
  );
});
