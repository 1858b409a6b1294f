import type { JSONRPCMessage, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { Clock } from "../../base/index.ts";
import { callerKey } from "../core/call.ts";
import type { Call } from "../core/route.ts";
import type { McpServerSdk } from "./sdk.ts";

/** Sessions of one caller; above the limit, the one that was idle for the longest time is closed. */
const MOST_PER_CALLER = 20;
const MOST_SESSIONS = 5_000;
/** Milliseconds without a request before a session is closed. */
const IDLE_MS = 3_600_000;

interface Session {
  readonly id: string;
  readonly owner: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** In `clock.elapsed()`. */
  usedAt: number;
}

/** Connects a protocol's server to the transport of a new session. */
export type ConnectSession = (transport: WebStandardStreamableHTTPServerTransport, call: Call) => Promise<void>;

/**
 * Sessions of clients of the legacy era that can be asked questions: a server asks such a client by a request over the
 * connection of the call. Sessions belong to this process. A client whose session is gone gets 404 and opens another
 * one, and finds its turns by their keys and ids.
 *
 * Invariant: a session only answers its own caller.
 */
export class LegacySessions {
  readonly #sdk: McpServerSdk;
  readonly #connect: ConnectSession;
  readonly #sessions = new Map<string, Session>();

  constructor(sdk: McpServerSdk, connect: ConnectSession) {
    this.#sdk = sdk;
    this.#connect = connect;
  }

  /** Whether a message opens a session: an `initialize` of a client that can be asked. */
  opensSession(message: unknown): boolean {
    if (!this.#sdk.server.isInitializeRequest(message)) return false;
    return message.params.capabilities.elicitation !== undefined;
  }

  /** Opens a session with its `initialize`. */
  async open(call: Call): Promise<Response> {
    const owner = callerKey(call.identity);
    await this.#makeRoom(owner, call.clock);
    const transport = new this.#sdk.server.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => {
        this.#sessions.set(id, { id, owner, transport, usedAt: call.clock.elapsed() });
      },
      onsessionclosed: (id) => void this.#sessions.delete(id),
    });
    await this.#connect(transport, call);
    return await transport.handleRequest(call.request, { parsedBody: call.body });
  }

  /** Answers a request of a session; 404 if the caller has no such session. */
  async answer(id: string, call: Call): Promise<Response> {
    const session = this.#sessions.get(id);
    if (session === undefined || session.owner !== callerKey(call.identity)) return noSession();
    session.usedAt = call.clock.elapsed();
    return await session.transport.handleRequest(call.request, { parsedBody: call.body });
  }

  async #makeRoom(owner: string, clock: Clock): Promise<void> {
    const byAge = [...this.#sessions.values()].toSorted((one, other) => one.usedAt - other.usedAt);
    const late = byAge.filter(({ usedAt }) => clock.elapsed() - usedAt > IDLE_MS);
    const own = byAge.filter((session) => session.owner === owner).slice(0, -(MOST_PER_CALLER - 1));
    const oldest = byAge.slice(0, Math.max(0, byAge.length - MOST_SESSIONS + 1));
    for (const { id, transport } of new Set([...late, ...own, ...oldest])) {
      this.#sessions.delete(id);
      await transport.close();
    }
  }
}

function noSession(): Response {
  const message: JSONRPCMessage = { jsonrpc: "2.0", error: { code: -32_001, message: "Session not found" } };
  return Response.json({ ...message, id: null }, { status: 404 });
}
