// The handler beside the routes of a Hono app.
import { Hono } from "hono";
import { createRuntime, defineAgent, offlineModel } from "troupe";
import { apiSurface, serveRuntime, tokenAuth } from "troupe/server";

const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model: offlineModel() })] });
const token = "a-token-for-ada-alone";
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: { [token]: { userId: "ada", scopes: [] } } }),
  surfaces: [apiSurface()],
});

const app = new Hono();
app.get("/", (context) => context.text("the app's own page"));
app.all("/api/*", (context) => server.fetch(context.req.raw));

const answers = [
  await app.request("/"),
  await app.request("/api/definitions", { headers: { authorization: `Bearer ${token}` } }),
];
for (const answer of answers) console.log(answer.status, await answer.text());
await server.close();
await runtime.shutdown();
