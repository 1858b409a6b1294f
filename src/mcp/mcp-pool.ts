import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/client";
import { combineSignals } from "../base/index.ts";
import { ToolNotStartedError } from "../errors/index.ts";
import { createSlots, type ReleaseSlot, type Slots } from "../tools/index.ts";
import {
  type ConnectionHooks,
  McpConnection,
  type ConnectionSource,
  type McpCall,
  type OpenConnection,
} from "./mcp-connection.ts";
import type { ListedTool } from "./listed-tool.ts";
import { wordsOf } from "./mcp-errors.ts";
import { toolListOf } from "./mcp-lists.ts";
import { McpServerError } from "./mcp-server-error.ts";
import type { McpOptions, McpOwner } from "./mcp-options.ts";
import type { McpSdk } from "./mcp-sdk.ts";
import type { McpSecrets } from "./mcp-secrets.ts";
import { StartBackoff } from "./start-backoff.ts";

/** The owner of requests that belong to no turn, for instance of `mcp()` itself. */
export const NO_OWNER: McpOwner = Object.freeze({ actorId: null });

interface Pooled {
  readonly connection: McpConnection;
  readonly release: ReleaseSlot;
  /** Number of requests that use it. */
  uses: number;
  idle: NodeJS.Timeout | undefined;
}

const IDLE_MS = 300_000;
const MOST_CONNECTIONS = 32;
/** Owners whose failed starts are remembered. */
const MOST_BACKOFFS = 1_000;

/**
 * The connections to one server, one per owner. Owns: which owner has a connection, and how long. Invariants:
 * 1. An owner has at most one connection, and no request of another owner uses it.
 * 2. At most `maxConnections` are open; an owner without one waits, first come, first served, until another one is idle.
 * 3. A connection is closed when it was not used for `idleMs`, when the last holder has released the pool, and by `close()`.
 */
