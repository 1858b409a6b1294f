import { randomUUID } from "node:crypto";
import { Hono } from "hono";
import { createRedactor, harmless, hasMethods, optionsOf, type Redactor, systemClock } from "../base/index.ts";
import { InvalidInputError, NotFoundError } from "../errors/index.ts";
import type { Runtime } from "../runtime/index.ts";
import { apiSurface } from "./api/api-surface.ts";
import { countedAddress } from "./core/addresses.ts";
import { isLoopbackName } from "../net/index.ts";
import { Admission, type RequestContext } from "./core/admission.ts";
import { callOf, type CallDependencies } from "./core/call.ts";
import { failureOf, jsonFailure, ServerError } from "./core/failures.ts";
import { isOpenAuth } from "./core/identity.ts";
import { limitsAtWork } from "./core/limits.ts";
import { type LogLine, RequestMetrics } from "./core/metrics.ts";
import { assertNear, assertWelcome, type OriginRules, preflight, sharingHeaders } from "./core/origins.ts";
import { probeSurface } from "./core/probes.ts";
import type { Route } from "./core/route.ts";
import type { Surface } from "./core/surface.ts";
import { assertOpenToLoopback, listenOptionsSchema, type Listening, type ListenOptions, listenOn } from "./listen.ts";
import {
  type RuntimesByTenant,
  runtimesOf,
  serveOptionsSchema,
  type ServedRuntimes,
  type ServeOptions,
} from "./serve-options.ts";
import type { Delivery } from "./webhooks/tree-delivery.ts";
import { Webhooks } from "./webhooks/webhooks.ts";

/** A runtime behind a fetch handler. */
export interface RuntimeServer {
  /**
   * Answers one request; never rejects. It does not use `this`, so it can be mounted directly. `env`: the bindings of
   * Hono's Node adapter (`{ outgoing }`), which let the server cut streams of clients that do not read.
   */
  readonly fetch: (request: Request, env?: unknown) => Promise<Response>;
  /**
   * Listens on a port of this machine. Rejects with `InvalidInputError` if the port is taken or an option is invalid.
   */
  listen(options?: ListenOptions): Promise<Listening>;
  /**
   * Refuses new requests, ends all streams (clients continue on another server after their last id), waits for the
   * other requests, and closes the ports. The runtime keeps running.
   */
  close(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
}

const DEFAULT_WAIT_MS = 600_000;
const DEFAULT_KEEP_ALIVE_MS = 15_000;
const DEFAULT_STALL_MS = 60_000;
/** Time to wait for the first frame before the headers are sent, in milliseconds. */
const FIRST_FRAME_MS = 250;
const DEFAULT_CLOSE_MS = 5_000;

/**
 * Serves a runtime over HTTP, or one runtime per tenant: as a fetch handler to mount, or on a port of its own. Throws
 * `InvalidInputError` for surfaces with conflicting routes.
 */
export function serveRuntime(runtime: Runtime | RuntimesByTenant, given: ServeOptions): RuntimeServer {
  const options = optionsOf<ServeOptions>(given, "serveRuntime()", serveOptionsSchema);
  const server = new Serving(runtimesOf(runtime, options.tenant), options);
  return {
    fetch: (request, env) => server.answer(request, env),
    listen: (how) => server.listen(how),
    close: ({ timeoutMs = DEFAULT_CLOSE_MS } = {}) => server.close(timeoutMs),
  };
}

class Serving {
  readonly #options: ServeOptions;
  readonly #dependencies: CallDependencies;
  readonly #admission: Admission;
  readonly #surfaces: readonly Surface[];
  readonly #metrics = new RequestMetrics();
  readonly #app = new Hono<{ Bindings: { passage: RequestContext } }>();
  readonly #origins: OriginRules;
  readonly #listening = new Set<Listening>();
  readonly #log: (line: LogLine) => void;
  readonly #base: string;
  readonly #webhooks: Webhooks | undefined;
  #redactor: Redactor | undefined;
  #isClosing = false;

