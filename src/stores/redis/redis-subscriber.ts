import { setTimeout as delay } from "node:timers/promises";
import type { RedisClient } from "../../redis/index.ts";
import type { RedisConnection } from "./redis-connection.ts";

const RETRY_MS = 500;
/** How often all subscriptions are made anew: the client of a cluster does not say when it has lost some. */
const RENEW_MS = 5_000;

export interface ChannelListener {
  onMessage(text: string): void;
  /** The channel is heard: for the first time, or after a time in which it may not have been. */
  onHeard(): void;
}

/**
 * What this process hears from Redis, all on one connection, each channel for one listener.
 * Owns: the connection, made for the first channel and given back with the last. Does not own: what messages mean.
 */
export class RedisSubscriber {
  readonly #connection: RedisConnection;
  readonly #channels = new Map<string, ChannelListener>();
  #client: Promise<RedisClient> | undefined;
  #renewal: NodeJS.Timeout | undefined;

  constructor(connection: RedisConnection) {
    this.#connection = connection;
  }

  hear(channel: string, listener: ChannelListener): () => void {
    this.#channels.set(channel, listener);
    void this.#subscribe([channel]);
    return () => {
      if (this.#channels.get(channel) !== listener) return;
      this.#channels.delete(channel);
      if (this.#channels.size === 0) void this.#disconnect();
      else this.#client?.then((client) => client.unsubscribe(channel)).catch(() => undefined);
    };
  }

  async close(): Promise<void> {
    this.#channels.clear();
    await this.#disconnect();
  }

  /** Until it succeeds, or nobody wants the channels any more. */
  async #subscribe(wanted: readonly string[]): Promise<void> {
    for (;;) {
      const channels = wanted.filter((channel) => this.#channels.has(channel));
      if (channels.length === 0) return;
      try {
        this.#client ??= this.#connect();
        const client = await this.#client;
        await readiness(client);
        await client.subscribe(...channels);
        for (const channel of channels) this.#channels.get(channel)?.onHeard();
        return;
      } catch {
        await delay(RETRY_MS, undefined, { ref: false });
      }
    }
  }

  async #connect(): Promise<RedisClient> {
    const client = await this.#connection.another().catch((error: unknown) => {
      this.#client = undefined;
      throw error;
    });
    client.on("message", (channel: string, text: string) => this.#channels.get(channel)?.onMessage(text));
    let isNew = true;
    client.on("ready", () => {
      // The first time whoever wants a channel subscribes to it.
      if (!isNew) void this.#subscribe([...this.#channels.keys()]);
      isNew = false;
    });
    this.#renewal = setInterval(() => this.#renew(client), RENEW_MS);
    this.#renewal.unref();
    return client;
  }

  #renew(client: RedisClient): void {
    if (this.#channels.size > 0 && client.status === "ready") {
      client.subscribe(...this.#channels.keys()).catch(() => undefined);
    }
  }

  async #disconnect(): Promise<void> {
    clearInterval(this.#renewal);
    const client = this.#client;
    this.#client = undefined;
    (await client?.catch(() => undefined))?.disconnect();
  }
}

/** Resolves when the client is ready, and at the latest after a pause: what cannot be sent then is tried again. */
async function readiness(client: RedisClient): Promise<void> {
  if (client.status === "ready") return;
  const { promise, resolve } = Promise.withResolvers<void>();
  client.once("ready", resolve);
  if (client.status === "wait" || client.status === "end") client.connect().catch(() => undefined);
  await Promise.race([promise, delay(RETRY_MS, undefined, { ref: false })]);
  client.off("ready", resolve);
}
