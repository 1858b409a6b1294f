import { Hono } from "hono";
import { createRuntime, type Stores } from "troupe";
import { apiSurface, serveRuntime, tokenAuth } from "troupe/server";
import { agent } from "./agent.ts";

/** The app and its runtime. `token`: what callers send as `authorization: Bearer TOKEN`. */
export async function createApp({ stores, token }: { stores: Stores; token: string }) {
  const runtime = await createRuntime({ agents: [agent], stores });
  const server = serveRuntime(runtime, {
    authenticate: tokenAuth({ tokens: { [token]: { userId: "me", scopes: [] } } }),
    surfaces: [apiSurface()],
  });
  const app = new Hono();
  app.get("/", (context) => context.text("The agents are at /api."));
  app.all("/api/*", (context) => server.fetch(context.req.raw));
  const close = async () => {
    await server.close();
    await runtime.shutdown();
  };
  return { app, close };
}
