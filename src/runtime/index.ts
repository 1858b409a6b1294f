export { type CreateAgentOptions, createAgent } from "./create-agent.ts";
export {
  type AgentLoop,
  type AgentLoopOptions,
  createAgentLoop,
  type LoopMessage,
  type LoopResult,
  type LoopTurn,
  type TurnContext,
} from "./create-agent-loop.ts";
export { createRuntime } from "./create-runtime.ts";
export type { BudgetOverview, BudgetOverviews } from "./projections/overview-budgets.ts";
export {
  type AgentOverview,
  createOverview,
  noted,
  type Overview,
  type OverviewState,
} from "./projections/overview.ts";
export type {
  AgentMetadata,
  ArtifactStore,
  MessageCompaction,
  MessageStore,
  Projections,
  StateStore,
} from "./doors/projection-stores.ts";
export { MachineFold } from "./agent/rebuild.ts";
export { RequestDesk, type RequestDeskOptions } from "./core/request-desk.ts";
export type { Decide, DecisionAttempt, RequestListOptions } from "./doors/request-types.ts";
export { run, type RunOptions, TurnWaitingError } from "./run.ts";
export type { DrainReport, RuntimeDrainOptions } from "./doors/drain-options.ts";
export type { LeftBehind, RuntimeShutdownOptions } from "./doors/leaving.ts";
export type { HealthOptions, RuntimeHealth, RuntimeMetrics } from "./doors/runtime-health.ts";
export type { Role, RoleOptions, WorkSettings } from "./doors/roles.ts";
export { eventsOfRow } from "./follow/tree-stream.ts";
export { ownUse, type Spending, type TurnSpending } from "./doors/turn-spending.ts";
export type {
  EventObserver,
  LimitStop,
  Turn,
  TurnOptions,
  TurnRest,
  TurnResult,
  WaitingTurn,
} from "./doors/turn-types.ts";
export type {
  Agent,
  AgentListOptions,
  AgentStartOptions,
  AgentStatus,
  AuthRequest,
  FollowOptions,
  GetMessagesOptions,
  PauseOptions,
  ResumeOptions,
  Runtime,
  RuntimeOptions,
  SpawnAgentOptions,
  SpawnedAgent,
} from "./doors/types.ts";
