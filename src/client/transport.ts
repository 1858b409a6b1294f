import { createParser } from "eventsource-parser";
import type { Json, TroupeEvent } from "../state/index.ts";
import { TroupeClientError } from "./client-error.ts";
import { invalidInput } from "./input-checks.ts";

/** Options of `createClient`. */
export interface ClientOptions {
  /** Address of the server, with the path that it is mounted at: `https://app.example.com/troupe`. */
  readonly url: string | URL;
  /**
   * Headers of each request, such as `authorization`. A function is called for each request, so that it can renew a
   * token. Default: none.
   */
  readonly headers?: ClientHeaders | (() => ClientHeaders | Promise<ClientHeaders>) | undefined;
  /** Whether cookies are sent, as for `fetch`. Default `same-origin`. */
  readonly credentials?: "omit" | "same-origin" | "include" | undefined;
  /**
   * The secret of a server that accepts stubs (`serveRuntime({ stubs: { secret } })`); sent only when an agent with `stubs` is created. For
   * programs that test, not for pages. Default: none.
   */
  readonly stubsSecret?: string | undefined;
  /** The `fetch` to use. Default: the platform's. */
  readonly fetch?: typeof fetch | undefined;
  /**
   * Number of consecutive retries of a request that got no answer, or a temporary refusal (429, 502, 503, 504). For a
   * stream, counted since its last data. The first wait is 0.25 seconds; each further one doubles, up to 10 seconds.
   * Default 8, about half a minute.
   */
  readonly retries?: number | undefined;
}

export type ClientHeaders = Readonly<Record<string, string>>;

/** One request of the API. */
export interface ApiRequest {
  readonly method?: "GET" | "POST" | "DELETE" | undefined;
  /** Path below the server's address: `/api/agents`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>> | undefined;
  readonly headers?: ClientHeaders | undefined;
  /** Body, sent as JSON. */
  readonly body?: object | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A stream of events. */
export interface EventsRequest {
  readonly path: string;
  /** The cursor of the last event that the caller received. */
  readonly after: string | undefined;
  readonly signal: AbortSignal | undefined;
  readonly isLast: (event: TroupeEvent) => boolean;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
/** Silence after which a stream counts as dead: a few of the server's keep-alive comments (15 seconds each). */
const SILENCE_MS = 60_000;
const momentary: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Sends requests to one server, and retries them if that is useful and safe. Owns no connection. */
export class Transport {
  readonly #base: string;
  readonly #options: ClientOptions;
  readonly #retries: number;

  constructor(options: ClientOptions) {
    const { url, retries = 8 } = options;
    const parsed = URL.canParse(String(url)) ? new URL(url) : undefined;
    if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || parsed.search !== "" || parsed.hash !== "") {
      throw invalidInput(`url is ${JSON.stringify(String(url))}; pass an http: or https: address without a query`);
    }
    if (!Number.isSafeInteger(retries) || retries < 0) {
      throw invalidInput(`retries is ${retries}; pass a whole number from 0 on`);
    }
    this.#base = parsed.href.replace(/\/+$/, "");
    this.#options = options;
    this.#retries = retries;
  }

  /** The JSON of an answer. Rejects with `TroupeClientError`. */
  async json<Answer>(request: ApiRequest): Promise<Answer> {
    for (let tried = 0; ; tried += 1) {
      try {
        return (await jsonOf(await this.#send(request))) as Answer;
      } catch (error) {
        if (tried >= this.#retries || !isWorthRetrying(error)) throw error;
        await pause(tried, error, request.signal);
      }
    }
  }

  /**
   * The events of a stream. A broken stream is opened again after the last stored event, so that no event is missing or
   * duplicated; a frame that was cut off is then read again. Ends after the last event. Rejects with
   * `TroupeClientError` if the server refuses the stream or is unreachable.
   */
  async *events({ path, after, signal, isLast }: EventsRequest): AsyncGenerator<TroupeEvent, void, undefined> {
    let last = after;
    for (let tried = 0; ; tried += 1) {
      let fault: unknown = new TroupeClientError("unreachable", "the server repeatedly ends the stream", {
        retryable: true,
      });
      try {
        // An idle stream has comments, so a proxy that occasionally cuts it does not use up the retries.
        const onBytes = (): void => void (tried = 0);
        for await (const event of this.#eventsOnce({ path, after: last, signal, onBytes })) {
          last = event.cursor ?? last;
          yield event;
          if (isLast(event)) return;
        }
      } catch (error) {
        if (!isWorthRetrying(error)) throw error;
        fault = error;
      }
      if (tried >= this.#retries) throw fault;
      await pause(tried, fault, signal);
    }
  }

  /** The events of one connection, which ends with the iteration. */
  async *#eventsOnce({
    path,
    after,
    signal,
    onBytes,
  }: Omit<EventsRequest, "isLast"> & { readonly onBytes: () => void }): AsyncGenerator<TroupeEvent, void, undefined> {
    const left = new AbortController();
    const leave = (): void => left.abort(signal?.reason);
    signal?.addEventListener("abort", leave, { once: true });
    let silence: ReturnType<typeof setTimeout> | undefined;
    const watch = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => left.abort(silent()), SILENCE_MS);
    };
    try {
      signal?.throwIfAborted();
      watch();
      const headers = { accept: "text/event-stream", ...(after === undefined ? {} : { "last-event-id": after }) };
      const response = await this.#send({ path, headers, signal: left.signal });
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
      if (response.body === null || !isStream) throw unexpected(response);
      const reader = response.body.getReader();
      const arrived: TroupeEvent[] = [];
      const parser = createParser({ onEvent: ({ data }) => arrived.push(JSON.parse(data) as TroupeEvent) });
      const decoder = new TextDecoder();
      for (;;) {
        const { done, value } = await reader.read().catch((error: unknown) => {
          left.signal.throwIfAborted();
          throw unreachable(error);
        });
        if (done) return;
        onBytes();
        watch();
        parser.feed(decoder.decode(value, { stream: true }));
        yield* arrived.splice(0);
      }
    } finally {
      clearTimeout(silence);
      signal?.removeEventListener("abort", leave);
      left.abort();
    }
  }

