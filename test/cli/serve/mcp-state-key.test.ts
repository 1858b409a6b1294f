import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { redisSharing } from "../../../src/server/index.ts";
import { redisProgram, RedisServer } from "../../support/redis-server.ts";
import { mcpStateKey } from "../../../src/cli/serve/mcp-state-key.ts";

function storeFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-state-key-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "a.db");
}

test("all processes with a store get the same key, which only its owner can read", async () => {
  const file = storeFile();
  const keys = await Promise.all(Array.from({ length: 20 }, () => mcpStateKey({ file }, undefined)));
  expect([new Set(keys).size, Buffer.from(keys[0] ?? "", "base64").length]).toEqual([1, 32]);
  expect(await mcpStateKey({ file }, undefined)).toBe(keys[0]);
  expect(statSync(`${file}.mcp-key`).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(file, ".."))).toEqual(["a.db.mcp-key"]);
});

test.skipIf(!redisProgram)(
  "all processes with a Redis get the same key, and those of another prefix another one",
  async () => {
    const server = await RedisServer.start({ isLogged: false });
    onTestFinished(() => server.stop());
    const keyOf = async (prefix: string): Promise<string> => {
      const sharing = await redisSharing({ url: server.url, prefix });
      onTestFinished(() => sharing.close());
      return await mcpStateKey({ file: undefined }, sharing);
    };
    const keys = await Promise.all(Array.from({ length: 10 }, () => keyOf("one:")));
    expect([new Set(keys).size, Buffer.from(keys[0] ?? "", "base64").length]).toEqual([1, 32]);
    expect(await keyOf("two:")).not.toBe(keys[0]);
  },
);

test("stores in memory get a key of their own", async () => {
  const keys = await Promise.all([
    mcpStateKey({ file: undefined }, undefined),
    mcpStateKey({ file: undefined }, undefined),
  ]);
  expect(new Set(keys).size).toBe(2);
});

test("a file without a key, and a folder that cannot be written, are named", async () => {
  const file = storeFile();
  writeFileSync(`${file}.mcp-key`, "short\n");
  await expect(mcpStateKey({ file }, undefined)).rejects.toThrow(/a\.db\.mcp-key contains no key.*delete it/);
  const missing = join(file, "..", "missing", "b.db");
  await expect(mcpStateKey({ file: missing }, undefined)).rejects.toThrow(/b\.db\.mcp-key.*--store/);
});
