// The handler beside the routes of an Express app. Mount it before any body parser, which would consume the body.
import type { AddressInfo } from "node:net";
import express from "express";
import { createRuntime, defineAgent, offlineModel } from "troupe";
import { apiSurface, nodeListener, serveRuntime, tokenAuth } from "troupe/server";

const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model: offlineModel() })] });
const token = "a-token-for-ada-alone";
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: { [token]: { userId: "ada", scopes: [] } } }),
  surfaces: [apiSurface()],
});

const app = express();
// Use a pattern instead of `app.use("/api", …)`, which would strip "/api" from the path.
app.all(/^\/api\//, nodeListener(server));
app.use(express.json());
app.get("/", (_, response) => void response.send("the app's own page"));

const listening = app.listen(0, "127.0.0.1");
await new Promise((resolve) => listening.once("listening", resolve));
const url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
const answers = [
  await fetch(url),
  await fetch(`${url}/api/agents`, { method: "POST", headers, body: JSON.stringify({ definition: "clerk" }) }),
];
for (const answer of answers) console.log(answer.status, answer.headers.get("content-type"));
await server.close();
listening.close();
await runtime.shutdown();
