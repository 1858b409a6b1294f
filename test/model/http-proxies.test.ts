import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { undiciFetch } from "../../src/model/undici-fetch.ts";
import { wireServer } from "../support/wire-server.ts";

/** Called with a connection that has requested a tunnel from the proxy. It opens no tunnel itself. */
let onAsked: (socket: Socket) => void;

beforeAll(async () => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => onAsked(socket));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  vi.stubEnv("HTTP_PROXY", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  vi.stubEnv("NO_PROXY", "");
  vi.stubEnv("NODE_USE_ENV_PROXY", "1");
  return () => {
    vi.unstubAllEnvs();
    for (const socket of sockets) socket.destroy();
    server.close();
  };
});

/** A request to a server that only the proxy could reach; returns the status or the error text. */
function requestTo(name: string) {
  const delivery: { wasSent: boolean | undefined } = { wasSent: false };
  const controller = new AbortController();
  const asked = new Promise<Socket>((heard) => {
    onAsked = heard;
  });
  const init = { method: "POST", body: "{}", signal: controller.signal };
  const outcome = undiciFetch(`http://${name}.example.test/v1`, init, delivery).then(
    ({ status }) => status,
    (error: Error) => error.message,
  );
  return { delivery, controller, outcome, asked };
}

describe("a call through a proxy", () => {
  it("has sent nothing while the tunnel is being opened, also if it is cut", async () => {
    const { delivery, controller, outcome, asked } = requestTo("unanswered");
    await asked;
    expect(delivery.wasSent).toBe(false);
    controller.abort(new Error("enough"));
    expect(await outcome).toBe("enough");
    expect(delivery.wasSent).toBe(false);
  });

  it("has sent nothing if the proxy refuses", async () => {
    const { delivery, outcome, asked } = requestTo("refused");
    (await asked).end("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    expect(await outcome).toContain("403");
    expect(delivery.wasSent).toBe(false);
  });

  it("may have reached the server once the tunnel is open", async () => {
    const server = await wireServer(() => undefined);
    const { delivery, outcome, asked } = requestTo("reached");
    const socket = await asked;
    const beyond = connect(Number(server.host.split(":")[1]), "127.0.0.1");
    beyond.on("error", () => undefined);
    onTestFinished(() => void beyond.destroy());
    socket.write("HTTP/1.1 200 Connected\r\n\r\n");
    socket.pipe(beyond).pipe(socket);
    await expect.poll(() => server.requests.length).toBe(1);
    socket.destroy();
    expect(await outcome).toContain("fetch failed");
    expect(delivery.wasSent).toBe(true);
  });
});
