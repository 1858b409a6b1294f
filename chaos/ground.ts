import { join } from "node:path";
import type { RedisServer, RedisServerOptions } from "../test/support/redis-server.ts";
import type { ChaosOptions, StoreKind } from "./scenario.ts";
import { redisPlace } from "./stores-at.ts";

/** Where the stores of a scenario's rounds are. */
export interface Ground {
  readonly kind: StoreKind;
  /** A place for stores that no other test shares; the same name gives the same place. */
  placeOf(name: string): string;
}

/** Runs something on files of its folder, or on a Redis of its own, as it is asked for. */
export async function withGround<Found>(
  { folder, stores = "sqlite" }: Pick<ChaosOptions, "folder" | "stores">,
  run: (ground: Ground) => Promise<Found>,
): Promise<Found> {
  if (stores !== "redis") return await run({ kind: stores, placeOf: (name) => join(folder, `${name}.db`) });
  return await withRedis({}, ({ url }) => run({ kind: stores, placeOf: (name) => redisPlace(url, `${name}:`) }));
}

/** Runs something with a `redis-server` of its own, which by default has every write in its log before it answers. */
export async function withRedis<Found>(
  options: RedisServerOptions,
  run: (server: RedisServer) => Promise<Found>,
): Promise<Found> {
  const { RedisServer } = await import("../test/support/redis-server.ts");
  const server = await RedisServer.start(options);
  try {
    return await run(server);
  } finally {
    await server.stop();
  }
}

/** Whether this machine has a `redis-server`, or can get one. Where not, standard error says what to do. */
export async function hasRedis(): Promise<boolean> {
  return (await import("../test/support/redis-server.ts")).redisProgram !== undefined;
}
