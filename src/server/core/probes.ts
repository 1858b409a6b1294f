import type { Runtime } from "../../runtime/index.ts";
import { jsonFailure, ServerError } from "./failures.ts";
import type { RequestMetrics } from "./metrics.ts";
import { type Route, route } from "./route.ts";
import type { Surface } from "./surface.ts";

/**
 * Access to `/metrics`. `local`: clients on the server's own machine. `open`: all clients, without names of tenants.
 * `off`: disabled. `{ scope }`: callers with that scope.
 */
export type MetricsAccess = "local" | "open" | "off" | { readonly scope: string };

export interface ProbeDependencies {
  /** Keyed by tenant. */
  readonly runtimes: Readonly<Record<string, Runtime>>;
  readonly metrics: RequestMetrics;
  readonly openStreams: () => number;
  readonly access: MetricsAccess;
}

const PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8";

/**
 * `/healthz`: 200 while the process runs. `/readyz`: 200 while its runtimes are healthy, else 503. Both are public and
 * contain no details. `/metrics`: counters, for clients that `access` allows.
 */
export function probeSurface(dependencies: ProbeDependencies): Surface {
  const { runtimes } = dependencies;
  const shape = { method: "GET", access: "public" } as const;
  const routes: readonly Route[] = [
    route({
      ...shape,
      id: "healthz",
      path: "/healthz",
      summary: "Whether the process runs",
      responses: { 200: { description: "The process runs." } },
      handle: () => Response.json({ status: "ok" }),
    }),
    route({
      ...shape,
      id: "readyz",
      path: "/readyz",
      summary: "Whether the server is ready",
      responses: { 200: { description: "Ready." }, 503: { description: "Not ready.", isError: true } },
      handle: async () => {
        const reports = await Promise.all(Object.values(runtimes).map((runtime) => runtime.health()));
        if (reports.every(({ isHealthy }) => isHealthy)) return Response.json({ status: "ok" });
        throw new ServerError("unavailable", "not ready", { headers: { "retry-after": "5" } });
      },
    }),
    ...metricsRoutes(dependencies),
  ];
  return { name: "server", paths: [], routes, failure: jsonFailure };
}

function metricsRoutes({ runtimes, metrics, openStreams, access }: ProbeDependencies): readonly Route[] {
  if (access === "off") return [];
  const scope = typeof access === "object" ? access.scope : undefined;
  const ways = { local: "local", open: "public" } as const;
  const shown = route({
    id: "metrics",
    method: "GET",
    path: "/metrics",
    access: typeof access === "object" ? "caller" : ways[access],
    summary: "Counters in the text format of Prometheus",
    responses: { 200: { description: "The counters.", media: "text/plain" } },
    handle: async (call) => {
      if (scope !== undefined && !call.identity.scopes.includes(scope)) {
        throw new ServerError("forbidden", `the metrics require the scope "${scope}"`);
      }
      const counted = Object.entries(runtimes).map(
        async ([tenant, runtime]) => [tenant, await runtime.metrics()] as const,
      );
      const text = metrics.text(openStreams(), Object.fromEntries(await Promise.all(counted)), {
        showsTenants: access !== "open",
      });
      return new Response(text, { headers: { "content-type": PROMETHEUS } });
    },
  });
  return [shown];
}
