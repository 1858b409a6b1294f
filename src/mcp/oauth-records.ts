import { createHash, timingSafeEqual } from "node:crypto";
import type {
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { z } from "zod";
import { CorruptRecordError, InvalidInputError, TroupeError } from "../errors/index.ts";
import { McpServerError } from "./mcp-server-error.ts";
import type { McpTokenKey, McpTokenStore } from "./mcp-token-store.ts";

// What is kept in the user's token store, as JSON.

/** The tokens of an actor, with the client that got them. */
export interface TokensRecord {
  readonly tokens: StoredOAuthTokens;
  readonly client: StoredOAuthClientInformation;
  /** The scopes that were requested for them, separated by spaces. */
  readonly scope?: string | undefined;
}

/** A login that has begun. */
export interface FlowRecord {
  readonly state: string;
  readonly codeVerifier: string;
  /** Address of the login page. */
  readonly url: string;
  /** The requested scopes, separated by spaces. */
  readonly scope?: string | undefined;
  readonly client: StoredOAuthClientInformation;
  readonly discovery: OAuthDiscoveryState;
  /** Milliseconds since the epoch. */
  readonly begunAt: number;
}

const text = z.string().min(1);
const issuer = z.string().optional();
const clientSchema = z.looseObject({ client_id: text, client_secret: z.string().optional(), issuer });
const tokensSchema = z.looseObject({
  access_token: text,
  token_type: text,
  refresh_token: text.optional(),
  scope: z.string().optional(),
  issuer,
});
const schemas = {
  client: clientSchema,
  tokens: z.object({ tokens: tokensSchema, client: clientSchema, scope: z.string().optional() }),
  flow: z.object({
    state: text,
    codeVerifier: text,
    url: text,
    scope: z.string().optional(),
    client: clientSchema,
    discovery: z.looseObject({ authorizationServerUrl: text }),
    begunAt: z.number(),
  }),
};

interface Records {
  readonly client: StoredOAuthClientInformation;
  readonly tokens: TokensRecord;
  readonly flow: FlowRecord;
}

/** The items of one actor in the user's token store. Values are checked when they are read. */
export class OAuthRecords {
  readonly #store: McpTokenStore;
  readonly #server: string;
  readonly #actorId: string | null;

  constructor(store: McpTokenStore, server: string, actorId: string | null) {
    this.#store = store;
    this.#server = server;
    this.#actorId = actorId;
  }

  /** Rejects with `CorruptRecordError`, whose message does not contain the value. */
  async get<Item extends keyof Records>(item: Item): Promise<Records[Item] | undefined> {
    const value: unknown = await this.#asking("get", async () => await this.#store.get(this.#keyOf(item)));
    if (value === undefined) return undefined;
    const read = schemas[item].safeParse(jsonOf(value));
    if (read.success) return read.data as unknown as Records[Item];
    throw new CorruptRecordError(
      `the token store returned an invalid value for the ${item} of ${this.#server}; delete it to log in again`,
    );
  }

  async set<Item extends keyof Records>(item: Item, value: Records[Item]): Promise<void> {
    await this.#asking("set", async () => await this.#store.set(this.#keyOf(item), JSON.stringify(value)));
  }

  async delete(item: keyof Records): Promise<void> {
    await this.#asking("delete", async () => await this.#store.delete(this.#keyOf(item)));
  }

  /** Errors of the user's store may contain the value, so their texts are left out. */
  async #asking<T>(method: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof TroupeError) throw error;
      const kind = error instanceof Error ? error.name : "no error";
      throw new McpServerError(`${method}() of the token store failed (${kind})`);
    }
  }

  /** Runs work on the actor's items while no other such work runs: in this process, and with `lock` of the store in any. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    const store = this.#store;
    const key = this.#keyOf("tokens");
    return await inTurn(store, JSON.stringify(key), async () => {
      if (store.lock === undefined) return await work();
      const results: T[] = [];
      await store.lock(key, async () => void results.push(await work()));
      if (results.length === 1) return results[0] as T;
      throw new InvalidInputError(`the lock of the token store ran its work ${results.length} times; expected once`);
    });
  }

  #keyOf(item: keyof Records): McpTokenKey {
    // One registration is for all actors.
    return { server: this.#server, actorId: item === "client" ? null : this.#actorId, item };
  }
}

function jsonOf(value: unknown): unknown {
  try {
    return typeof value === "string" ? JSON.parse(value) : undefined;
  } catch {
    return undefined;
  }
}

/** The last work for each key, by store: several `mcp()` may share a store. */
const queues = new WeakMap<McpTokenStore, Map<string, Promise<void>>>();

async function inTurn<T>(store: McpTokenStore, key: string, work: () => Promise<T>): Promise<T> {
  const queue = queues.get(store) ?? new Map<string, Promise<void>>();
  queues.set(store, queue);
  const working = (queue.get(key) ?? Promise.resolve()).then(work);
  const ended = working.then(
    () => undefined,
    () => undefined,
  );
  queue.set(key, ended);
  try {
    return await working;
  } finally {
    if (queue.get(key) === ended) queue.delete(key);
  }
}

/** Compares two texts in a time that does not depend on where they differ. */
export function isSameSecret(one: string, other: string): boolean {
  return timingSafeEqual(digestOf(one), digestOf(other));
}

function digestOf(value: string): Buffer {
  return createHash("sha256").update(value).digest();
}
