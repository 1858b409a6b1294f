import { defineAgent } from "../../agents/index.ts";
import { createRuntime } from "../../runtime/index.ts";
import { serveRuntime } from "../../server/index.ts";
import type { JsonObject } from "../../state/index.ts";
import { memoryStores } from "../../stores/index.ts";

/** The document that every server has at `/api/openapi.json`. It is the same for all agents. */
export async function openApiDocument(): Promise<JsonObject> {
  const agent = defineAgent({ name: "any", model: "offline" });
  const runtime = await createRuntime({ agents: [agent], stores: memoryStores() });
  try {
    // The document is public.
    const server = serveRuntime(runtime, { authenticate: () => Promise.resolve(null) });
    const response = await server.fetch(new Request("http://127.0.0.1/api/openapi.json"));
    return (await response.json()) as JsonObject;
  } finally {
    await runtime.shutdown();
  }
}
