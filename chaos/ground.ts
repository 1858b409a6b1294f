import { join } from "node:path";
import type { PostgresServer } from "../test/support/postgres-server.ts";
import type { RedisServer, RedisServerOptions } from "../test/support/redis-server.ts";
import type { ChaosOptions, StoreKind } from "./scenario.ts";
import { postgresPlace, redisPlace } from "./stores-at.ts";

/** The storage of a scenario's rounds. */
export interface Ground {
  readonly kind: StoreKind;
  /** A store location that no other test shares. The same name returns the same location. */
  locationOf(name: string): string;
}

/** Runs a function on files in the folder or, if requested, on its own Redis or Postgres. */
export async function withGround<Found>(
  { folder, stores = "sqlite" }: Pick<ChaosOptions, "folder" | "stores">,
  run: (ground: Ground) => Promise<Found>,
): Promise<Found> {
  if (stores === "postgres") {
    return await withPostgres(({ url }) => run({ kind: stores, locationOf: (name) => postgresPlace(url, name) }));
  }
  if (stores !== "redis") return await run({ kind: stores, locationOf: (name) => join(folder, `${name}.db`) });
  return await withRedis({}, ({ url }) => run({ kind: stores, locationOf: (name) => redisPlace(url, `${name}:`) }));
}

/** Runs a function with its own `redis-server`, which by default logs every write before it answers. */
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

/** Runs a function with its own Postgres, which syncs every write before it answers. */
export async function withPostgres<Found>(run: (server: PostgresServer) => Promise<Found>): Promise<Found> {
  const { PostgresServer } = await import("../test/support/postgres-server.ts");
  const server = await PostgresServer.start();
  try {
    return await run(server);
  } finally {
    await server.stop();
  }
}

/** Whether this machine has or can install a `redis-server`. If not, prints what to do to standard error. */
export async function hasRedis(): Promise<boolean> {
  return (await import("../test/support/redis-server.ts")).redisProgram !== undefined;
}
