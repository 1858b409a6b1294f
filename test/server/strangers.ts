import { createRuntime, type Runtime } from "troupe";
import { type RuntimeServer, serveRuntime, type ServeOptions, tokenAuth } from "troupe/server";
import { tokens } from "./served.ts";

/** Tokens of callers for whom Ann's data does not exist. */
export const strangers: Readonly<Record<string, string | null>> = {
  "another user": tokens.bob,
  "the same user of another tenant": tokens.eve,
  nobody: null,
  "an unknown token": "token-of-none-0001",
};

export interface Ask {
  /** Default: POST. */
  readonly method?: string | undefined;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The answer, byte for byte. */
export interface Told {
  readonly status: number;
  readonly text: string;
}

/** A server with the same agents for two tenants. */
export interface TwoTenants {
  readonly runtimes: Readonly<Record<"default" | "elsewhere", Runtime>>;
  ask(ask: Ask, token: string | null): Promise<Told>;
  close(): Promise<void>;
}

/** Ann and Bob are in one tenant; Eve has Ann's name in the other. */
export async function serveTwoTenants(
  agents: NonNullable<Parameters<typeof createRuntime>[0]>["agents"],
  options: Pick<ServeOptions, "surfaces" | "webhooks">,
): Promise<TwoTenants> {
  const runtimes = {
    default: await createRuntime({ agents }),
    elsewhere: await createRuntime({ agents, tenant: "elsewhere" }),
  };
  const server: RuntimeServer = serveRuntime(runtimes, {
    ...options,
    authenticate: tokenAuth({
      tokens: {
        [tokens.ann]: { userId: "ann", tenant: "default", scopes: [] },
        [tokens.bob]: { userId: "bob", tenant: "default", scopes: [] },
        [tokens.eve]: { userId: "ann", tenant: "elsewhere", scopes: [] },
      },
    }),
  });
  return {
    runtimes,
    ask: async ({ method = "POST", path, body, headers = {} }, token) => {
      const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
      const json = body === undefined ? {} : { "content-type": "application/json" };
      const request = new Request(`http://127.0.0.1${path}`, {
        method,
        headers: { ...json, ...authorization, ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const response = await server.fetch(request);
      return { status: response.status, text: await response.text() };
    },
    close: async () => {
      await server.close();
      await Promise.all(Object.values(runtimes).map((runtime) => runtime.shutdown()));
    },
  };
}
