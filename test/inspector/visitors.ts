import { request } from "node:http";
import { WebSocket } from "ws";
import { Heard } from "./heard.ts";

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A request with any headers, including those that a browser sets itself. */
export async function visit(url: string, headers: Record<string, string> = {}, method = "GET"): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const sent = request(url, { headers, method, agent: false }, (response) => {
    let body = "";
    response.setEncoding("utf8");
    response.on("data", (text: string) => {
      body += text;
    });
    response.on("end", () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }));
  });
  sent.on("error", reject);
  sent.end();
  return await promise;
}

/** Tries to open a socket; returns the server's status, and the body of a refusal. */
export async function knock(url: string, headers: Record<string, string> = {}): Promise<Answer> {
  const { "sec-websocket-protocol": protocols, ...others } = headers;
  const socket = new WebSocket(url, protocols?.split(", ") ?? [], { headers: others });
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  socket.on("open", () => resolve({ status: 101, body: "", headers: {} }));
  socket.on("error", reject);
  socket.on("unexpected-response", (_request, response) => {
    let body = "";
    response.setEncoding("utf8");
    response.on("data", (text: string) => {
      body += text;
    });
    response.on("end", () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }));
  });
  try {
    return await promise;
  } finally {
    socket.removeAllListeners("error");
    socket.on("error", () => undefined);
    socket.terminate();
  }
}

export interface Listener {
  readonly texts: readonly string[];
  /** Resolves with the first past or future message that matches. */
  until(passes: (text: string) => boolean): Promise<string>;
  readonly closed: Promise<void>;
  say(text: string): void;
  close(): void;
}

/** A program that reads frames. */
export async function listenTo(url: string): Promise<Listener> {
  const socket = new WebSocket(url);
  const heard = new Heard<string>();
  const { promise: opened, resolve: open, reject: fail } = Promise.withResolvers<void>();
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  socket.on("message", (data: Buffer) => {
    heard.add(data.toString("utf8"));
  });
  socket.on("open", () => open());
  socket.on("error", fail);
  socket.on("close", () => {
    close();
    heard.end();
  });
  await opened;
  return {
    texts: heard.all,
    until: (passes) => heard.until(passes),
    closed,
    say: (text) => socket.send(text),
    close: () => socket.terminate(),
  };
}
