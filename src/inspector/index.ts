export type { ActorFrame, BudgetFrame, BudgetRow, InspectionFrame } from "./frames.ts";
export { createInspector, type Inspector, type InspectorOptions } from "./hub.ts";
export { type InspectorServer, type InspectorServerOptions, serveInspector, startInspector } from "./server.ts";
