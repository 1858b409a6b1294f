// A Next.js route handler: the exports of `app/troupe/[...path]/route.ts`. Next passes full paths, so the server must know
// its base path. Next evaluates this module for each bundle and after each change, in one process: getRuntime() returns the
// same runtime to all of them, and a new one when `version` changes.
import { createRuntime, defineAgent, getRuntime, offlineModel } from "troupe";
import { apiSurface, serveRuntime, tokenAuth } from "troupe/server";

const clerk = defineAgent({ name: "clerk", model: offlineModel() });
const team = await getRuntime("team", () => createRuntime({ agents: [clerk] }), { version: clerk.ref.hash });
const token = "a-token-for-ada-alone";
const server = serveRuntime(team, {
  authenticate: tokenAuth({ tokens: { [token]: { userId: "ada", scopes: [] } } }),
  surfaces: [apiSurface()],
  basePath: "/troupe",
});

export const dynamic = "force-dynamic";
export const runtime = "nodejs";
export { handler as DELETE, handler as GET, handler as OPTIONS, handler as POST };

function handler(request: Request): Promise<Response> {
  return server.fetch(request);
}

// Calls the handler as Next does.
const headers = { authorization: `Bearer ${token}` };
const answer = await handler(new Request("https://app.example/troupe/api/definitions", { headers }));
console.log(answer.status, await answer.text());
await server.close();
await team.shutdown();