  async #send(request: ApiRequest): Promise<Response> {
    const { method = "GET", path, query = {}, body, signal } = request;
    signal?.throwIfAborted();
    const { headers: given = {}, credentials = "same-origin", fetch: send = fetch } = this.#options;
    const own = typeof given === "function" ? await given() : given;
    const headers = new Headers({ accept: "application/json", ...own, ...request.headers });
    if (body !== undefined) headers.set("content-type", "application/json");
    const init = { method, headers, credentials, ...(signal ? { signal } : {}) } satisfies RequestInit;
    let response: Response;
    try {
      response = await send(this.#base + path + queryOf(query), {
        ...init,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (error) {
      signal?.throwIfAborted();
      throw unreachable(error);
    }
    if (response.ok) return response;
    throw await refusalOf(response);
  }
}

function queryOf(query: NonNullable<ApiRequest["query"]>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value));
  return given.size === 0 ? "" : `?${given.toString()}`;
}

async function jsonOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    // A truncated body means a broken connection; a complete body that is not JSON comes from another program.
    throw error instanceof SyntaxError ? unexpected(response) : unreachable(error);
  }
}

interface ErrorBody {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly retryable: boolean;
    readonly details?: Readonly<Record<string, Json>>;
  };
}

function isErrorBody(body: unknown): body is ErrorBody {
  if (typeof body !== "object" || body === null || !("error" in body)) return false;
  const { error } = body as { readonly error: Partial<ErrorBody["error"]> | null };
  return typeof error === "object" && typeof error?.code === "string" && typeof error.message === "string";
}

async function refusalOf(response: Response): Promise<TroupeClientError> {
  const { status } = response;
  const body: unknown = await response.json().catch(() => undefined);
  if (!isErrorBody(body)) return unexpected(response);
  const { code, message, retryable, details = {} } = body.error;
  const requestId = response.headers.get("x-request-id");
  const seconds = Number(response.headers.get("retry-after"));
  const error = new TroupeClientError(code, message, { status, retryable, details, requestId });
  if (seconds > 0) retryPauses.set(error, seconds * 1_000);
  return error;
}

/** Milliseconds until the next attempt that a server requested in its refusal. */
const retryPauses = new WeakMap<object, number>();

function unreachable(cause: unknown): TroupeClientError {
  const message =
    "the server does not answer; check the url, the network, and whether the server's `cors` allows this page";
  return new TroupeClientError("unreachable", message, { retryable: true, cause });
}

function silent(): TroupeClientError {
  return new TroupeClientError("unreachable", `the stream has been silent for ${SILENCE_MS / 1_000} seconds`, {
    retryable: true,
  });
}

function unexpected({ status, headers }: Response): TroupeClientError {
  const type = headers.get("content-type") ?? "no content type";
  const message = `expected an answer of troupe's API, got status ${status} with ${type}; check the url`;
  return new TroupeClientError("unexpected_answer", message, { status, retryable: momentary.has(status) });
}

function isWorthRetrying(error: unknown): error is TroupeClientError {
  if (!(error instanceof TroupeClientError)) return false;
  return error.status === null ? error.code === "unreachable" : momentary.has(error.status);
}

/** Waits before the next attempt. Rejects with the signal's reason. */
async function pause(tried: number, fault: unknown, signal: AbortSignal | undefined): Promise<void> {
  const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tried);
  const asked = typeof fault === "object" && fault !== null ? (retryPauses.get(fault) ?? 0) : 0;
  // Spreads the retries of clients that lost the same server.
  const ms = Math.max(asked, longest * (0.5 + Math.random() / 2));
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const leave = (): void => reject(signal?.reason as Error);
  const timer = setTimeout(resolve, ms);
  if (signal?.aborted === true) leave();
  signal?.addEventListener("abort", leave, { once: true });
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
}
