import type { Cluster, Redis } from "ioredis";
import { UnsupportedError } from "../errors/index.ts";
import type { RedisClient, RedisPlace } from "./redis-place.ts";

/** A prompt connection refuses what it cannot send now; a patient one keeps it until it can, which is what queue workers need. */
export type Manner = "prompt" | "patient";

export interface ConnectOptions {
  readonly place: RedisPlace;
  /** For making a connection, and of a prompt one for each command; in milliseconds. */
  readonly timeoutMs: number;
  readonly manner: Manner;
  /** What needs the package `ioredis`, as the error says where it is not there: "Redis stores need". */
  readonly needing: string;
}

/** A connection of our own. It connects when it is told to, a patient one at once, and again whenever it has broken. */
export async function connect({ place, timeoutMs, manner, needing }: ConnectOptions): Promise<RedisClient> {
  const { Cluster, Redis } = await loaded(needing);
  const ofNodes = nodeSettings(manner, timeoutMs);
  const ofClient = manner === "prompt" ? ({ lazyConnect: true, enableOfflineQueue: false } as const) : {};
  const ofServer = { ...ofNodes, ...ofClient, retryStrategy: reconnectDelay };
  const ofCluster = {
    ...ofClient,
    keyPrefix: "",
    scaleReads: "master",
    slotsRefreshTimeout: timeoutMs,
    clusterRetryStrategy: reconnectDelay,
  } as const;
  let client: RedisClient;
  if ("url" in place) client = new Redis(place.url, ofServer);
  else if ("nodes" in place) {
    const { redisOptions, ...others } = place.options;
    client = new Cluster([...place.nodes], {
      ...others,
      ...ofCluster,
      redisOptions: { ...redisOptions, ...ofNodes, replyMapping: "legacy" },
    });
  } else if ("slots" in place.client) {
    client = place.client.duplicate([], { ...ofCluster, redisOptions: ofNodes });
  } else client = place.client.duplicate(ofServer);
  // What goes wrong is told to those whose commands it stops.
  client.on("error", () => undefined);
  return client;
}

/** Ends a connection for good, whatever it does at the moment; commands that wait in it fail. */
export function letGo(client: RedisClient, disconnect: () => void = () => client.disconnect()): void {
  // Between two attempts to connect there is nothing to break off, and the client would never say that it has ended.
  if (client.status === "reconnecting") client.connect().catch(() => undefined);
  disconnect();
}

/** What a prompt connection cannot answer it refuses at once: waiting and trying again is done in one place, by `RedisLink`. */
function nodeSettings(manner: Manner, timeoutMs: number) {
  const common = {
    protocol: 2,
    keyPrefix: "",
    connectTimeout: timeoutMs,
    disconnectTimeout: Math.min(timeoutMs, 500),
  } as const;
  if (manner === "patient") return { ...common, maxRetriesPerRequest: null };
  return {
    ...common,
    autoResendUnfulfilledCommands: false,
    // Whoever listens subscribes again: the client's own attempt rejects unheard when the connection breaks once more.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    socketTimeout: timeoutMs,
  };
}

/** Short, so that work goes on soon after Redis does. */
function reconnectDelay(attempt: number): number {
  return Math.min(20 * attempt, 500);
}

async function loaded(needing: string): Promise<{ readonly Cluster: typeof Cluster; readonly Redis: typeof Redis }> {
  try {
    return await import("ioredis");
  } catch (error) {
    throw new UnsupportedError(`${needing} the package "ioredis": npm install ioredis`, { cause: error });
  }
}
