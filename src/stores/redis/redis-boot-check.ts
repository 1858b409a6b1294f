import { checkServers, type RedisClient, type ServerFacts, unlessRefused } from "../../redis/index.ts";

/** What was warned of in this process: once is enough, however many stores are opened. */
const warned = new Set<string>();

/**
 * Looks once whether the servers are fit to hold the truth. Throws as `checkServers`; warns of one that may forget what it
 * has acknowledged, and where that cannot be seen.
 */
export async function checkDurability(client: RedisClient): Promise<void> {
  const servers = await checkServers(client, { user: "the stores", atStake: "journals and budgets" });
  for (const server of servers) {
    const doubt = await doubtOf(server);
    if (doubt !== undefined) warn(doubt);
  }
}

async function doubtOf({ server, facts }: ServerFacts): Promise<string | undefined> {
  if (!facts) {
    return "what Redis is set to could not be looked at (INFO is refused). Make sure yourself that maxmemory-policy is noeviction, and appendonly yes with appendfsync always where no acknowledged write may be lost.";
  }
  if (facts.get("aof_enabled") === "0") {
    return "Redis keeps no log of its writes (appendonly no): when it ends suddenly, everything since its last snapshot is lost, also what was acknowledged. Set appendonly yes and appendfsync always.";
  }
  const sync = await settingOf(server, "appendfsync");
  if (sync === "always") return undefined;
  if (sync === undefined) {
    return "whether Redis syncs every write could not be looked at (CONFIG is refused). Without appendfsync always a sudden end can lose about the last second of acknowledged writes.";
  }
  const lost = sync === "everysec" ? "about the last second" : "what the system has not written yet";
  return `Redis does not sync every write (appendfsync is ${sync}): a sudden end can lose ${lost} of acknowledged writes. Set appendfsync always where none may be lost.`;
}

async function settingOf(server: ServerFacts["server"], name: string): Promise<string | undefined> {
  const answer = await unlessRefused(server.config("GET", name));
  const value: unknown = Array.isArray(answer) ? answer[1] : undefined;
  return typeof value === "string" ? value : undefined;
}

function warn(message: string): void {
  if (warned.has(message)) return;
  warned.add(message);
  process.emitWarning(message, { code: "TROUPE_REDIS_DURABILITY" });
}
