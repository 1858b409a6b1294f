import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { createRuntime } from "../../src/index.ts";
import { inspectorRoutes } from "../../src/inspector/index.ts";
import { busyTeam } from "./feed-fixtures.ts";
import { knock, visit } from "./visitors.ts";

/** A custom server with the inspector mounted below a path. */
async function mounted() {
  const runtime = await createRuntime({ agents: [busyTeam(1)] });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  await agent.executeTurn("go").result;
  let host = "";
  const hosts = (): readonly string[] => [host, "desk.internal:8443"];
  const routes = inspectorRoutes(runtime, { hosts, decide: true, basePath: "/inspector" });
  const server = createServer((request, response) => {
    if (routes.owns(request.url)) routes.handle(request, response);
    else response.end("Mine.");
  });
  server.on("upgrade", routes.upgrade);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    routes.close();
    server.close();
  });
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { host, origin: `http://${host}`, act: routes.tokens.act ?? "" };
}

it("a mounted inspector answers only under its host names, and only to pages of the requested host", async () => {
  const { host, origin, act } = await mounted();
  const ask = async (headers: Record<string, string>) => {
    const bearer = { authorization: `Bearer ${act}` };
    const protocols = { "sec-websocket-protocol": `troupe.feed.v1, bearer.${act}` };
    const acting = { ...headers, ...bearer, "content-type": "application/json" };
    const answers = [
      await visit(`${origin}/inspector/api/runs`, { ...headers, ...bearer }),
      await visit(`${origin}/inspector/api/agents/desk/pause`, acting, "POST"),
      await knock(`ws://${host}/inspector/feed`, { ...headers, ...protocols }),
    ];
    return answers.map(({ status, body }) => [status, status >= 400 ? body : "…"]);
  };
  const refused = [
    [403, ""],
    [403, ""],
    [403, ""],
  ];
  for (const headers of [
    { host: "evil.example" },
    { host: "desk.internal" },
    { host: "127.0.0.1" },
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: "http://desk.internal:8443" },
    { host: "desk.internal:8443", origin },
  ]) {
    expect([headers, await ask(headers)]).toEqual([headers, refused]);
  }
  for (const headers of [{}, { origin }, { host: "DESK.internal:8443", origin: "https://desk.internal:8443" }]) {
    const [read, paused, socket] = await ask(headers);
    expect([headers, read?.[0], socket?.[0]]).toEqual([headers, 200, 101]);
    // An empty body is invalid JSON; a client that receives this answer was admitted and may act.
    expect(paused?.[0]).toBe(400);
  }
});

it("the page of a mounted inspector also needs a valid host name, and the rest of the server is not affected", async () => {
  const { host, origin } = await mounted();
  for (const path of ["/inspector/", "/inspector/assets/app.js"]) {
    expect([path, (await visit(origin + path)).status]).toEqual([path, 200]);
    const foreign = await visit(origin + path, { host: "evil.example" });
    expect([path, foreign.status, foreign.body]).toEqual([path, 403, ""]);
  }
  for (const path of ["/", "/inspector", "/inspectors/api/runs", "/api/runs", "/assets/app.js"]) {
    expect([path, (await visit(origin + path, { host: "evil.example" })).body]).toEqual([path, "Mine."]);
  }
  expect((await knock(`ws://${host}/feed`)).status).toBe(401);
});