  constructor({ runtimes, runtimeOf }: ServedRuntimes, options: ServeOptions) {
    const { clock = systemClock, authenticate, cors = [], onLog, surfaces = [apiSurface()], limits } = options;
    this.#options = options;
    this.#base = options.basePath ?? "";
    this.#log = harmless("onLog of serveRuntime()", (line: LogLine) => onLog?.(line));
    const onDelivery = (runtime: Runtime, delivery: Delivery): void => this.#noteDelivery(runtime, delivery);
    this.#webhooks =
      options.webhooks &&
      new Webhooks(options.webhooks, { runtimes: Object.values(runtimes), surfaces, clock, onDelivery });
    this.#dependencies = {
      limits: limitsAtWork(limits),
      clock,
      basePath: this.#base,
      waitMs: options.waitMs ?? DEFAULT_WAIT_MS,
      keepAliveMs: options.keepAliveMs ?? DEFAULT_KEEP_ALIVE_MS,
      stallMs: options.stallMs ?? DEFAULT_STALL_MS,
      firstFrameMs: FIRST_FRAME_MS,
      webhooks: this.#webhooks,
      stubs: options.stubs,
    };
    this.#admission = new Admission({ authenticate, runtimeOf, limits: this.#dependencies.limits, clock });
    const headers = surfaces.flatMap((surface) => surface.headers ?? []);
    this.#origins = { cors, headers, hosts: () => this.#ownHosts(), loopbackOnly: isOpenAuth(authenticate) };
    const openStreams = (): number => this.#dependencies.limits.streams.total;
    const access = options.metrics ?? "local";
    this.#surfaces = [probeSurface({ runtimes, metrics: this.#metrics, openStreams, access }), ...surfaces];
    assertNoClash(this.#surfaces);
    for (const surface of this.#surfaces) this.#mount(surface);
    // Registered after all routes, because the pattern of one path may match the path of another.
    for (const surface of this.#surfaces) this.#refuseOtherMethods(surface);
    this.#app.notFound(({ env }) => this.#failUncalled(new NotFoundError("there is no such route"), env.passage));
    this.#app.onError((error, { env }) => this.#fail(error, env.passage));
    this.#webhooks?.start();
  }

  async answer(request: Request, env: unknown): Promise<Response> {
    const { clock } = this.#dependencies;
    const [at, begun] = [clock.now(), clock.elapsed()];
    const requestId = requestIdOf(request);
    const known = { route: null, identity: null, code: null, error: null };
    const peer = peerOf(env);
    const address = countedAddress({ request, peer, proxies: this.#options.proxies ?? 0 });
    const passage: RequestContext = { request, requestId, cut: cutOf(env), peer, address, begun, ...known };
    const answer = await this.#respond(passage);
    const location = answer.headers.get("location");
    const response = withHeaders(answer, {
      "x-request-id": requestId,
      "x-content-type-options": "nosniff",
      ...(location?.startsWith("/") ? { location: this.#base + location } : {}),
      ...sharingHeaders(request, this.#origins),
    });
    const line = this.#lineOf(passage, { at, status: response.status });
    this.#metrics.note(line);
    this.#log(line);
    return response;
  }

  async listen(given: ListenOptions = {}): Promise<Listening> {
    const options = optionsOf<ListenOptions>(given, "listen()", listenOptionsSchema);
    assertOpenToLoopback(this.#options.authenticate, options.host ?? "127.0.0.1");
    const listening = await listenOn((request, env) => this.answer(request, env), options);
    this.#listening.add(listening);
    return listening;
  }

  async close(timeoutMs: number): Promise<void> {
    this.#isClosing = true;
    this.#dependencies.limits.streams.close();
    await this.#webhooks?.close();
    await Promise.all([...this.#listening].map((listening) => listening.close(timeoutMs, this.#dependencies.clock)));
    this.#listening.clear();
  }

  #mount(surface: Surface): void {
    for (const route of surface.routes) {
      this.#app.on(route.method, patternOf(this.#base + route.path), async (context) => {
        const { passage } = context.env;
        passage.route = `${surface.name} ${route.path}`;
        try {
          return await this.#handle(surface, route, passage, context.req.param() as Record<string, string>);
        } catch (error) {
          return await this.#fail(error, passage, surface);
        }
      });
    }
  }

  #refuseOtherMethods(surface: Surface): void {
    for (const path of new Set(surface.routes.map((route) => route.path))) {
      const methods = surface.routes.filter((route) => route.path === path).map(({ method }) => method);
      this.#app.all(patternOf(this.#base + path), async (context) => {
        const { passage } = context.env;
        passage.route = `${surface.name} ${path}`;
        const headers = { allow: methods.join(", ") };
        const refusal = new ServerError("method_not_allowed", "Method Not Allowed", { headers });
        return await this.#failUncalled(refusal, passage, surface);
      });
    }
  }

  async #respond(passage: RequestContext): Promise<Response> {
    const { request } = passage;
    try {
      if (this.#isClosing)
        throw new ServerError("unavailable", "this server is shutting down", { headers: { "retry-after": "1" } });
      assertWelcome(request, this.#origins);
      if (this.#origins.loopbackOnly) assertNear(passage.peer);
      return preflight(request, this.#origins) ?? (await this.#app.fetch(request, { passage }));
    } catch (error) {
      return await this.#fail(error, passage);
    }
  }

  async #handle(
    surface: Surface,
    route: Route,
    passage: RequestContext,
    params: Readonly<Record<string, string>>,
  ): Promise<Response> {
    const { request, requestId, cut } = passage;
    const caller = await this.#admission.callerOf(passage, { surface, route, params });
    const onStreamError = (error: unknown): void => this.#noteStreamError(passage, error);
    const call = await callOf({ request, requestId, cut, route, params, caller, onStreamError }, this.#dependencies);
    try {
      return await route.handle(call);
    } finally {
      call.end();
    }
  }

  /** Refuses a request without a route, and counts it like one without a caller. */
  async #failUncalled(error: Error, passage: RequestContext, surface?: Surface): Promise<Response> {
    try {
      await this.#admission.assertFewAnonymous(passage);
    } catch (refusal) {
      return await this.#fail(refusal, passage, surface);
    }
    return await this.#fail(error, passage, surface);
  }

  /** The answer to an error, in the form of the request's surface. */
  async #fail(error: unknown, passage: RequestContext, surface = this.#surfaceAt(passage.request)): Promise<Response> {
    const failure = failureOf(error);
    passage.code = failure.code;
    if (failure.status >= 500) passage.error = this.#words(error);
    try {
      const response = await (surface?.failure(failure, passage.request) ?? jsonFailure(failure));
      const missing = Object.entries(failure.headers).filter(([name]) => !response.headers.has(name));
      return withHeaders(response, Object.fromEntries(missing));
    } catch (fault) {
      passage.error = this.#words(fault);
      return jsonFailure(failureOf(fault));
    }
  }

  #noteDelivery({ tenant }: Runtime, delivery: Delivery): void {
    const { webhook, host, outcome, status, durationMs, reason } = delivery;
    const { surface, turnId, ownerId } = webhook;
    this.#metrics.noteDelivery(surface, outcome);
    const at = this.#dependencies.clock.now();
    const who = { method: "POST", route: `${surface} webhook`, userId: ownerId, tenant };
    const code = outcome === "delivered" ? null : `webhook_${outcome}`;
    const error = reason === null ? null : `${turnId} at ${host}: ${reason}`;
    this.#log({ ...who, at, requestId: randomUUID(), status, durationMs, code, error });
    if (outcome !== "given_up") return;
    process.emitWarning(`a webhook of ${turnId} at ${host} was given up after repeated failures: ${reason}`, {
      code: "TROUPE_WEBHOOK_GIVEN_UP",
    });
  }

  #noteStreamError(passage: RequestContext, error: unknown): void {
    const line = this.#lineOf(passage, { at: this.#dependencies.clock.now(), status: 200 });
    this.#log({ ...line, code: "stream_cut", error: this.#words(error) });
  }

  #lineOf(passage: RequestContext, { at, status }: Pick<LogLine, "at" | "status">): LogLine {
    const { request, requestId, route, identity, code, error, begun } = passage;
    return {
      at,
      requestId,
      method: request.method,
      route,
      status,
      durationMs: this.#dependencies.clock.elapsed() - begun,
      userId: identity?.userId ?? null,
      tenant: identity?.tenant ?? null,
      code,
      error,
    };
  }

  #words(error: unknown): string {
    this.#redactor ??= createRedactor();
    return this.#redactor.message(error);
  }

  #surfaceAt(request: Request): Surface | undefined {
    const { pathname } = new URL(request.url);
    const isBelow = (path: string): boolean => `${pathname}/`.startsWith(`${this.#base}${path}/`);
    const matches = this.#surfaces.flatMap((surface) =>
      surface.paths.filter(isBelow).map((path) => ({ surface, path })),
    );
    return matches.toSorted((one, other) => other.path.length - one.path.length)[0]?.surface;
  }

