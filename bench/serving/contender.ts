import { createRuntime } from "../../src/index.ts";
import { serveRuntime, tokenAuth } from "../../src/server/index.ts";
import type { Contender } from "../contender.ts";
import { agentOf } from "../ours/agents.ts";
import { openStores, type StoreKind } from "../ours/open-stores.ts";
import { bearer, token } from "./wire.ts";
import type { BenchWire, Post } from "./wires.ts";

const MANY = 1_000_000_000;

/** A client and a server in this process, connected over HTTP. */
export function servedOn(kind: StoreKind, wire: BenchWire, fetching: typeof fetch = fetch): Contender {
  return {
    name: `${kind}, ${wire.name}`,
    prepare: async (scenario, baseUrl) => {
      const { stores, remove } = await openStores(kind);
      const definition = agentOf(scenario, baseUrl);
      const runtime = await createRuntime({ agents: [definition], stores });
      const server = serveRuntime(runtime, {
        authenticate: tokenAuth({ tokens: { [token]: { userId: "bench", scopes: [] } } }),
        surfaces: [await wire.surface(definition)],
        limits: { requestsPerMinute: MANY, turnsPerMinute: MANY },
      });
      const { url } = await server.listen();
      const post: Post = async (path, body, headers = {}) => {
        const response = await fetching(url + path, {
          method: "POST",
          headers: { authorization: bearer, "content-type": "application/json", ...headers },
          body: JSON.stringify(body),
        });
        if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`);
        return response;
      };
      return {
        open: async () => ({ turn: await wire.open(post) }),
        close: async () => {
          await server.close();
          await runtime.shutdown();
          await remove();
        },
      };
    },
  };
}
