import { WebSocket } from "ws";
import type { Failure, FeedMessage, FeedRow } from "../../src/inspector/feed/wire.ts";
import type { FeedServer } from "../../src/inspector/start-inspector.ts";
import { Heard } from "./heard.ts";

export interface Posted {
  readonly status: number;
  readonly error: Failure["error"] | undefined;
  readonly answer: unknown;
}

/** Sends commands over HTTP with a token. */
export async function post(
  { origin, tokens }: FeedServer,
  path: string,
  body: object = {},
  token: string | undefined = tokens.act,
): Promise<Posted> {
  const headers = { authorization: `Bearer ${token ?? ""}`, "content-type": "application/json" };
  const response = await fetch(`${origin}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  const answer: unknown = text === "" ? undefined : JSON.parse(text);
  return { status: response.status, error: (answer as Partial<Failure> | undefined)?.error, answer };
}

export async function get<Answer>({ origin, tokens }: FeedServer, path: string): Promise<Answer> {
  const response = await fetch(`${origin}${path}`, { headers: { authorization: `Bearer ${tokens.watch}` } });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return (await response.json()) as Answer;
}

export function decisionPath(requestId: string): string {
  return `/api/requests/${encodeURIComponent(requestId)}/decision`;
}

/** One connection of a page to the feed. */
export interface Connection {
  readonly socket: WebSocket;
  readonly messages: FeedMessage[];
  readonly rows: FeedRow[];
  /** Resolves with the first past or future message that matches; rejects when the connection ends before. */
  until(passes: (message: FeedMessage) => boolean): Promise<FeedMessage>;
  readonly closed: Promise<void>;
}

/** Watches a run over a real socket; grants `credit` at first, and one more for each batch unless it is `miserly`. */
export async function connect(
  { origin, tokens }: FeedServer,
  { run, after = 0, credit = 8, miserly = false }: { run: string; after?: number; credit?: number; miserly?: boolean },
): Promise<Connection> {
  const socket = new WebSocket(`${origin.replace("http", "ws")}/feed`, ["troupe.feed.v1", `bearer.${tokens.watch}`]);
  const heard = new Heard<FeedMessage>();
  const rows: FeedRow[] = [];
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  await new Promise<void>((resolve, reject) => {
    socket.once("open", () => resolve());
    socket.once("error", reject);
  });
  socket.on("error", () => undefined);
  socket.on("message", (data: Buffer) => {
    const message = JSON.parse(data.toString("utf8")) as FeedMessage;
    if (message.type === "rows") {
      rows.push(...message.rows);
      if (!miserly && socket.readyState === socket.OPEN) socket.send(JSON.stringify({ type: "credit", batches: 1 }));
    }
    heard.add(message);
  });
  socket.once("close", () => {
    close();
    heard.end();
  });
  socket.send(JSON.stringify({ type: "watch", run, after, credit }));
  return {
    socket,
    messages: heard.all,
    rows,
    closed,
    until: (passes) => heard.until(passes),
  };
}
