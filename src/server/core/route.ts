import type { z } from "zod";
import type { Clock } from "../../base/index.ts";
import type { Caller } from "./caller.ts";
import type { Identity } from "./identity.ts";
import type { SseFrame } from "./sse.ts";
import type { WebhookRegistry } from "./webhooks.ts";

export interface RouteResponse {
  /** Meaning of the answer. */
  readonly description: string;
  /** Schema of a JSON body. Default: no body is described. */
  readonly schema?: z.ZodType | undefined;
  /** The frames of a `text/event-stream`. */
  readonly stream?: z.ZodType | undefined;
  /** The body is an error in the form of its surface. */
  readonly isError?: boolean | undefined;
  /** The type of a body that is not JSON. */
  readonly media?: string | undefined;
}

/** The properties of a route that its OpenAPI document shows. */
export interface RouteShape {
  /** Unique in its surface: `startTurn`. */
  readonly id: string;
  /** Method of the requests. */
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path with parameters in braces: `/api/agents/{agentId}`. */
  readonly path: string;
  /**
   * `caller`: requires an identity, else 401. `local`: without an identity, but only for clients on the server's own
   * machine, else 403.
   */
  readonly access: "public" | "local" | "caller";
  /** Summary on one line. */
  readonly summary: string;
  /** Further description. Default: none. */
  readonly description?: string | undefined;
  /** Possible answers, keyed by status such as `200`. */
  readonly responses: Readonly<Record<string, RouteResponse>>;
  /** Maximum body length in bytes, if it differs from the server's limit. */
  readonly bodyBytes?: number | undefined;
}

/** One route, used by the router and for the OpenAPI document. */
export interface Route extends RouteShape {
  /** Schema of the parameters of the path. Default: none are read. */
  readonly params?: z.ZodObject | undefined;
  /** Schema of the query. Default: none is read. */
  readonly query?: z.ZodObject | undefined;
  /** Schema of the headers, with names in lower case. */
  readonly headers?: z.ZodObject | undefined;
  /** Schema of the JSON body; a request without a body is read as `undefined`. */
  readonly body?: z.ZodType | undefined;
  /** Identifies callers without an `Authorization` header. Default: they are not identified. */
  readonly identify?: Identify | undefined;
  /** Answers a valid request. A thrown error becomes the surface's error answer. */
  readonly handle: (call: Call) => Response | Promise<Response>;
}

/**
 * Returns the sender of a request without an `Authorization` header, for clients that cannot send one, or `null` if the
 * sender is unknown. Called before the server's own `authenticate`, with the raw parameters and query, and the current
 * time.
 */
export type Identify = (
  given: { readonly params: Readonly<Record<string, string>>; readonly query: URLSearchParams },
  now: number,
) => Identity | null | Promise<Identity | null>;

/** A request to a route, validated by its schemas. */
export interface Call<Params = unknown, Query = unknown, Headers = unknown, Body = unknown> {
  /** The HTTP request; its body is consumed if the route declares one. */
  readonly request: Request;
  /** Parameters of the path. */
  readonly params: Params;
  /** The query. */
  readonly query: Query;
  /** The headers that the route declares. */
  readonly headers: Headers;
  /** The body; `undefined` if the route declares none. */
  readonly body: Body;
  /** The caller's identity. Throws `InvariantError` on public routes. */
  readonly identity: Identity;
  /** The caller's operations. Throws `InvariantError` on public routes. */
  readonly caller: Caller;
  /** Id of the request, for logs. */
  readonly requestId: string;
  /** Aborts when the client leaves or the server closes. */
  readonly signal: AbortSignal;
  /** The source of time of the server. */
  readonly clock: Clock;
  /** Longest wait of a blocking call, in milliseconds. */
  readonly waitMs: number;
  /** `undefined` if the server sends no webhooks. */
  readonly webhooks: WebhookRegistry | undefined;
  /**
   * Throws `ServerError` (403) unless the server accepts stubs and this is its secret. A route that creates agents with stubs of the
   * request must call it first.
   */
  assertMayStub(secret: string | undefined): void;
  /** The header `Idempotency-Key`: 1 to 255 visible ASCII characters. */
  readonly idempotencyKey: string | undefined;
  /** The server's address as the client wrote it: `http://127.0.0.1:8080`, with the `basePath` if set. */
  readonly origin: string;
  /**
   * Answers with server-sent events. The first frame is read before the headers are sent, so that an early error has
   * its own status. Throws `ServerError` (429) when the caller or the server has too many streams.
   */
  stream(
    open: (signal: AbortSignal) => AsyncIterable<SseFrame>,
    init?: { readonly headers?: Readonly<Record<string, string>> | undefined },
  ): Promise<Response>;
  /**
   * Answers with a response that another library creates, whose body may be a stream. It counts as a stream until its
   * body has ended. Throws `ServerError` (429) when the caller or the server has too many streams.
   */
  relay(open: () => Promise<Response>): Promise<Response>;
  /**
   * Waits for work for at most `ms`, by default `waitMs`, and until the client leaves; `undefined` if the work is not
   * done by then. Returns `undefined` at once if the caller or the server has too many waiting requests.
   */
  within<T>(work: Promise<T>, ms?: number): Promise<{ readonly value: T } | undefined>;
}

type Output<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;

interface RouteSchemas<Params, Query, Headers, Body> {
  /** Schema of the parameters of the path. Default: none are read. */
  readonly params?: Params;
  /** Schema of the query. Default: none is read. */
  readonly query?: Query;
  /** Schema of the headers; names in lower case. Default: none are read. */
  readonly headers?: Headers;
  /** Schema of the body. Default: none is read. */
  readonly body?: Body;
}

/** Creates a route whose handler gets the values typed by its schemas. */
export function route<
  Params extends z.ZodObject | undefined = undefined,
  Query extends z.ZodObject | undefined = undefined,
  Headers extends z.ZodObject | undefined = undefined,
  Body extends z.ZodType | undefined = undefined,
>(
  given: RouteShape &
    RouteSchemas<Params, Query, Headers, Body> & {
      readonly identify?: Identify | undefined;
      readonly handle: (
        call: Call<Output<Params>, Output<Query>, Output<Headers>, Output<Body>>,
      ) => Response | Promise<Response>;
    },
): Route {
  // The router only calls a handler with values of its own schemas.
  return given as unknown as Route;
}
