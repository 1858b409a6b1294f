import { setImmediate as nextEventLoopTurn } from "node:timers/promises";
import type { z } from "zod";
import { type Clock, combineSignals, type CombinedSignal } from "../../base/index.ts";
import { InvariantError } from "../../errors/index.ts";
import { readJson } from "./body.ts";
import type { Caller } from "./caller.ts";
import { misfit, type RequestPart, ServerError } from "./failures.ts";
import type { Identity } from "./identity.ts";
import type { Limits } from "./limits.ts";
import { hostOf } from "./origins.ts";
import type { Call, Route } from "./route.ts";
import { type SseFrame, sseResponse } from "./sse.ts";
import { assertMayStub, type StubOptions } from "./stub-access.ts";
import type { WebhookRegistry } from "./webhooks.ts";

/** The server's parts that calls use. */
export interface CallDependencies {
  readonly limits: Limits;
  readonly clock: Clock;
  /** The path that the server is mounted at; empty if none. */
  readonly basePath: string;
  readonly waitMs: number;
  readonly keepAliveMs: number;
  readonly stallMs: number;
  readonly firstFrameMs: number;
  readonly webhooks: WebhookRegistry | undefined;
  readonly stubs: StubOptions | undefined;
}

/** A request with its route. */
export interface Arrival {
  readonly request: Request;
  readonly requestId: string;
  readonly route: Route;
  /** Parameters that the router read from the path. */
  readonly params: Readonly<Record<string, string>>;
  /** `null` on public routes. */
  readonly caller: Caller | null;
  /** Closes the connection, if the server can. */
  readonly cut: (() => void) | undefined;
  /** Called with the error that ended its stream. */
  readonly onStreamError: (error: unknown) => void;
}

/** Validates a request by the schemas of its route. Throws `ServerError` that names each invalid field. */
export async function callOf(arrival: Arrival, dependencies: CallDependencies): Promise<RouteCall> {
  const { request, route } = arrival;
  const idempotencyKey = requestKey(request);
  const params = checked("path", route.params, arrival.params);
  const query = checked("query", route.query, () => queryOf(request));
  const headers = checked("header", route.headers, () => headersOf(request, route.headers));
  const body = await bodyOf(arrival, dependencies.limits);
  return new RouteCall(arrival, dependencies, { params, query, headers, body, idempotencyKey });
}

/** Above this number of characters, work on a body is split so that other requests run in between. */
const LARGE = 100_000;

async function bodyOf({ request, route }: Arrival, { bodyBytes, bodyValues }: Limits): Promise<unknown> {
  if (route.body === undefined) return undefined;
  const { value, length } = await readJson(request, { maxBytes: route.bodyBytes ?? bodyBytes, maxValues: bodyValues });
  if (length > LARGE) await nextEventLoopTurn();
  const body = checked("body", route.body, value);
  if (length > LARGE) await nextEventLoopTurn();
  return body;
}

type Inputs = Pick<Call, "params" | "query" | "headers" | "body" | "idempotencyKey">;

export class RouteCall implements Call {
  readonly request: Request;
  readonly requestId: string;
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: unknown;
  readonly body: unknown;
  readonly idempotencyKey: string | undefined;
  readonly clock: Clock;
  readonly waitMs: number;
  readonly webhooks: WebhookRegistry | undefined;
  readonly #caller: Caller | null;
  readonly #cut: (() => void) | undefined;
  readonly #onStreamError: (error: unknown) => void;
  readonly #dependencies: CallDependencies;
  #combined: CombinedSignal | undefined;
  #isStreaming = false;

  constructor(
    { request, requestId, caller, cut, onStreamError }: Arrival,
    dependencies: CallDependencies,
    inputs: Inputs,
  ) {
    this.request = request;
    this.requestId = requestId;
    this.params = inputs.params;
    this.query = inputs.query;
    this.headers = inputs.headers;
    this.body = inputs.body;
    this.idempotencyKey = inputs.idempotencyKey;
    this.clock = dependencies.clock;
    this.waitMs = dependencies.waitMs;
    this.webhooks = dependencies.webhooks;
    this.#caller = caller;
    this.#cut = cut;
    this.#onStreamError = onStreamError;
    this.#dependencies = dependencies;
  }

