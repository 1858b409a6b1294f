export { entraAuth, type EntraAuthOptions } from "./core/entra.ts";
export { type Authenticate, type Identity, openAuth, tokenAuth, type TokenAuthOptions } from "./core/identity.ts";
export type { ServeLimits } from "./core/limits.ts";
export type { LogLine } from "./core/metrics.ts";
<<<<<<< HEAD
export { agentIdOfName, type NameScope } from "./core/names.ts";
export { type Listening, type ListenOptions, nodeListener } from "./listen.ts";
export { type RuntimesByTenant, type RuntimeServer, serveRuntime, type ServeOptions } from "./serve-runtime.ts";
=======
export type { Listening, ListenOptions } from "./listen.ts";
export type { RuntimesByTenant, ServeOptions } from "./serve-options.ts";
export { type RuntimeServer, serveRuntime } from "./serve-runtime.ts";
>>>>>>> main
export { type Failure, type InputIssue, jsonFailure, ServerError } from "./core/failures.ts";
export { type Call, type Route, route } from "./core/route.ts";
export { eventFrame, resumePoint, type SseFrame } from "./core/sse.ts";
export type { Caller, Page, StartedTurn } from "./core/caller.ts";
export type { Surface } from "./core/surface.ts";
