import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "pg";
import type { ChannelListener } from "../rules/published-live.ts";
import type { StoresConnection } from "./stores-connection.ts";
import { queryOf, type Statement } from "../../postgres/index.ts";

const RETRY_MS = 500;
/** How often the connection is checked with a notification to itself, in milliseconds. */
const PROBE_MS = 5_000;
/** How often polled channels are told to look for themselves while nothing can be received, in milliseconds. */
const POLL_MS = 1_000;
/** Longest text of one notification in bytes, without its header; Postgres refuses 8,000. */
const LONGEST_PIECE = 7_800;
/** Longer messages are not sent, in bytes. */
const LONGEST_MESSAGE = 4_000_000;

const notifyStatement: Statement = {
  name: "troupe notify",
  text: `SELECT pg_notify($1::text, payload)
    FROM unnest($2::text[]) WITH ORDINALITY AS p (payload, place) ORDER BY place`,
};

interface Channel {
  readonly listener: ChannelListener;
  /** Whether it is told that it was interrupted, again and again, while nothing can be received. */
  readonly isPolled: boolean;
  /** The pieces of the message that is arriving. */
  pieces: { readonly id: string; readonly texts: string[] } | undefined;
}

/**
 * All subscriptions of this process, on one connection, with one listener for each channel.
 * Owns: the connection, which is opened for the first channel and closed after the last one. Does not own: the meaning of messages.
 *
 * Invariants
 * 1. A channel counts as subscribed once a notification that was sent after `LISTEN` has come back: behind a proxy that shares
 *    connections, `LISTEN` succeeds and nothing ever arrives.
 * 2. Messages of this process are sent in the order of the calls; longer ones in pieces that arrive together.
 */
export class PostgresSubscriber {
  readonly #connection: StoresConnection;
  readonly #probe: string;
  readonly #channels = new Map<string, Channel>();
  #client: Client | undefined;
  #running: Promise<void> | undefined;
  #ended = new AbortController();
  #messages = 0;
  #probes = Promise.withResolvers<void>();
  #polling: NodeJS.Timeout | undefined;
  #isPolling = false;
  /** Settles when nothing is being sent. */
  #sending: Promise<unknown> = Promise.resolve();

  constructor(connection: StoresConnection) {
    this.#connection = connection;
    this.#probe = `${connection.channel}:p:${randomUUID().replaceAll("-", "")}`;
  }

  subscribe(name: string, listener: ChannelListener, { isPolled = false } = {}): () => void {
    const channel: Channel = { listener, isPolled, pieces: undefined };
    this.#channels.set(name, channel);
    if (this.#client) void this.#listen(this.#client, [name]).catch(() => undefined);
    this.#running ??= this.#run();
    return () => {
      if (this.#channels.get(name) !== channel) return;
      this.#channels.delete(name);
      if (this.#channels.size === 0) void this.#stop();
      else if (this.#client) this.#query(this.#client, { name: "", text: `UNLISTEN "${name}"` }).catch(() => undefined);
    };
  }

  /** Rejects if nothing can be sent now. */
  async publish(name: string, text: string): Promise<void> {
    if (!this.#client) throw new Error("the stores do not listen");
    const bytes = Buffer.from(text);
    if (bytes.length > LONGEST_MESSAGE) throw new Error("the message is too long");
    this.#messages += 1;
    const pieces = piecesOf(text, bytes.length);
    const payloads = pieces.map((piece, at) => `${this.#messages}:${at + 1}:${pieces.length} ${piece}`);
    await this.#query(this.#client, notifyStatement, [name, payloads]);
  }

  async close(): Promise<void> {
    this.#channels.clear();
    await this.#stop();
  }

  /** Keeps a connection until the last channel is gone. */
  async #run(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      this.#poll(true);
      try {
        const client = await this.#connection.another();
        if (signal.aborted) {
          await client.end();
          break;
        }
        await this.#use(client, signal);
      } catch {
        // The next attempt follows.
      }
      if (!signal.aborted) await delay(RETRY_MS, undefined, { ref: false, signal }).catch(() => undefined);
    }
    this.#poll(false);
  }

  /** Receives until the connection breaks. */
  async #use(client: Client, signal: AbortSignal): Promise<void> {
    const lost = Promise.withResolvers<void>();
    client.on("end", () => lost.resolve());
    client.on("error", () => lost.resolve());
    signal.addEventListener("abort", () => lost.resolve(), { once: true });
    client.on("notification", ({ channel, payload = "" }) => this.#receive(channel, payload));
    try {
      this.#client = client;
      const listening = this.#query(client, { name: "", text: `LISTEN "${this.#probe}"` }).then(async () => {
        await this.#listen(client, [...this.#channels.keys()]);
        this.#poll(false);
      });
      await Promise.race([listening, lost.promise, delay(PROBE_MS, undefined, { ref: false })]);
      for (let isUsable = true; isUsable; ) {
        await Promise.race([delay(PROBE_MS, undefined, { ref: false, signal }).catch(() => undefined), lost.promise]);
        isUsable = await Promise.race([
          this.#sendProbe(client).then(
            () => true,
            () => false,
          ),
          lost.promise.then(() => false),
          delay(PROBE_MS, false, { ref: false }),
        ]);
      }
    } finally {
      this.#client = undefined;
      for (const channel of this.#channels.values()) channel.pieces = undefined;
      client.end().catch(() => undefined);
    }
  }

  async #listen(client: Client, names: readonly string[]): Promise<void> {
    for (const name of names) await this.#query(client, { name: "", text: `LISTEN "${name}"` });
    await this.#sendProbe(client);
    for (const name of names) this.#channels.get(name)?.listener.onSubscribed();
  }

