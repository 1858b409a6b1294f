import { setMaxListeners } from "node:events";
import type { Readable, Writable } from "node:stream";
import { setImmediate as nextEventLoopTurn } from "node:timers/promises";
import {
  clockRule,
  functionRule,
  listRule,
  nameRule,
  optionsOf,
  optionsRule,
  portRule,
  systemClock,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Runtime } from "../runtime/index.ts";
import { areShared } from "../stores/index.ts";
import { Caller } from "./core/caller.ts";
import { limitsAtWork, limitsOptionsSchema } from "./core/limits.ts";
import { TurnAdmission } from "./core/turn-admission.ts";
import type { Listening, ListenOptions } from "./listen.ts";
import type { ServeOptions } from "./serve-options.ts";
import { type RuntimeServer, serveRuntime } from "./serve-runtime.ts";
import type { CallSide } from "./mcp/agent-calls.ts";
import { type McpSurfaceOptions, mcpSurface, surfaceOptionsInstead, surfaceOptionsRules } from "./mcp/mcp-surface.ts";
import { protocolServer } from "./mcp/protocol-server.ts";
import { loadServerSdk } from "./mcp/sdk.ts";
import { ServedTools } from "./mcp/served-tools.ts";
import { HOW_TO_MAKE_A_KEY, stateKeyOf } from "./mcp/state-key.ts";

/** Options of `serveMcp()`. */
export interface ServeMcpOptions
  extends McpSurfaceOptions,
    Pick<ServeOptions, "cors" | "hosts" | "tenant" | "limits" | "clock" | "onLog"> {
  /** Authenticates requests over HTTP, as for `serveRuntime()`. Default: none, only `stdio()` can be used. */
  readonly authenticate?: ServeOptions["authenticate"] | undefined;
}

/** Options of `stdio()`. */
export interface McpStdioOptions {
  /** The owner of the client's turns, and their actor. Default `local`. */
  readonly actor?: string | undefined;
  /** Credentials for tools, passed as `auth.credentials`. Default: none. */
  readonly credentials?: unknown;
  /** The client's messages. Default: standard input. */
  readonly input?: Readable | undefined;
  /** Messages to the client; nothing else may be written to it. Default: standard output. */
  readonly output?: Writable | undefined;
}

/** A client that is connected over a pair of streams. */
export interface McpStdio {
  /** Resolves when the client has closed its stream, or after `close()`. */
  readonly closed: Promise<void>;
  /**
   * Answers waiting calls with the state of their turns and closes the connection. The turns continue in the runtime.
   */
  close(): Promise<void>;
}

/** Agents that are served as tools. */
export interface McpServing extends Pick<RuntimeServer, "fetch" | "close"> {
  /** Listens on a port; the endpoint is at `/mcp`. Rejects with `InvalidInputError` without `authenticate`. */
  listen(options?: ListenOptions): Promise<Listening>;
  /** Serves one client over standard input and output, or over other streams. */
  stdio(options?: McpStdioOptions): McpStdio;
}

const stdioRules = {
  rules: {
    actor: nameRule,
    credentials: (value: unknown) => value,
    input: portRule("a readable stream", ["on", "pipe"]),
    output: portRule("a writable stream", ["on", "write"]),
  },
  instead: { owner: "actor", ownerId: "actor", actorId: "actor", stdin: "input", stdout: "output" },
} as const;

/**
 * Serves agents of a runtime as tools of an MCP server, over HTTP and over stdio. Rejects with `UnsupportedError` if the
 * package `@modelcontextprotocol/server` is not installed, and with `InvalidInputError` for invalid options, for an agent
 * that the runtime does not have, and without `stateKey` for stores that several processes share.
 */
