import { createRuntime, type TroupeEvent } from "../../src/index.ts";
import { serveRuntime, tokenAuth } from "../../src/server/index.ts";
import { sseFrames } from "../../test/support/sse-frames.ts";
import type { Contender, Conversation } from "../contender.ts";
import { agentOf } from "../ours/agents.ts";
import { openStores, type StoreKind } from "../ours/open-stores.ts";
import { bearer, token } from "./wire.ts";

const MANY = 1_000_000_000;

/** How a client gets the result of a turn: it waits for the answer, or reads the turn's events. */
export type Way = "wait" | "stream";

/** A client and a server in this process, with HTTP between them. */
export function servedOn(kind: StoreKind, way: Way): Contender {
  return {
    name: `${kind}, ${way}`,
    prepare: async (scenario, baseUrl) => {
      const { stores, remove } = await openStores(kind);
      const runtime = await createRuntime({ agents: [agentOf(scenario, baseUrl)], stores });
      const server = serveRuntime(runtime, {
        authenticate: tokenAuth({ tokens: { [token]: { userId: "bench", scopes: [] } } }),
        limits: { requestsPerMinute: MANY, turnsPerMinute: MANY },
      });
      const { url } = await server.listen();
      return {
        open: () => openConversation(url, way),
        close: async () => {
          await server.close();
          await runtime.shutdown();
          await remove();
        },
      };
    },
  };
}

async function openConversation(url: string, way: Way): Promise<Conversation> {
  const created = await post(`${url}/api/agents`, { definition: "agent" });
  const { agentId } = (await created.json()) as { readonly agentId: string };
  const turns = `${url}/api/agents/${agentId}/turns`;
  return { turn: (input) => (way === "wait" ? waited(turns, input) : streamed(turns, input)) };
}

async function waited(turns: string, input: string): Promise<string> {
  const response = await post(turns, { input }, { prefer: "wait=30" });
  const { status, result } = (await response.json()) as { status: string; result?: { readonly text: string } };
  if (status !== "completed" || result === undefined) throw new Error(`A turn ended ${status}.`);
  return result.text;
}

/** The text is put together from its pieces, as far as they come; the answer that is stored replaces them. */
async function streamed(turns: string, input: string): Promise<string> {
  const response = await post(turns, { input }, { accept: "text/event-stream" });
  let text = "";
  for await (const { data } of sseFrames(response)) {
    const event = JSON.parse(data) as TroupeEvent;
    if (event.type === "text.delta") text += event.text;
    if (event.type === "text.snapshot") text = event.text;
    if (event.type === "turn.completed") return text;
  }
  throw new Error("The stream of a turn ended before the turn.");
}

async function post(url: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  const response = await fetch(url, {
    method: "POST",
    headers: { authorization: bearer, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url} was answered ${response.status}: ${await response.text()}`);
  return response;
}
