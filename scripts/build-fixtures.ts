/**
 * Writes the stored data of a team with one of everything into `test/fixtures`. Later versions must be able to read it.
 * Fixtures of released versions are never written again.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { memoryStores } from "troupe";
import { postgresStores } from "troupe/stores/postgres";
import { redisStores } from "troupe/stores/redis";
import { sqliteStores } from "troupe/stores/sqlite";
import { playTeam } from "../test/support/fixture-team.ts";
import { exportedTrees, fixtureFolder } from "../test/support/fixture-files.ts";
import { dumpOf as dumpOfPostgres } from "../test/support/postgres-dump.ts";
import { PostgresServer } from "../test/support/postgres-server.ts";
import { dumpOf } from "../test/support/redis-dump.ts";
import { RedisServer } from "../test/support/redis-server.ts";

async function writeSqlite(file: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-fixtures-"));
  const path = join(folder, "team.db");
  await playTeam(sqliteStores(path));
  const database = new DatabaseSync(path);
  // Remove data about the machine that writes the fixture.
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
  // Remove data about the machine that writes the fixture.
  writeFileSync(file, dump.replace(/(\\"bootId\\":\\")[^\\]*/g, "$1fixture"));
}

async function writePostgres(file: string): Promise<void> {
  const server = await PostgresServer.start();
  await playTeam(postgresStores({ url: server.url }));
  const dump = await dumpOfPostgres(server, "troupe");
  // Remove data about the machine that writes the fixture.
  writeFileSync(file, gzipSync(dump.replace(/(\\"bootId\\":\\")[^\\]*/g, "$1fixture")));
  await server.stop();
}

async function writeTrees(file: string): Promise<void> {
  const stores = memoryStores();
  await playTeam(stores);
  writeFileSync(file, gzipSync(JSON.stringify(await exportedTrees(stores))));
}

mkdirSync(fixtureFolder, { recursive: true });
await writeSqlite(join(fixtureFolder, "team.db.gz"));
await writeRedis(join(fixtureFolder, "redis.jsonl"));
await writePostgres(join(fixtureFolder, "postgres.jsonl.gz"));
await writeTrees(join(fixtureFolder, "trees.json.gz"));
process.stdout.write(`${fixtureFolder}\n`);
// The teams' work in flight never ends, so exit explicitly.
process.exit(0);