  assertMayStub(secret: string | undefined): void {
    assertMayStub(this.#dependencies.stubs, secret);
  }

  get caller(): Caller {
    if (this.#caller === null) throw new InvariantError("a public route has no caller");
    return this.#caller;
  }

  get identity(): Identity {
    return this.caller.identity;
  }

  get origin(): string {
    return `${new URL(this.request.url).protocol}//${hostOf(this.request)}${this.#dependencies.basePath}`;
  }

  // Created lazily: most calls need no signal, and the request's own is costly to create.
  get signal(): AbortSignal {
    this.#combined ??= combineSignals([this.request.signal, this.#dependencies.limits.streams.closing]);
    return this.#combined.signal;
  }

  async stream(
    open: (signal: AbortSignal) => AsyncIterable<SseFrame>,
    init: { readonly headers?: Readonly<Record<string, string>> | undefined } = {},
  ): Promise<Response> {
    if (this.request.method === "HEAD") throw new ServerError("method_not_allowed", "a stream has no HEAD");
    const { limits, clock, keepAliveMs, stallMs, firstFrameMs } = this.#dependencies;
    const release = limits.streams.open(callerKey(this.#caller?.identity ?? null));
    const onEnd = (): void => {
      release();
      this.#combined?.dispose();
    };
    this.#isStreaming = true;
    const timing = { clock, keepAliveMs, stallMs, firstFrameMs };
    const ends = { closing: this.signal, cut: this.#cut, onEnd, onError: this.#onStreamError };
    try {
      return await sseResponse(open, { ...timing, ...ends, headers: init.headers });
    } catch (error) {
      onEnd();
      throw error;
    }
  }

  async relay(open: () => Promise<Response>): Promise<Response> {
    const release = this.#dependencies.limits.streams.open(callerKey(this.#caller?.identity ?? null));
    const onEnd = (): void => {
      release();
      this.#combined?.dispose();
    };
    this.#isStreaming = true;
    try {
      const response = await open();
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
      if (isStream && response.body !== null)
        return relayed(response, response.body, { left: this.request.signal, onEnd });
      onEnd();
      return response;
    } catch (error) {
      onEnd();
      throw error;
    }
  }

  async within<T>(work: Promise<T>, ms: number = this.waitMs): Promise<{ readonly value: T } | undefined> {
    const release = this.#dependencies.limits.waits.tryOpen(callerKey(this.#caller?.identity ?? null));
    if (release === undefined) {
      // The caller gets no result, so a rejection is ignored.
      work.catch(() => undefined);
      return undefined;
    }
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const over = (): void => resolve(undefined);
    const cancel = this.clock.setDelay(ms, over);
    const { signal } = this;
    if (signal.aborted) over();
    signal.addEventListener("abort", over, { once: true });
    try {
      return await Promise.race([work.then((value) => ({ value })), promise]);
    } finally {
      release();
      cancel();
      signal.removeEventListener("abort", over);
    }
  }

  /** Must be called when the handler has answered. */
  end(): void {
    if (!this.#isStreaming) this.#combined?.dispose();
  }
}

interface RelayEnds {
  /** Aborts when the client has left. */
  readonly left: AbortSignal;
  readonly onEnd: () => void;
}

/** The same response; `onEnd` is called once its body has ended or its client has left. */
function relayed(response: Response, body: ReadableStream<Uint8Array>, { left, onEnd }: RelayEnds): Response {
  const reader = body.getReader();
  const leave = (): void => {
    onEnd();
    reader.cancel().catch(() => undefined);
  };
  if (left.aborted) leave();
  left.addEventListener("abort", leave, { once: true });
  const end = (): void => {
    left.removeEventListener("abort", leave);
    onEnd();
  };
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          end();
          controller.close();
        } catch (error) {
          end();
          controller.error(error);
        }
      },
      async cancel(reason) {
        end();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  const { status, statusText, headers } = response;
  return new Response(stream, { status, statusText, headers });
}

/** Key of a caller in counters: users of two tenants may have the same id. */
export function callerKey(identity: Identity | null): string {
  return identity === null ? "" : JSON.stringify([identity.tenant ?? null, identity.userId]);
}

function checked(part: RequestPart, schema: z.ZodType | undefined, given: unknown): unknown {
  if (schema === undefined) return undefined;
  const input: unknown = typeof given === "function" ? given() : given;
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  throw misfit(part, input, result.error);
}

/** A repeated name becomes a list, which only list schemas accept. */
function queryOf(request: Request): Readonly<Record<string, string | readonly string[]>> {
  const { searchParams } = new URL(request.url);
  const byName = Map.groupBy(searchParams, ([name]) => name);
  byName.delete("__proto__");
  return Object.fromEntries(
    [...byName].map(([name, entries]) => {
      const [value = "", ...others] = entries.map(([, one]) => one);
      return [name, others.length === 0 ? value : [value, ...others]];
    }),
  );
}

function headersOf(request: Request, schema: z.ZodObject | undefined): Readonly<Record<string, string>> {
  const names = Object.keys(schema?.shape ?? {});
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = request.headers.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
}

const visibleAscii = /^[\x21-\x7e]{1,255}$/;

function requestKey(request: Request): string | undefined {
  const key = request.headers.get("idempotency-key");
  if (key === null) return undefined;
  if (visibleAscii.test(key)) return key;
  throw new ServerError("invalid_request", "Idempotency-Key must be 1 to 255 visible ASCII characters");
}
