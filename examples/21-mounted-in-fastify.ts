// The handler beside the routes of a Fastify app, in a separate plugin in which Fastify does not parse bodies.
import Fastify from "fastify";
import { createRuntime, defineAgent, offlineModel } from "troupe";
import { apiSurface, nodeListener, serveRuntime, tokenAuth } from "troupe/server";

const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model: offlineModel() })] });
const token = "a-token-for-ada-alone";
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: { [token]: { userId: "ada", scopes: [] } } }),
  surfaces: [apiSurface()],
});
const listener = nodeListener(server);

const app = Fastify();
app.get("/", () => "the app's own page");
await app.register(async (plugin) => {
  plugin.removeAllContentTypeParsers();
  plugin.addContentTypeParser("*", (_request, _payload, done) => done(null));
  plugin.all("/api/*", (request, reply) => {
    reply.hijack();
    void listener(request.raw, reply.raw);
  });
});

const url = await app.listen({ port: 0, host: "127.0.0.1" });
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
const answers = [
  await fetch(url),
  await fetch(`${url}/api/agents`, { method: "POST", headers, body: JSON.stringify({ definition: "clerk" }) }),
];
for (const answer of answers) console.log(answer.status, answer.headers.get("content-type"));
await server.close();
await app.close();
await runtime.shutdown();
