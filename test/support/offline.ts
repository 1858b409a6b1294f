// Loaded with `node --import` before an example or a block of a document. A network connection fails immediately with an error.
import { type NetConnectOpts, Socket } from "node:net";

const loopback = /^(localhost|127\.\d+\.\d+\.\d+|::1|\[::1\])$/;

/** Node calls `connect` with options, with `(port, host)`, or with a list that contains the options. */
function hostOf(connectArguments: readonly unknown[]): string {
  const [first, second] = connectArguments;
  if (Array.isArray(first)) return hostOf(first);
  if (typeof first === "object" && first !== null) {
    const options = first as Partial<NetConnectOpts> & { readonly host?: string };
    return "path" in options && typeof options.path === "string" ? "localhost" : (options.host ?? "localhost");
  }
  return typeof second === "string" ? second : "localhost";
}

const connect = Reflect.get(Socket.prototype, "connect") as (...connectArguments: unknown[]) => Socket;

function connectToLoopback(this: Socket, ...connectArguments: unknown[]): Socket {
  const host = hostOf(connectArguments);
  if (loopback.test(host)) return connect.apply(this, connectArguments);
  process.nextTick(() => this.destroy(new Error(`This program must run offline, but it connects to ${host}.`)));
  return this;
}

Reflect.set(Socket.prototype, "connect", connectToLoopback);
