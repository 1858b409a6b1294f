import type { Redis } from "ioredis";

/** A key with its value, without the prefix: one line of a dump. */
type DumpedKey = { readonly key: string } & (
  | { readonly string: string }
  | { readonly hash: Readonly<Record<string, string>> }
  | { readonly list: readonly string[] }
  | { readonly set: readonly string[] }
  | { readonly zset: readonly (readonly [member: string, score: string])[] }
  | { readonly stream: readonly (readonly [id: string, fields: readonly string[]])[] }
);

/** All keys under a prefix as lines of JSON, sorted by key. Without times of expiry. */
export async function dumpOf(client: Redis, prefix: string): Promise<string> {
  const keys = (await client.keys(`${prefix}*`)).toSorted();
  const lines: string[] = [];
  for (const key of keys) lines.push(JSON.stringify(await dumped(client, key, key.slice(prefix.length))));
  return `${lines.join("\n")}\n`;
}

/** Writes the keys of a dump under a prefix. */
export async function restoreDump(client: Redis, prefix: string, dump: string): Promise<void> {
  for (const line of dump.split("\n")) if (line !== "") await restore(client, prefix, JSON.parse(line) as DumpedKey);
}

async function dumped(client: Redis, key: string, name: string): Promise<DumpedKey> {
  const type = await client.type(key);
  if (type === "string") return { key: name, string: (await client.get(key)) ?? "" };
  if (type === "list") return { key: name, list: await client.lrange(key, 0, -1) };
  if (type === "set") return { key: name, set: (await client.smembers(key)).toSorted() };
  if (type === "stream") return { key: name, stream: await client.xrange(key, "-", "+") };
  if (type === "hash") {
    const fields = Object.entries(await client.hgetall(key)).toSorted(([one], [other]) => (one < other ? -1 : 1));
    return { key: name, hash: Object.fromEntries(fields) };
  }
  const members = await client.zrange(key, "0", "-1", "WITHSCORES");
  return {
    key: name,
    zset: members.flatMap((member, at) => (at % 2 === 0 ? [[member, members[at + 1] ?? ""] as const] : [])),
  };
}

async function restore(client: Redis, prefix: string, dump: DumpedKey): Promise<void> {
  const key = `${prefix}${dump.key}`;
  if ("string" in dump) await client.set(key, dump.string);
  else if ("hash" in dump) await client.hset(key, dump.hash);
  else if ("list" in dump) await client.rpush(key, ...dump.list);
  else if ("set" in dump) await client.sadd(key, ...dump.set);
  else if ("zset" in dump) await client.zadd(key, ...dump.zset.flatMap(([member, score]) => [score, member]));
  else for (const [id, fields] of dump.stream) await client.xadd(key, id, ...fields);
}
