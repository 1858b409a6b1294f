// Next evaluates this module for each bundle and after each change, in one process. getRuntime() returns the same runtime
// to all of them, and a new one when the agent has changed.
import { mkdirSync } from "node:fs";
import { createRuntime, getRuntime } from "troupe";
import { apiSurface, serveRuntime, tokenAuth } from "troupe/server";
import { sqliteStores } from "troupe/stores/sqlite";
import { agent } from "../../../src/agent.ts";
import { serveToken } from "../../../src/token.ts";

async function start() {
  mkdirSync(".troupe", { recursive: true });
  return await createRuntime({ agents: [agent], stores: sqliteStores(".troupe/server.db") });
}

// Started by the first request, not by `next build`, which evaluates this module too.
let server: Promise<ReturnType<typeof serveRuntime>> | undefined;

async function serverOfTeam() {
  const team = await getRuntime("team", start, { version: agent.ref.hash });
  return serveRuntime(team, {
    authenticate: tokenAuth({ tokens: { [serveToken()]: { userId: "me", scopes: [] } } }),
    surfaces: [apiSurface()],
    basePath: "/troupe",
  });
}

async function handler(request: Request): Promise<Response> {
  server ??= serverOfTeam();
  return await (await server).fetch(request);
}

export const dynamic = "force-dynamic";
export const runtime = "nodejs";
export { handler as DELETE, handler as GET, handler as OPTIONS, handler as POST };
