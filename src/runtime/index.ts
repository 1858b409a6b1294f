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
export type { BudgetOverview, BudgetOverviews } from "./overview-budgets.ts";
export { type AgentOverview, createOverview, noted, type Overview, type OverviewState } from "./overview.ts";
export type {
  AgentMetadata,
  ArtifactStore,
  MessageCompaction,
  MessageStore,
  Projections,
  StateStore,
} from "./projection-stores.ts";
export { MachineFold } from "./rebuild.ts";
export { RequestDesk, type RequestDeskOptions } from "./request-desk.ts";
export type { Decide, DecisionAttempt, RequestListOptions } from "./request-types.ts";
export { run, type RunOptions, TurnWaitingError } from "./run.ts";
export type { DrainReport, RuntimeDrainOptions } from "./drain-options.ts";
export type { LeftBehind, RuntimeShutdownOptions } from "./leaving.ts";
export type { HealthOptions, RuntimeHealth, RuntimeMetrics } from "./runtime-health.ts";
export type { Role, RoleOptions, WorkSettings } from "./roles.ts";
export { eventsOfRow } from "./row-events.ts";
export { ownUse, type Spending, type TurnSpending } from "./turn-spending.ts";
export type {
  EventObserver,
  LimitStop,
  Turn,
  TurnOptions,
  TurnRest,
  TurnResult,
  WaitingTurn,
} from "./turn-types.ts";
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
} from "./types.ts";
