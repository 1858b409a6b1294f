/**
 * Writes the team of `fixture-team.ts` as it lies in Redis: `node --conditions=troupe-source test/support/write-redis-fixture.ts`. A fixture of
 * a layout that was published is never written again.
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { redisStores } from "../../src/stores/redis.ts";
import { migrations } from "../../src/stores/redis/migrations/index.ts";
import { playTeam } from "./fixture-team.ts";
import { dumpOf } from "./redis-dump.ts";
import { RedisServer } from "./redis-server.ts";

const layout = migrations.at(-1)?.number;
const path = fileURLToPath(new URL(`../fixtures/redis-layout-${layout}.jsonl`, import.meta.url));
const server = await RedisServer.start();
await playTeam(redisStores({ url: server.url, prefix: "" }));
const dump = await dumpOf(server.client(), "");
// The machine on which it was written.
writeFileSync(path, dump.replace(/(\\"bootId\\":\\")[^\\]*/g, "$1elsewhere"));
// The team's process dies here, in the middle of its work.
process.exit(0);
