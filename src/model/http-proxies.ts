/*
 * Requests by way of the environment's proxies. Loaded when Node was told to use them.
 */
import { type Dispatcher, EnvHttpProxyAgent, Pool } from "undici";
import type { Exchange } from "./http-exchange.ts";

/** Sends a POST with these headers. */
export type ProxySend = (url: URL, headers: Readonly<Record<string, string>>, body: string, exchange: Exchange) => void;

/**
 * How long a proxy may take to open a tunnel, in milliseconds. The library does not say which tunnel it makes for which call, so the
 * end of a call does not end it.
 */
const longestOpeningMs = 60_000;

let agent: Dispatcher | undefined;

/** Chooses the proxy of each address by the environment. Its connections are for all who ask. */
export function proxySend(): ProxySend {
  agent ??= new EnvHttpProxyAgent({
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 30_000,
    allowH2: false,
    clientFactory: (proxy, options) => new Pool(proxy, { ...options, headersTimeout: longestOpeningMs }),
  });
  const dispatcher = agent;
  return (url, headers, body, exchange) => {
    const path = url.pathname + url.search;
    // What it is given is changed.
    const request = { origin: url.origin, path, method: "POST", headers: { ...headers }, body } as const;
    dispatcher.dispatch(request, handlerOf(exchange));
  };
}

/** Tells an exchange what the library tells. */
function handlerOf(exchange: Exchange): Dispatcher.DispatchHandler {
  return {
    onRequestStart: (controller) => {
      if (exchange.isOver) controller.abort(new Error("The exchange was ended before it had begun."));
      else {
        exchange.onWay({ end: (reason) => controller.abort(reason) });
        exchange.onSent();
      }
    },
    onResponseStart: (_controller, status, headers) => {
      // Interim answers precede the one that counts.
      if (status < 200) return;
      const fields: string[] = [];
      for (const [name, value] of Object.entries(headers)) {
        for (const each of typeof value === "string" ? [value] : (value ?? [])) fields.push(name, each);
      }
      exchange.onHead(status, fields);
    },
    onResponseData: (_controller, bytes) => exchange.onBytes(bytes),
    onResponseEnd: () => exchange.onEnd(),
    onResponseError: (_controller, error) => exchange.onError(isClosed(error) ? undefined : error),
  };
}

/** Whether the other side closed the connection in the middle. */
function isClosed(error: Error & { readonly code?: unknown }): boolean {
  return error.code === "UND_ERR_SOCKET" || error.code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH";
}
