import { setTimeout as delay } from "node:timers/promises";
import type { RedisClient } from "../../redis/index.ts";
import type { ChannelListener } from "../rules/published-live.ts";
import type { RedisConnection } from "./redis-connection.ts";

const RETRY_MS = 500;
/** How often to resubscribe all channels, in milliseconds: a cluster client does not report lost subscriptions. */
const RENEW_MS = 5_000;

/**
 * All subscriptions of this process, on one connection, with one listener for each channel.
 * Owns: the connection, which is opened for the first channel and closed after the last one. Does not own: the meaning of messages.
 */
export class RedisSubscriber {
  readonly #connection: RedisConnection;
  readonly #channels = new Map<string, ChannelListener>();
  #client: Promise<RedisClient> | undefined;
  #renewal: NodeJS.Timeout | undefined;

  constructor(connection: RedisConnection) {
    this.#connection = connection;
  }

  subscribe(channel: string, listener: ChannelListener): () => void {
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

  /** Retries until it succeeds or none of the channels is needed any more. */
  async #subscribe(wanted: readonly string[]): Promise<void> {
    for (;;) {
      const channels = wanted.filter((channel) => this.#channels.has(channel));
      if (channels.length === 0) return;
      try {
        this.#client ??= this.#connect();
        const client = await this.#client;
        await readiness(client);
        await client.subscribe(...channels);
        for (const channel of channels) this.#channels.get(channel)?.onSubscribed();
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
    client.on("message", (channel: string, text: string) => {
      try {
        this.#channels.get(channel)?.onMessage(text);
      } catch (error) {
        // Any client that may publish can have sent the message. An error thrown here would end the process.
        process.emitWarning(`a message on ${channel} could not be read: ${String(error)}`);
      }
    });
    let isNew = true;
    client.on("ready", () => {
      // On the first connection, each channel is subscribed by its own call.
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

/** Resolves when the client is ready, at the latest after a pause; subscribing then fails and is retried. */
async function readiness(client: RedisClient): Promise<void> {
  if (client.status === "ready") return;
  const { promise, resolve } = Promise.withResolvers<void>();
  client.once("ready", resolve);
  if (client.status === "wait" || client.status === "end") client.connect().catch(() => undefined);
  await Promise.race([promise, delay(RETRY_MS, undefined, { ref: false })]);
  client.off("ready", resolve);
}