export class McpPool {
  readonly #source: ConnectionSource;
  /** Of those that are idle, the one that is idle longest is the first. */
  readonly #pooled = new Map<string | null, Pooled>();
  readonly #slots: Slots;
  readonly #idleMs: number;
  readonly #backoffs = new Map<string | null, StartBackoff>();
  readonly #holders = new Set<symbol>();
  /** Connections that are being closed. */
  readonly #ending = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(given: {
    readonly sdk: McpSdk;
    readonly options: McpOptions;
    readonly secrets: McpSecrets;
    readonly hooks: ConnectionHooks;
    /** Whether the server is known to use the older protocol. Default false. */
    readonly isLegacy?: boolean | undefined;
  }) {
    const { isLegacy = false, ...shared } = given;
    this.#source = { ...shared, server: { isLegacy, isSse: false } };
    const { idleMs = IDLE_MS, maxConnections = MOST_CONNECTIONS } = given.options;
    this.#idleMs = idleMs;
    this.#slots = createSlots(maxConnections);
  }

  /** Sends requests over the connection of an owner; see `McpConnection.use`. */
  async use<T>(owner: McpOwner, signal: AbortSignal, work: (connection: OpenConnection) => Promise<T>): Promise<T> {
    const pooled = await this.#take(owner, signal);
    try {
      return await pooled.connection.use(signal, work);
    } finally {
      this.#giveBack(pooled);
    }
  }

  /** Calls a tool over the connection of an owner; see `McpConnection.call`. */
  async call(owner: McpOwner, call: McpCall): Promise<CallToolResult | InputRequiredResult> {
    const pooled = await this.#takeFor(owner, call.signal);
    try {
      return await pooled.connection.call(call);
    } finally {
      this.#giveBack(pooled);
    }
  }

  /** Rejects with `ToolNotStartedError` if the tool must not be called over the connection; `call` asks that itself. */
  async verify(connection: OpenConnection, call: Pick<McpCall, "tool" | "signal">): Promise<void> {
    await this.#source.hooks.verify?.(connection, call);
  }

  /** All tools that the server lists for an owner; entries without a usable name are left out. */
  async listTools(owner: McpOwner, signal: AbortSignal): Promise<ListedTool[]> {
    return await this.use(owner, signal, async ({ client }) => await toolListOf(client, signal));
  }

  /**
   * Keeps the connections until the returned function is called; they are closed when the last holder has released them. A later request
   * opens new ones.
   */
  readonly hold = (): (() => Promise<void>) => {
    const holder = Symbol("holder");
    this.#holders.add(holder);
    return async () => {
      if (!this.#holders.delete(holder) || this.#holders.size > 0) return;
      await this.#closeAll();
    };
  };

  /** Closes all connections for ever: later requests are not sent. */
  async close(): Promise<void> {
    this.#closing.abort(new McpServerError("the connection was closed by close()"));
    await this.#closeAll();
  }

  /** As `#take`; every error means that the call was not sent. */
  async #takeFor(owner: McpOwner, signal: AbortSignal): Promise<Pooled> {
    try {
      return await this.#take(owner, signal);
    } catch (error) {
      const { name } = this.#source.options;
      const words = this.#closing.signal.aborted
        ? wordsOf(error)
        : `all ${this.#slots.taken} connections were in use until the call was ended; maxConnections allows more`;
      throw new ToolNotStartedError(`The MCP server "${name}" did not run the tool: ${words}`);
    }
  }

  async #take({ actorId }: McpOwner, signal: AbortSignal): Promise<Pooled> {
    for (;;) {
      const known = this.#pooled.get(actorId);
      if (known) {
        clearTimeout(known.idle);
        known.uses += 1;
        return known;
      }
      if (this.#slots.taken >= (this.#source.options.maxConnections ?? MOST_CONNECTIONS)) this.#closeOldestIdle();
      const release = await this.#slot(signal);
      if (this.#pooled.has(actorId)) {
        release();
        continue;
      }
      const owner = Object.freeze({ actorId });
      const connection = new McpConnection(this.#source, owner, this.#backoffOf(owner));
      this.#pooled.set(actorId, { connection, release, uses: 0, idle: undefined });
    }
  }

  async #slot(signal: AbortSignal): Promise<ReleaseSlot> {
    const either = combineSignals([signal, this.#closing.signal]);
    try {
      return await this.#slots.acquire(either.signal);
    } finally {
      either.dispose();
    }
  }

  #giveBack(pooled: Pooled): void {
    pooled.uses -= 1;
    const { actorId } = pooled.connection.owner;
    if (pooled.uses > 0 || this.#pooled.get(actorId) !== pooled) return;
    this.#pooled.delete(actorId);
    this.#pooled.set(actorId, pooled);
    if (this.#slots.waiting > 0) this.#close(pooled);
    else pooled.idle = setTimeout(() => this.#close(pooled), this.#idleMs).unref();
  }

  #closeOldestIdle(): void {
    const oldest = [...this.#pooled.values()].find(({ uses }) => uses === 0);
    if (oldest) this.#close(oldest);
  }

  #close({ connection, release, idle }: Pooled): void {
    clearTimeout(idle);
    this.#pooled.delete(connection.owner.actorId);
    const ending = connection.close().finally(() => {
      release();
      this.#ending.delete(ending);
    });
    this.#ending.add(ending);
  }

  async #closeAll(): Promise<void> {
    for (const pooled of this.#pooled.values()) this.#close(pooled);
    await Promise.all(this.#ending);
  }

  /** A program fails for all owners alike; a server over HTTP may refuse one owner only. */
  #backoffOf({ actorId }: McpOwner): StartBackoff {
    const key = this.#source.options.url === undefined ? null : actorId;
    const known = this.#backoffs.get(key);
    if (known) return known;
    if (this.#backoffs.size >= MOST_BACKOFFS) this.#forgetBackoffs();
    const backoff = new StartBackoff();
    this.#backoffs.set(key, backoff);
    return backoff;
  }

  #forgetBackoffs(): void {
    for (const [key, backoff] of this.#backoffs) if (backoff.isClear) this.#backoffs.delete(key);
    for (const key of this.#backoffs.keys()) {
      if (this.#backoffs.size < MOST_BACKOFFS) return;
      this.#backoffs.delete(key);
    }
  }
}
