import type { Redis } from "ioredis";
import { InvalidInputError, UnsupportedError } from "../errors/index.ts";
import type { RedisClient } from "./redis-location.ts";

const OLDEST = [6, 2] as const;

/** The fields of a server's INFO reply; `undefined` if the server refuses the command. */
export interface ServerFacts {
  readonly server: Redis;
  readonly facts: ReadonlyMap<string, string> | undefined;
}

interface CheckOptions {
  /** The caller's name in errors: "the stores". */
  readonly user: string;
  /** What eviction would destroy: "journals and budgets". */
  readonly atStake: string;
}

/**
 * Checks whether the servers are fit for use.
 * Throws `UnsupportedError` for a Redis before 6.2, and `InvalidInputError` for one that evicts data when its memory is
 * full, for a database that does not exist, and for a node of a cluster that was given as a single server.
 */
export async function checkServers(client: RedisClient, options: CheckOptions): Promise<ServerFacts[]> {
  const isCluster = "nodes" in client;
  const servers = isCluster ? client.nodes("master") : [client];
  return await Promise.all(servers.map((server) => checkServer(server, isCluster, options)));
}

async function checkServer(server: Redis, isCluster: boolean, options: CheckOptions): Promise<ServerFacts> {
  await checkDatabase(server);
  const facts = await factsOf(server);
  checkVersion(facts?.get("redis_version"), options.user);
  if (!isCluster && facts?.get("cluster_enabled") === "1") {
    throw new InvalidInputError(
      "this Redis is a node of a cluster; pass cluster: { nodes } instead of url (on the command line, several nodes separated by commas)",
    );
  }
  const policy = facts?.get("maxmemory_policy");
  if (policy !== undefined && policy !== "noeviction") {
    throw new InvalidInputError(
      `with maxmemory-policy ${policy}, Redis may evict ${options.atStake}; set maxmemory-policy noeviction`,
    );
  }
  return { server, facts };
}

/** If the database does not exist, the client silently uses another one. */
async function checkDatabase(server: Redis): Promise<void> {
  const { db = 0 } = server.options;
  if (db !== 0) await server.select(db);
}

async function factsOf(server: Redis): Promise<ReadonlyMap<string, string> | undefined> {
  const text = await unlessRefused(server.info());
  if (text === undefined) return undefined;
  return new Map([...text.matchAll(/^([a-z_0-9]+):(.*?)\r?$/gm)].map(([, name = "", value = ""]) => [name, value]));
}

/** The answer, or `undefined` if Redis refuses the command: some managed servers disable commands for all users. */
export async function unlessRefused<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Error && /^(NOPERM|ERR unknown command)/i.test(error.message)) return undefined;
    throw error;
  }
}

function checkVersion(version: string | undefined, user: string): void {
  const [major = 0, minor = 0] = (version ?? "").split(".").map(Number);
  if (version === undefined || major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  throw new UnsupportedError(`this Redis has version ${version}; ${user} need ${OLDEST.join(".")} or later`);
}
