/**
 * Writes what this version stores of a team that has one of everything, for `test/fixtures`: later versions have to read it. The
 * fixtures of a version that is released are not written again.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { memoryStores } from "troupe";
import { redisStores } from "troupe/stores/redis";
import { sqliteStores } from "troupe/stores/sqlite";
import { playTeam } from "../test/support/fixture-team.ts";
import { exportedTrees, fixtureFolder } from "../test/support/fixture-files.ts";
import { dumpOf } from "../test/support/redis-dump.ts";
import { RedisServer } from "../test/support/redis-server.ts";

async function writeSqlite(file: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-fixtures-"));
  const path = join(folder, "team.db");
  await playTeam(sqliteStores(path));
  const database = new DatabaseSync(path);
  // Nothing of the machine that writes it.
  database.exec("UPDATE processes SET pid = 1, boot_id = 'fixture', start_time = NULL");
  const copy = join(folder, "copy.db");
  database.exec(`VACUUM INTO '${copy}'`);
  database.close();
  writeFileSync(file, gzipSync(readFileSync(copy)));
  rmSync(folder, { recursive: true });
}

async function writeRedis(file: string): Promise<void> {
  const server = await RedisServer.start();
  await playTeam(redisStores({ url: server.url, prefix: "" }));
  const dump = await dumpOf(server.client(), "");
  // Nothing of the machine that writes it.
  writeFileSync(file, dump.replace(/(\\"bootId\\":\\")[^\\]*/g, "$1fixture"));
}

async function writeTrees(file: string): Promise<void> {
  const stores = memoryStores();
  await playTeam(stores);
  writeFileSync(file, gzipSync(JSON.stringify(await exportedTrees(stores))));
}

mkdirSync(fixtureFolder, { recursive: true });
await writeSqlite(join(fixtureFolder, "team.db.gz"));
await writeRedis(join(fixtureFolder, "redis.jsonl"));
await writeTrees(join(fixtureFolder, "trees.json.gz"));
process.stdout.write(`${fixtureFolder}\n`);
// The work in flight of the teams never ends.
process.exit(0);
