import type { z } from "zod";
import type { Clock } from "../../base/index.ts";
import type { Caller } from "./caller.ts";
import type { Identity } from "./identity.ts";
import type { SseFrame } from "./sse.ts";
import type { WebhookRegistry } from "./webhooks.ts";

export interface RouteResponse {
  /** What the answer means. */
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

/** The part of a route that its OpenAPI document shows. */
export interface RouteShape {
  /** Unique in its surface: `startTurn`. */
  readonly id: string;
  /** Method of the requests. */
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With parameters in braces: `/api/agents/{agentId}`. */
  readonly path: string;
  /** `caller`: only with an identity, else 401. `local`: without one, only on the server's own machine, else 403. */
  readonly access: "public" | "local" | "caller";
  /** One line on what it does. */
  readonly summary: string;
  /** More on what it does. Default: nothing. */
  readonly description?: string | undefined;
  /** Possible answers by status, for instance `200`. */
  readonly responses: Readonly<Record<string, RouteResponse>>;
  /** Longest body in bytes, where it differs from the server's limit. */
  readonly bodyBytes?: number | undefined;
}

/** One route. The same table feeds the router and the OpenAPI document. */
export interface Route extends RouteShape {
  /** Schema of the parameters of the path. Default: none are read. */
  readonly params?: z.ZodObject | undefined;
  /** Schema of the query. Default: none is read. */
  readonly query?: z.ZodObject | undefined;
  /** Names in lower case. */
  readonly headers?: z.ZodObject | undefined;
  /** JSON; a request without a body is read as `undefined`. */
  readonly body?: z.ZodType | undefined;
  /** How callers without an `Authorization` header are identified. Default: they are not. */
  readonly identify?: Identify | undefined;
  /** Answers a request that fits the schemas. An error that it throws becomes the surface's error answer. */
  readonly handle: (call: Call) => Response | Promise<Response>;
}

/**
 * Returns the sender of a request without an `Authorization` header, for clients that cannot send one, or `null` if the
 * sender is not known. Called before the server's own `authenticate`, with the parameters and the query as they came, and
 * the time now.
 */
export type Identify = (
  given: { readonly params: Readonly<Record<string, string>>; readonly query: URLSearchParams },
  now: number,
) => Identity | null | Promise<Identity | null>;

/** A request to a route, checked by its schemas. */
export interface Call<Params = unknown, Query = unknown, Headers = unknown, Body = unknown> {
  /** Its body has been read if the route declares one. */
  readonly request: Request;
  /** Parameters of the path. */
  readonly params: Params;
  /** The query. */
  readonly query: Query;
  /** The headers that the route declares. */
  readonly headers: Headers;
  /** The body; undefined where the route declares none. */
  readonly body: Body;
  /** Throws `InvariantError` on public routes. */
  readonly identity: Identity;
  /** Throws `InvariantError` on public routes. */
  readonly caller: Caller;
  /** Id of the request, for logs. */
  readonly requestId: string;
  /** Aborts when the client leaves or the server closes. */
  readonly signal: AbortSignal;
  /** The source of time of the server. */
  readonly clock: Clock;
  /** Longest wait of a blocking call, in milliseconds. */
  readonly waitMs: number;
  /** Undefined where the server tells no receivers. */
  readonly webhooks: WebhookRegistry | undefined;
  /** The header `Idempotency-Key`: 1 to 255 visible ASCII characters. */
  readonly idempotencyKey: string | undefined;
  /** The address of the server, as the client wrote it: `http://127.0.0.1:8080`, with `basePath` if there is one. */
  readonly origin: string;
  /**
   * Answers with server-sent events. The first frame is taken before the headers, so that an early error has its status.
   * Throws `ServerError` (429) when the caller or the server has too many streams.
   */
  stream(
    open: (signal: AbortSignal) => AsyncIterable<SseFrame>,
    init?: { readonly headers?: Readonly<Record<string, string>> | undefined },
  ): Promise<Response>;
  /**
   * Waits for work for at most `ms`, by default `waitMs`, and until the client leaves; undefined if it is not done by
   * then, and at once where the caller or the server has too many waiting requests.
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

/** Makes a route whose handler gets what its schemas give. */
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
  // The router gives each handler what the schemas of its own route gave.
  return given as unknown as Route;
}
