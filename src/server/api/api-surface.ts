import { jsonFailure } from "../core/failures.ts";
import type { Route } from "../core/route.ts";
import type { Surface } from "../core/surface.ts";
import { agentRoutes } from "./agent-routes.ts";
import { controlRoutes } from "./control-routes.ts";
import { documentRoutes } from "./document-routes.ts";
import { requestRoutes } from "./request-routes.ts";
import { Tickets, type TicketStore } from "./tickets.ts";
import { scheduleRoutes } from "./schedule-routes.ts";
import { treeRoutes } from "./tree-routes.ts";
import { turnRoutes } from "./turn-routes.ts";

/** Options of `apiSurface()`. */
export interface ApiSurfaceOptions {
  /** Storage of unused tickets. Default: this process's memory, so that only this process accepts its tickets. */
  readonly tickets?: TicketStore | undefined;
}

/** troupe's own API for clients in any language, under `/api`. */
export function apiSurface({ tickets }: ApiSurfaceOptions = {}): Surface {
  const routes: readonly Route[] = [
    ...agentRoutes,
    ...controlRoutes,
    ...turnRoutes,
    ...requestRoutes,
    ...scheduleRoutes,
    ...treeRoutes(new Tickets(tickets)),
  ];
  return {
    name: "api",
    paths: ["/api"],
    routes: [...routes, ...documentRoutes(routes)],
    failure: (failure) => jsonFailure(failure),
  };
}
