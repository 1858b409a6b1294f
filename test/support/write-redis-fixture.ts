/**
 * Writes the team of `fixture-team.ts` as it lies in Redis: `node --conditions=troupe-source test/support/write-redis-fixture.ts`. The
 * fixture of a version that was released is not written again.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { redisStores } from "../../src/stores/redis.ts";
import { playTeam } from "./fixture-team.ts";
import { dumpOf } from "./redis-dump.ts";
import { RedisServer } from "./redis-server.ts";

const manifest = fileURLToPath(new URL("../../package.json", import.meta.url));
const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version: string };
const path = fileURLToPath(new URL(`../fixtures/${version}/redis.jsonl`, import.meta.url));
const server = await RedisServer.start();
await playTeam(redisStores({ url: server.url, prefix: "" }));
const dump = await dumpOf(server.client(), "");
// The machine on which it was written.
mkdirSync(fileURLToPath(new URL(".", pathToFileURL(path))), { recursive: true });
writeFileSync(path, dump.replace(/(\\"bootId\\":\\")[^\\]*/g, "$1elsewhere"));
// The team's process dies here, in the middle of its work.
process.exit(0);
