import type { Redis } from "ioredis";

/** The commands and bytes that a server received from all clients while a piece of work ran. */
export interface RedisWork {
  /** Names of the commands, in order, without those inside of scripts. */
  readonly commands: readonly string[];
  readonly bytesIn: number;
  readonly bytesOut: number;
}

export async function workOf(client: Redis, work: () => Promise<unknown>): Promise<RedisWork> {
  const before = await bytesOf(client);
  const commands: string[] = [];
  const monitor = await client.monitor();
  const seen = Promise.withResolvers<void>();
  monitor.on("monitor", (_time: string, [name = "", text]: readonly string[], source: string) => {
    if (name.toLowerCase() === "echo" && text === LAST) seen.resolve();
    else if (source !== "lua") commands.push(name.toLowerCase());
  });
  await work();
  const after = await bytesOf(client);
  await client.echo(LAST);
  await seen.promise;
  monitor.disconnect();
  const own = new Set(["info", "monitor", "hello", "client"]);
  return {
    commands: commands.filter((name) => !own.has(name)),
    bytesIn: after.bytesIn - before.bytesIn,
    bytesOut: after.bytesOut - before.bytesOut,
  };
}

export async function commandsOf(client: Redis, work: () => Promise<unknown>): Promise<number> {
  return (await workOf(client, work)).commands.length;
}

const LAST = "that was all";

async function bytesOf(client: Redis): Promise<{ readonly bytesIn: number; readonly bytesOut: number }> {
  const stats = await client.info("stats");
  const of = (name: string): number => Number(new RegExp(`${name}:(\\d+)`).exec(stats)?.[1]);
  return { bytesIn: of("total_net_input_bytes"), bytesOut: of("total_net_output_bytes") };
}