  #ownHosts(): readonly string[] | undefined {
    const ports = [...this.#listening];
    const own = ports.flatMap(({ port }) => ["127.0.0.1", "localhost", "[::1]"].map((name) => `${name}:${port}`));
    const { hosts } = this.#options;
    if (hosts !== undefined) return [...hosts.map((host) => host.toLowerCase()), ...own];
    return ports.length > 0 && ports.every(({ host }) => isLoopbackName(host)) ? own : undefined;
  }
}

/** Adds headers; the headers of a fetched response are immutable, so it is copied. */
function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  try {
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
    return response;
  } catch {
    const { status, statusText } = response;
    return new Response(response.body, {
      status,
      statusText,
      headers: { ...Object.fromEntries(response.headers), ...headers },
    });
  }
}

/** The function that cuts the connection of a request from Hono's Node adapter, if any. */
function cutOf(env: unknown): (() => void) | undefined {
  const outgoing: unknown = typeof env === "object" && env !== null && "outgoing" in env ? env.outgoing : undefined;
  return hasMethods(outgoing, ["destroy"]) ? () => (outgoing as { destroy(): void }).destroy() : undefined;
}

/** Converts `/api/agents/{agentId}` to the router's syntax. */
function patternOf(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}

function assertNoClash(surfaces: readonly Surface[]): void {
  const known = new Map<string, string>();
  for (const { name, routes } of surfaces) {
    for (const { method, path } of routes) {
      const place = `${method} ${path}`;
      const other = known.get(place);
      if (other !== undefined) throw new InvalidInputError(`the surfaces "${other}" and "${name}" both have ${place}`);
      known.set(place, name);
    }
  }
}

/** The remote address of a request from Hono's Node adapter. */
function peerOf(env: unknown): string | undefined {
  return (env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined)?.incoming?.socket?.remoteAddress;
}

/** The request id from a client or proxy if it is safe for logs, else a new one. */
function requestIdOf(request: Request): string {
  const given = request.headers.get("x-request-id") ?? "";
  return /^[\w.-]{1,128}$/.test(given) ? given : randomUUID();
}
