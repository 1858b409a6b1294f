import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Runtime } from "../../src/index.ts";
import { type InspectorServer, startInspector } from "../../src/inspector/index.ts";
import { watched } from "./team.ts";
import { knock, visit } from "./visitors.ts";

type Started = Awaited<ReturnType<typeof startInspector>>;
let closed: Started;
let open: Started;
let runtime: Runtime;

beforeAll(async () => {
  closed = await startInspector();
  open = await startInspector({ allowStately: true });
  const team = await watched(closed);
  runtime = team.runtime;
  await team.ask();
});

afterAll(async () => {
  await runtime.shutdown();
  await closed.close();
  await open.close();
});

function portOf(server: InspectorServer): string {
  return new URL(server.url).port;
}

describe("S5: the inspector refuses a client that", () => {
  const strangers: readonly (readonly [string, (port: string) => Record<string, string>])[] = [
    ["uses a foreign host name", () => ({ host: "evil.example" })],
    ["uses a foreign host name with the right port", (port) => ({ host: `evil.example:${port}` })],
    ["uses another port", () => ({ host: "127.0.0.1:1" })],
    ["uses no port", () => ({ host: "127.0.0.1" })],
    ["uses another address of this machine", (port) => ({ host: `0.0.0.0:${port}` })],
    ["comes from a foreign page", () => ({ origin: "https://evil.example" })],
    ["comes from a page of this machine on another port", () => ({ origin: "http://127.0.0.1:1" })],
    ["comes from a page without an origin", () => ({ origin: "null" })],
    ["comes from Stately's page without the option", () => ({ origin: "https://stately.ai" })],
    ["comes from a page with a similar name", () => ({ origin: "https://stately.ai.evil.example" })],
    ["comes from Stately's page over HTTP", () => ({ origin: "http://stately.ai" })],
  ];

  it.each(strangers)("%s: 403 without a body", async (_title, headersFor) => {
    const headers = headersFor(portOf(closed));
    const page = closed.socketUrl.replace("ws:", "http:");
    for (const answer of [await visit(page, headers), await knock(closed.socketUrl, headers)]) {
      expect(answer.status).toBe(403);
      expect(answer.body).toBe("");
      expect(JSON.stringify(answer.headers)).not.toContain("desk");
    }
  });

  it.each([
    ["has no token", ""],
    ["has an empty token", "?token="],
    ["has a wrong token", `?token=${"A".repeat(32)}`],
    ["has a broken token", "?token=%ff%00"],
  ])("%s: 403 without a body", async (_title, query) => {
    for (const server of [closed, open]) {
      const page = await visit(server.socketUrl.replace("ws:", "http:").replace(/\?.*/, query));
      const socket = await knock(server.socketUrl.replace(/\?.*/, query));
      expect([page.status, page.body, socket.status, socket.body]).toEqual([403, "", 403, ""]);
    }
  });
});

it("S5: its own page and a program with the token are accepted", async () => {
  const port = portOf(closed);
  for (const origin of [`http://127.0.0.1:${port}`, `http://localhost:${port}`]) {
    expect((await knock(closed.socketUrl, { origin })).status).toBe(101);
  }
  expect((await knock(closed.socketUrl)).status).toBe(101);
  expect((await visit(closed.url, { host: `localhost:${port}` })).status).toBe(200);
});

it("S5: with the option, Stately's page is accepted with the token, and no other page is", async () => {
  expect((await knock(open.socketUrl, { origin: "https://stately.ai" })).status).toBe(101);
  expect((await knock(open.socketUrl, { origin: "https://evil.example" })).status).toBe(403);
  expect(closed.statelyUrl).toBeUndefined();
  expect((await visit(closed.socketUrl.replace("ws:", "http:").replace("/frames", "/stately"))).status).toBe(404);
  const bridge = await visit(open.statelyUrl ?? "");
  expect(bridge.status).toBe(200);
  expect(bridge.headers["content-security-policy"]).toContain("frame-src https://stately.ai");
});
