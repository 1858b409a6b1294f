import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { InvalidInputError } from "../../errors/index.ts";

/** The result of a check, with descriptions of the problems. */
export interface Verdict {
  readonly isGood: boolean;
  readonly problems: readonly string[];
  /** Further figures. */
  readonly details?: Readonly<Record<string, number | null>>;
}

/** The content of the endpoint. Each request calls its function; concurrent requests share one call. */
export interface Told {
  /** Metrics in the text format of Prometheus. */
  readonly metrics: () => Promise<string>;
  readonly health: () => Promise<Verdict>;
  readonly readiness: () => Promise<Verdict>;
}

interface EndpointOptions {
  /** Port to listen on; 0: any free port. */
  readonly port: number;
  /** Address to bind. Default 127.0.0.1: this machine only. */
  readonly host?: string | undefined;
}

export interface Endpoint {
  /** `http://127.0.0.1:9464`. */
  readonly url: string;
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

type Asked = () => Promise<Answer>;

const plain = "text/plain; charset=utf-8";
const prometheus = "text/plain; version=0.0.4; charset=utf-8";
const json = "application/json; charset=utf-8";

/**
 * Serves `/metrics`, `/healthz` and `/readyz`, which contain figures and no content. Throws `InvalidInputError` if the
 * address is unavailable.
 */
export async function startEndpoint(told: Told, options: EndpointOptions): Promise<Endpoint> {
  const { port, host = "127.0.0.1" } = options;
  const pages = new Map<string | undefined, Asked>([
    ["/metrics", together(async () => ({ status: 200, type: prometheus, text: await told.metrics() }))],
    ["/healthz", together(async () => answerOf(await told.health()))],
    ["/readyz", together(async () => answerOf(await told.readiness()))],
  ]);
  const server = createServer({ maxHeaderSize: 8_192, headersTimeout: 5_000, requestTimeout: 5_000 });
  server.on("request", (request, response) => {
    void answer(request, response, pages);
  });
  await listen(server, port, host);
  // The endpoint must not keep the process alive.
  server.unref();
  server.on("connection", (socket) => socket.unref());
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  pages: ReadonlyMap<string | undefined, Asked>,
): Promise<void> {
  request.resume();
  const { status, type, text } = await answerTo(request, pages);
  response.writeHead(status, {
    "content-type": type,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  response.end(request.method === "HEAD" ? undefined : text);
}

async function answerTo(request: IncomingMessage, pages: ReadonlyMap<string | undefined, Asked>): Promise<Answer> {
  const page = pages.get(request.url?.split("?")[0]);
  if (page === undefined) return { status: 404, type: plain, text: "Available: /metrics, /healthz and /readyz.\n" };
  if (request.method !== "GET" && request.method !== "HEAD") {
    return { status: 405, type: plain, text: "Read-only: use GET.\n" };
  }
  try {
    return await page();
  } catch (error) {
    const problems = [error instanceof Error ? error.message : String(error)];
    return answerOf({ isGood: false, problems });
  }
}

function answerOf({ isGood, problems, details = {} }: Verdict): Answer {
  const text = JSON.stringify({ status: isGood ? "ok" : "unhealthy", problems, ...details });
  return { status: isGood ? 200 : 503, type: json, text: `${text}\n` };
}

/** Calls during a running call share its result. */
function together(ask: Asked): Asked {
  let asking: Promise<Answer> | undefined;
  return () => {
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    return asking;
  };
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(port, host, resolve);
  try {
    await promise;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    throw new InvalidInputError(`no endpoint at ${host}:${port}: ${whyNot[code] ?? String(error)}`, { cause: error });
  }
}

const whyNot: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is taken; give another one, or 0 for any free port",
  EACCES: "this user may not use the port; give one above 1023",
  EADDRNOTAVAIL: "this machine has no such address; give one of its addresses, or 0.0.0.0 for all",
  ENOTFOUND: "there is no such host; give one of this machine's addresses, or 0.0.0.0 for all",
};