export async function serveMcp(runtime: Runtime, given: ServeMcpOptions = {}): Promise<McpServing> {
  const options = optionsOf<ServeMcpOptions>(given, "serveMcp()", {
    rules: {
      ...surfaceOptionsRules,
      authenticate: functionRule,
      cors: listRule("a list of origins", nameRule),
      hosts: listRule("a list of hosts", nameRule),
      tenant: nameRule,
      limits: optionsRule(limitsOptionsSchema),
      clock: clockRule,
      onLog: functionRule,
    },
    instead: { ...surfaceOptionsInstead, auth: "authenticate" },
  });
  const { authenticate, cors, hosts, tenant, limits, clock = systemClock, onLog, ...served } = options;
  if (served.stateKey === undefined && areShared(runtime.stores)) {
    throw new InvalidInputError(
      `serveMcp(): several processes may serve the agents of these stores; give all of them the same stateKey, for instance from ${HOW_TO_MAKE_A_KEY}`,
    );
  }
  // One key for both ways, so that an answer may come over the other one.
  const shared = { ...served, stateKey: stateKeyOf(served.stateKey) };
  assertKnown(runtime, shared.agents);
  const tools = new ServedTools(await loadServerSdk(), shared);
  const http =
    authenticate &&
    serveRuntime(runtime, {
      authenticate,
      cors,
      hosts,
      tenant,
      limits,
      clock,
      onLog,
      surfaces: [await mcpSurface(shared)],
    });
  const connections = new Set<McpStdio>();
  const needHttp = (): RuntimeServer => {
    if (http !== undefined) return http;
    throw new InvalidInputError("serveMcp(): HTTP needs authenticate, for instance tokenAuth() of troupe/server");
  };
  const admission = new TurnAdmission(limitsAtWork(limits));
  return {
    fetch: async (request, env) => await needHttp().fetch(request, env),
    listen: async (how) => await needHttp().listen(how),
    stdio: (how) => {
      const stdio = optionsOf<McpStdioOptions>(how, "stdio()", stdioRules);
      const identity = { userId: stdio.actor ?? "local", scopes: [], credentials: stdio.credentials };
      const admitTurn = (): Promise<() => void> => admission.admit(runtime, identity);
      const caller = new Caller(identity, { runtime, clock, deniesStrangers: false, admitTurn });
      const connection = connect(tools, { caller, clock, streams: stdio });
      connections.add(connection);
      void connection.closed.then(() => connections.delete(connection));
      return connection;
    },
    close: async (how) => {
      await Promise.all([...connections].map((connection) => connection.close()));
      await http?.close(how);
    },
  };
}

function assertKnown(runtime: Runtime, served: ServeMcpOptions["agents"]): void {
  for (const one of served ?? []) {
    const { name } = "definition" in one ? one.definition : one;
    if (runtime.definitions.has(name)) continue;
    throw new InvalidInputError(
      `serveMcp(): the runtime has no agent "${name}"; give it to createRuntime({ agents }). It has ${[...runtime.definitions.keys()].join(", ")}`,
    );
  }
}

interface Connected extends Pick<CallSide, "caller" | "clock"> {
  readonly streams: McpStdioOptions;
}

function connect(tools: ServedTools, { caller, clock, streams }: Connected): McpStdio {
  const { input = process.stdin, output = process.stdout } = streams;
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);
  const within: CallSide["within"] = async (work, ms) => {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const over = (): void => resolve(undefined);
    const cancel = clock.setDelay(ms, over);
    if (closing.signal.aborted) over();
    closing.signal.addEventListener("abort", over, { once: true });
    try {
      return await Promise.race([work.then((value) => ({ value })), promise]);
    } finally {
      cancel();
      closing.signal.removeEventListener("abort", over);
    }
  };
  const open = new Set<Promise<unknown>>();
  const track = (work: Promise<unknown>): void => {
    open.add(work);
    void work.finally(() => open.delete(work));
  };
  const side: CallSide = { caller, clock, lossCancels: false, within, track };
  const { stdio } = tools.sdk;
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const end = (): void => {
    closing.abort();
    resolve();
  };
  for (const event of ["end", "close", "error"]) input.once(event, end);
  output.once("error", end);
  const handle = stdio.serveStdio(() => protocolServer(caller, () => side, tools.settings(caller.runtime)), {
    transport: new stdio.StdioServerTransport(input, output),
  });
  return {
    closed,
    async close() {
      closing.abort();
      await Promise.all(open);
      // The protocol's server writes the results before the next turn of the event loop.
      await nextEventLoopTurn();
      await handle.close();
      resolve();
    },
  };
}
