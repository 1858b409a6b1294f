import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { InvalidInputError } from "../../errors/index.ts";

/** A client that neither sends nor takes anything for so long is cut off, in milliseconds. */
const IDLE_MS = 60_000;
const MOST_CONNECTIONS = 64;

/** A server on the loopback address of this machine; it never listens elsewhere and does not keep the process alive. */
export async function listenHere(port: number): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer({ maxHeaderSize: 8_192, headersTimeout: 5_000, requestTimeout: 30_000 });
  server.maxConnections = MOST_CONNECTIONS;
  server.setTimeout(IDLE_MS, (socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const why = cause.code === "EADDRINUSE" ? "is taken" : `cannot be used (${cause.code ?? cause.message})`;
      reject(
        new InvalidInputError(`the inspector's port ${port} ${why}; leave it out for any that is free`, { cause }),
      );
    });
    server.listen(port, "127.0.0.1", resolve);
  });
  server.unref();
  server.on("connection", (socket) => socket.unref());
  return { server, port: (server.address() as AddressInfo).port };
}

/** Ends all connections and the server. */
export async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise<void>((resolve) => void server.close(() => resolve()));
}
