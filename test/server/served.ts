import { createRuntime, defineAgent, type Runtime, type RuntimeOptions } from "troupe";
import {
  type Call,
  type Identity,
  type LogLine,
  type Route,
  route,
  type RuntimesByTenant,
  type RuntimeServer,
  serveRuntime,
  type ServeOptions,
  type Surface,
  tokenAuth,
} from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { onTestFinished } from "vitest";

export const tokens = { ann: "token-of-ann-000001", bob: "token-of-bob-000001", eve: "token-of-eve-000001" } as const;
export type User = keyof typeof tokens;

/** Ann and Bob are in one tenant, Eve in another. */
export const identities: Readonly<Record<string, Identity>> = {
  [tokens.ann]: { userId: "ann", scopes: [] },
  [tokens.bob]: { userId: "bob", scopes: [] },
  [tokens.eve]: { userId: "ann", tenant: "elsewhere", scopes: [] },
};

/** A runtime that is shut down after the test. */
export async function runtimeOf(options: Partial<RuntimeOptions> = {}): Promise<Runtime> {
  const desk = defineAgent({ name: "desk", model: scriptedModel(() => ({ text: "done" })) });
  const runtime = await createRuntime({ agents: [desk], ...options });
  onTestFinished(() => runtime.shutdown());
  return runtime;
}

export interface Asked extends Omit<RequestInit, "headers" | "body"> {
  readonly as?: User | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sent as JSON. */
  readonly body?: unknown;
}

export interface Served {
  readonly server: RuntimeServer;
  readonly lines: readonly LogLine[];
  /** Sends a request to the fetch handler, without a socket; by default as Ann. */
  readonly ask: (path: string, asked?: Asked) => Promise<Response>;
}

/** A server over a runtime; it is closed after the test. */
export function serve(runtime: Runtime | RuntimesByTenant, options: Partial<ServeOptions> = {}): Served {
  const lines: LogLine[] = [];
  const authenticate = tokenAuth({ tokens: identities });
  const server = serveRuntime(runtime, { authenticate, surfaces: [], onLog: (line) => lines.push(line), ...options });
  onTestFinished(() => server.close());
  return { server, lines, ask: (path, asked) => server.fetch(requestOf(path, asked)) };
}

export function requestOf(path: string, { as = "ann", headers, body, ...init }: Asked = {}): Request {
  const json =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  return new Request(`http://127.0.0.1${path}`, {
    ...init,
    ...json,
    headers: { authorization: `Bearer ${tokens[as]}`, ...json.headers, ...headers },
  });
}

/** The connection information of Node's adapter for this address. */
export function from(remoteAddress: string): unknown {
  return { incoming: { socket: { remoteAddress } } };
}

/** A surface with these routes and plain errors. */
export function surfaceOf(...routes: readonly Route[]): Surface {
  return {
    name: "test",
    paths: ["/test"],
    routes,
    failure: ({ status, code, message }) => Response.json({ code, message }, { status }),
  };
}

/** A route for callers at `/test/…`. */
export function routeAt(
  path: string,
  handle: (call: Call) => Response | Promise<Response>,
  more: Partial<Route> = {},
): Route {
  const shape = { id: path, method: "GET", access: "caller", summary: "A test", responses: {} } as const;
  return route({ ...shape, path: `/test/${path}`, ...more, handle: handle as never });
}