  /** Resolves when a notification has come back. */
  async #sendProbe(client: Client): Promise<void> {
    const arrived = this.#probes.promise;
    await this.#query(client, { name: "", text: "SELECT pg_notify($1::text, '')" }, [this.#probe]);
    await arrived;
  }

  #receive(name: string, payload: string): void {
    if (name === this.#probe) {
      this.#probes.resolve();
      this.#probes = Promise.withResolvers<void>();
      return;
    }
    const channel = this.#channels.get(name);
    if (!channel) return;
    try {
      const text = assembled(channel, payload);
      if (text !== undefined) channel.listener.onMessage(text);
    } catch (error) {
      // Any client that may notify can have sent the message. An error thrown here would end the process.
      process.emitWarning(`a message on ${name} could not be read: ${String(error)}`);
    }
  }

  #poll(isOn: boolean): void {
    clearInterval(this.#polling);
    this.#polling = undefined;
    if (!isOn) return;
    this.#polling = setInterval(() => void this.#look(), POLL_MS);
    this.#polling.unref();
  }

  async #look(): Promise<void> {
    const polled = [...this.#channels.values()].filter(({ isPolled }) => isPolled);
    if (this.#isPolling || polled.length === 0) return;
    this.#isPolling = true;
    try {
      await this.#connection.reach();
      // Meanwhile the channels may have been subscribed.
      if (!this.#polling) return;
      for (const { listener } of polled) listener.onSubscribed();
    } catch {
      // Without a server there is nothing to find.
    } finally {
      this.#isPolling = false;
    }
  }

  /** Sends one statement after the other, because a client of `pg` takes only one at a time. */
  async #query(client: Client, statement: Statement, values: readonly unknown[] = []): Promise<void> {
    const before = this.#sending;
    const sent = (async () => {
      await before;
      await queryOf(client)(statement, values);
    })();
    this.#sending = sent.catch(() => undefined);
    await sent;
  }

  async #stop(): Promise<void> {
    this.#ended.abort();
    // A connection that is being made ends by itself.
    const running = this.#client ? this.#running : undefined;
    this.#running = undefined;
    this.#ended = new AbortController();
    await running;
  }
}

/** Splits a text without splitting characters. */
function piecesOf(text: string, bytes: number): string[] {
  if (bytes <= LONGEST_PIECE) return [text];
  const pieces: string[] = [];
  let piece = "";
  let size = 0;
  for (const character of text) {
    const more = Buffer.byteLength(character);
    if (size + more > LONGEST_PIECE) {
      pieces.push(piece);
      piece = "";
      size = 0;
    }
    piece += character;
    size += more;
  }
  return [...pieces, piece];
}

/** The message, once all of its pieces have arrived. A text without a header is a complete message. */
function assembled(channel: Channel, payload: string): string | undefined {
  const [header, id = "", at = "", count = ""] = /^(\d+):(\d+):(\d+) /.exec(payload) ?? [];
  if (header === undefined) return payload;
  const text = payload.slice(header.length);
  if (count === "1") return text;
  if (at === "1") channel.pieces = { id, texts: [] };
  const { pieces } = channel;
  if (pieces?.id !== id || pieces.texts.length !== Number(at) - 1) return undefined;
  pieces.texts.push(text);
  if (at !== count) return undefined;
  channel.pieces = undefined;
  return pieces.texts.join("");
}
