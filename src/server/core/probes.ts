import type { Runtime } from "../../runtime/index.ts";
import { jsonFailure, ServerError } from "./failures.ts";
import type { RequestMetrics } from "./metrics.ts";
import { type Route, route } from "./route.ts";
import type { Surface } from "./surface.ts";

export interface ProbePlace {
  /** By tenant. */
  readonly runtimes: Readonly<Record<string, Runtime>>;
  readonly metrics: RequestMetrics;
  readonly openStreams: () => number;
}

const PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8";

/**
 * `/healthz`: the process answers. `/readyz`: its runtimes are healthy, else 503. `/metrics`: counters. They are public,
 * and hold no name, no address and no text of anybody.
 */
export function probeSurface({ runtimes, metrics, openStreams }: ProbePlace): Surface {
  const shape = { method: "GET", access: "public" } as const;
  const routes: readonly Route[] = [
    route({
      ...shape,
      id: "healthz",
      path: "/healthz",
      summary: "Whether the process answers",
      responses: { 200: { description: "It does." } },
      handle: () => Response.json({ status: "ok" }),
    }),
    route({
      ...shape,
      id: "readyz",
      path: "/readyz",
      summary: "Whether the server can take work",
      responses: { 200: { description: "It can." }, 503: { description: "It cannot now.", isError: true } },
      handle: async () => {
        const reports = await Promise.all(Object.values(runtimes).map((runtime) => runtime.health()));
        if (reports.every(({ isHealthy }) => isHealthy)) return Response.json({ status: "ok" });
        throw new ServerError("unavailable", "not ready", { headers: { "retry-after": "5" } });
      },
    }),
    route({
      ...shape,
      id: "metrics",
      path: "/metrics",
      summary: "Counters in the text format of Prometheus",
      responses: { 200: { description: "The counters.", media: "text/plain" } },
      handle: async () => {
        const counted = Object.entries(runtimes).map(
          async ([tenant, runtime]) => [tenant, await runtime.metrics()] as const,
        );
        const text = metrics.text(openStreams(), Object.fromEntries(await Promise.all(counted)));
        return new Response(text, { headers: { "content-type": PROMETHEUS } });
      },
    }),
  ];
  return { name: "server", paths: [], routes, failure: jsonFailure };
}
