import type { Redis } from "ioredis";
import { InvalidInputError, UnsupportedError } from "../errors/index.ts";
import type { RedisClient } from "./redis-options.ts";

const OLDEST = [6, 2] as const;

/** What was warned of in this process: once is enough, however many stores are opened. */
const warned = new Set<string>();

/**
 * Looks once whether the servers are fit to hold the truth.
 * Throws `UnsupportedError` for a Redis before 6.2, and `InvalidInputError` for one that throws data away when its memory
 * is full, for a database that it does not have and for a node of a cluster that is taken for a server of its own. Warns of one that may forget what it has acknowledged, and where it cannot be seen.
 */
export async function checkServers(client: RedisClient): Promise<void> {
  const isCluster = "slots" in client;
  const servers = isCluster ? client.nodes("master") : [client];
  await Promise.all(servers.map((server) => checkServer(server, isCluster)));
}

async function checkServer(server: Redis, isCluster: boolean): Promise<void> {
  await checkDatabase(server);
  const facts = await factsOf(server);
  if (!facts) {
    warn(
      "what Redis is set to could not be looked at (INFO is refused). Make sure yourself that maxmemory-policy is noeviction, and appendonly yes with appendfsync always where no acknowledged write may be lost.",
    );
    return;
  }
  checkVersion(facts.get("redis_version"));
  if (!isCluster && facts.get("cluster_enabled") === "1") {
    throw new InvalidInputError(
      "this Redis is one node of a cluster; give cluster: { nodes } in place of url (on the command line two or more of its nodes, with commas between them)",
    );
  }
  const policy = facts.get("maxmemory_policy");
  if (policy !== undefined && policy !== "noeviction") {
    throw new InvalidInputError(
      `Redis throws data away when its memory is full (maxmemory-policy is ${policy}), and with it journals and budgets; set maxmemory-policy noeviction`,
    );
  }
  if (facts.get("aof_enabled") === "0") {
    warn(
      "Redis keeps no log of its writes (appendonly no): when it ends suddenly, everything since its last snapshot is lost, also what was acknowledged. Set appendonly yes and appendfsync always.",
    );
    return;
  }
  const sync = await settingOf(server, "appendfsync");
  if (sync === "always") return;
  warn(
    sync === undefined
      ? "whether Redis syncs every write could not be looked at (CONFIG is refused). Without appendfsync always a sudden end can lose about the last second of acknowledged writes."
      : `Redis does not sync every write (appendfsync is ${sync}): a sudden end can lose ${sync === "everysec" ? "about the last second" : "what the system has not written yet"} of acknowledged writes. Set appendfsync always where none may be lost.`,
  );
}

/** The client goes on in another database than the one that it was to use, and says nothing. */
async function checkDatabase(server: Redis): Promise<void> {
  const { db = 0 } = server.options;
  if (db !== 0) await server.select(db);
}

async function factsOf(server: Redis): Promise<ReadonlyMap<string, string> | undefined> {
  const text = await unlessRefused(server.info());
  if (text === undefined) return undefined;
  return new Map([...text.matchAll(/^([a-z_0-9]+):(.*?)\r?$/gm)].map(([, name = "", value = ""]) => [name, value]));
}

async function settingOf(server: Redis, name: string): Promise<string | undefined> {
  const answer = await unlessRefused(server.config("GET", name));
  const value: unknown = Array.isArray(answer) ? answer[1] : undefined;
  return typeof value === "string" ? value : undefined;
}

/** Managed servers refuse some commands to everybody. */
async function unlessRefused<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Error && /^(NOPERM|ERR unknown command)/i.test(error.message)) return undefined;
    throw error;
  }
}

function checkVersion(version: string | undefined): void {
  const [major = 0, minor = 0] = (version ?? "").split(".").map(Number);
  if (version === undefined || major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  throw new UnsupportedError(`Redis is of version ${version}; the stores need ${OLDEST.join(".")} or later`);
}

function warn(message: string): void {
  if (warned.has(message)) return;
  warned.add(message);
  process.emitWarning(message, { code: "TROUPE_REDIS_DURABILITY" });
}
