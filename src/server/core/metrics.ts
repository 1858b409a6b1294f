import type { RuntimeMetrics } from "../../runtime/index.ts";

/** One answered request, or one request to a receiver. It contains no headers, query or body, so no secret. */
export interface LogLine {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Id of the request; also in the header `x-request-id` of the answer. */
  readonly requestId: string;
  /** Method of the request. */
  readonly method: string;
  /**
   * The surface's name and the path of the route with its parameters in braces; `null` if no route matched. For a
   * request to a receiver: the surface's name and `webhook`.
   */
  readonly route: string | null;
  /** HTTP status; 0 if a receiver did not answer. */
  readonly status: number;
  /** Time until the headers were sent, or the stream was cut. */
  readonly durationMs: number;
  /** The caller, or `null` if it is unknown. */
  readonly userId: string | null;
  /** The caller's tenant, or `null` if it is unknown or the caller has none. */
  readonly tenant: string | null;
  /** Error code of a failed request. */
  readonly code: string | null;
  /** Message for the operator, without secrets: a server error, or an unknown tenant. Otherwise `null`. */
  readonly error: string | null;
}

interface RouteCount {
  readonly route: string;
  readonly status: number;
  requests: number;
  seconds: number;
}

/** Counts the requests of one server, for `/metrics`. */
export class RequestMetrics {
  readonly #counts = new Map<string, RouteCount>();
  /** Keyed by labels. */
  readonly #deliveries = new Map<string, number>();

  /** Counts requests to receivers by surface and outcome. */
  noteDelivery(surface: string, outcome: string): void {
    const labels = `surface=${quoted(surface)},outcome=${quoted(outcome)}`;
    this.#deliveries.set(labels, (this.#deliveries.get(labels) ?? 0) + 1);
  }

  note({ route, method, status, durationMs }: LogLine): void {
    const name = route === null ? "none" : `${method} ${route}`;
    const key = `${name} ${status}`;
    const count = this.#counts.get(key) ?? { route: name, status, requests: 0, seconds: 0 };
    count.requests += 1;
    count.seconds += durationMs / 1_000;
    this.#counts.set(key, count);
  }

  /** Metrics in the text format of Prometheus. `showsTenants`: figures of runtimes by tenant instead of their sums. */
  text(
    streams: number,
    runtimes: Readonly<Record<string, RuntimeMetrics>>,
    { showsTenants }: { readonly showsTenants: boolean },
  ): string {
    const counts = [...this.#counts.values()];
    const tenants = Object.entries(runtimes);
    const valuesOf = (value: (metrics: RuntimeMetrics) => number): (readonly [string, number])[] =>
      showsTenants
        ? tenants.map(([tenant, metrics]) => [`tenant=${quoted(tenant)}`, value(metrics)])
        : [["", tenants.reduce((sum, [, metrics]) => sum + value(metrics), 0)]];
    const heap = Math.max(0, ...tenants.map(([, { heapUsedBytes }]) => heapUsedBytes));
    return [
      ...family(
        "troupe_http_requests_total",
        "counter",
        "Answered requests.",
        counts.map((count) => [labelsOf(count), count.requests]),
      ),
      ...family(
        "troupe_http_request_seconds_total",
        "counter",
        "Time until the headers were sent.",
        counts.map((count) => [labelsOf(count), count.seconds]),
      ),
      ...family("troupe_webhook_deliveries_total", "counter", "Requests to receivers.", [...this.#deliveries]),
      ...family("troupe_http_streams", "gauge", "Open streams.", [["", streams]]),
      ...runtimeFamilies.flatMap(({ name, type, help, value }) => family(name, type, help, valuesOf(value))),
      // All runtimes of a process share one heap.
      ...family("troupe_heap_used_bytes", "gauge", "Heap in use.", [["", heap]]),
      "",
    ].join("\n");
  }
}

const runtimeFamilies: readonly {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly value: (metrics: RuntimeMetrics) => number;
}[] = [
  {
    name: "troupe_live_agents",
    type: "gauge",
    help: "Agents in the memory of this process.",
    value: ({ liveAgents }) => liveAgents,
  },
  {
    name: "troupe_turns_ended_total",
    type: "counter",
    help: "Turns that ended in this process.",
    value: ({ turnsEnded }) => turnsEnded,
  },
  {
    name: "troupe_parked_turns_total",
    type: "counter",
    help: "Turns that were passivated while they waited.",
    value: ({ parked }) => parked,
  },
  {
    name: "troupe_dead_letters",
    type: "gauge",
    help: "Dead letters in the queues.",
    value: ({ deadLetters }) => deadLetters,
  },
];

function family(name: string, type: string, help: string, values: readonly (readonly [string, number])[]): string[] {
  const lines = values.map(([labels, value]) => `${name}${labels === "" ? "" : `{${labels}}`} ${value}`);
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines];
}

function labelsOf({ route, status }: RouteCount): string {
  return `route=${quoted(route)},status="${status}"`;
}

function quoted(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}
