export type { BudgetListener } from "./budgets.ts";
export type {
  ActorFrame,
  BudgetFrame,
  BudgetRow,
  EventFrame,
  FrameEvent,
  FrameSnapshot,
  InspectionFrame,
  SnapshotFrame,
} from "./frames.ts";
export { createInspector, type FrameListener, type Inspector, type InspectorOptions } from "./hub.ts";
export { type InspectorServer, type InspectorServerOptions, serveInspector, startInspector } from "./server.ts";
