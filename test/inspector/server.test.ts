import { connect } from "node:net";
import { afterEach, expect, it } from "vitest";
import { InvalidInputError } from "../../src/index.ts";
import type { FrameListener } from "../../src/inspector/stately/hub.ts";
import {
  type InspectionFrame,
  type Inspector,
  type InspectorServer,
  serveInspector,
  startInspector,
} from "../../src/inspector/index.ts";
import { watched } from "./team.ts";
import { knock, listenTo, visit } from "./visitors.ts";

const servers: InspectorServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

function kept<Server extends InspectorServer>(server: Server): Server {
  servers.push(server);
  return server;
}

it("a raw client that connects late receives the current state, then the changes", async () => {
  const inspector = kept(await startInspector());
  const { runtime, ask } = await watched(inspector);
  await ask();
  const client = await listenTo(inspector.socketUrl);
  const first = JSON.parse(await client.until((text) => text.includes('"desk"'))) as InspectionFrame;
  expect(first).toMatchObject({ type: "@xstate.actor", sessionId: "desk", snapshot: { value: "ready" } });
  const before = client.texts.length;
  await ask();
  const ended = await client.until((text) => text.includes('"desk#2"') && text.includes('"turn.ended"'));
  expect(JSON.parse(ended)).toMatchObject({ rootId: "desk", provisional: true });
  const types = new Set(client.texts.slice(before).map((text) => (JSON.parse(text) as InspectionFrame).type));
  expect(types).toEqual(new Set(["@xstate.actor", "@xstate.event", "@xstate.snapshot"]));
  await runtime.shutdown();
});

it("listens on the loopback interface only, with a new token each time", async () => {
  const first = kept(await startInspector());
  const second = kept(await startInspector());
  const [one, two] = [new URL(first.url), new URL(second.url)];
  expect(one.hostname).toBe("127.0.0.1");
  expect(one.hash).toMatch(/^#token=[\w-]{32}$/);
  expect(one.hash).not.toBe(two.hash);
  expect(new URL(first.socketUrl).searchParams.get("token")).not.toBe(
    new URL(second.socketUrl).searchParams.get("token"),
  );
  expect(one.port).not.toBe(two.port);
});

it("a used or invalid port is a clear error", async () => {
  const first = kept(await startInspector());
  const port = Number(new URL(first.url).port);
  await expect(startInspector({ port })).rejects.toThrow(`the inspector's port ${port} is taken`);
  await expect(startInspector({ port: 70_000 })).rejects.toThrow(InvalidInputError);
});

it("F29: a client that never reads is disconnected, and the others receive everything", async () => {
  const listeners = new Set<FrameListener>();
  const publish: FrameListener = (frame) => listeners.forEach((listener) => listener(frame));
  const source: Inspector = {
    onInspect: () => undefined,
    frames: () => [],
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const server = kept(await serveInspector(source, { mostWaitingBytes: 2_000_000 }));
  const reader = await listenTo(server.socketUrl);
  const { host, port, pathname, search } = new URL(server.socketUrl);
  const deaf = connect(Number(port), "127.0.0.1");
  const dropped = Promise.withResolvers<void>();
  deaf.on("close", () => dropped.resolve());
  deaf.on("error", () => undefined);
  const upgraded = Promise.withResolvers<void>();
  deaf.once("data", () => {
    deaf.pause();
    upgraded.resolve();
  });
  deaf.write(
    `GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  );
  await upgraded.promise;
  const filler = "x".repeat(50_000);
  for (let count = 0; count < 400; count += 1) {
    publish(frameOf(`${count}`, filler));
    // The other reader keeps up.
    await reader.until((text) => text.includes(`"sessionId":"${count}"`));
  }
  expect(reader.texts).toHaveLength(400);
  deaf.resume();
  await dropped.promise;
  // 20 MB were published: if they had been buffered for it, it would have read all of them.
  expect(deaf.bytesRead).toBeLessThan(15_000_000);
  reader.close();
});

function frameOf(sessionId: string, filler: string): InspectionFrame {
  const base = { sessionId, rootId: "r", createdAt: "0", id: sessionId, _version: "0.7.0" };
  return { type: "@xstate.event", ...base, event: { type: filler }, sourceId: undefined, provisional: true };
}

it("messages of a client are ignored, and too much data ends the connection", async () => {
  const inspector = kept(await startInspector());
  const { runtime } = await watched(inspector);
  const client = await listenTo(inspector.socketUrl);
  client.say(JSON.stringify({ type: "turn.started", sessionId: "desk" }));
  client.say("x".repeat(10_000));
  await client.closed;
  expect((await runtime.find("desk")).state.status).toBe("ready");
  await runtime.shutdown();
});

it("has no other paths, and is read-only", async () => {
  const inspector = kept(await startInspector());
  expect((await visit(inspector.url, {}, "POST")).status).toBe(405);
  expect((await visit(`${inspector.origin}/nothing`)).status).toBe(404);
  expect((await knock(inspector.socketUrl.replace("/frames", "/"))).status).toBe(401);
});

it("closing ends every connection", async () => {
  const inspector = await startInspector();
  const client = await listenTo(inspector.socketUrl);
  await inspector.close();
  await client.closed;
  await expect(visit(inspector.url)).rejects.toThrow("ECONNREFUSED");
});
