import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface RawServer {
  /** `http://127.0.0.1:port` */
  readonly origin: string;
  /** Connections accepted so far. */
  connections(): number;
  /** Connections open now. */
  openConnections(): number;
  stop(): Promise<void>;
}

/** A plain `node:http` server on a free port; `handle` receives the request's whole body and writes the bytes itself. */
export async function startRawServer(
  handle: (request: IncomingMessage, response: ServerResponse, body: string) => void | Promise<void>,
): Promise<RawServer> {
  let accepted = 0;
  let open = 0;
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (piece: string) => {
      body += piece;
    });
    request.on("end", () => {
      Promise.resolve(handle(request, response, body)).catch((error: unknown) => {
        response.destroy(error instanceof Error ? error : new Error(String(error)));
      });
    });
  });
  // A client that is idle for some seconds keeps its connection.
  server.keepAliveTimeout = 300_000;
  server.on("connection", (socket) => {
    accepted += 1;
    open += 1;
    socket.on("close", () => {
      open -= 1;
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    connections: () => accepted,
    openConnections: () => open,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
