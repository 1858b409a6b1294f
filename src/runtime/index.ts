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
export { assertSameStubs, newSessionStubsSchema } from "./api/stub-options.ts";
export { createRuntime, watchTreeOf } from "./create-runtime.ts";
export type { AccountLimits, AccountsOptions, AccountWindows } from "./api/accounts-options.ts";
export { getRuntime, type GetRuntimeOptions } from "./get-runtime.ts";
export type {
  BudgetOverview,
  BudgetOverviews,
  Overview,
  OverviewPart,
  OverviewSnapshot,
  OverviewState,
} from "./projections/overview.ts";
export type {
  AgentMetadata,
  ArtifactStore,
  MessageCompaction,
  MessageStore,
  ProjectionContext,
  Projections,
  StateStore,
} from "./api/projection-stores.ts";
export {
  cutPointAt,
  type CutPoint,
  forkedTree,
  type ForkPoint,
  forkPoints,
  pointsText,
} from "./forks/index.ts";
export {
  deleteAgent,
  deleteOwner,
  type DeletionDependencies,
  finishDeletions,
  forgetData,
  pruneSchedules,
  pruneTrees,
  rootsOf,
  storedDeletions,
  unknownKeepers,
} from "./deletion/index.ts";
export type {
  DeletedTree,
  DeleteOptions,
  DeleteOwnerOptions,
  DeletionReport,
  OwnerDeletionReport,
  RetentionOptions,
} from "./api/deletion-types.ts";
export { storesRule } from "./api/runtime-options.ts";
export { Conversation } from "./agent/live-view.ts";
export { EffectNotes } from "./agent/intents.ts";
export { MachineFold } from "./agent/rebuild.ts";
export { Requests, type RequestsOptions } from "./core/requests.ts";
export { storedSteerOf } from "./handles/open-turn.ts";
export type {
  Decide,
  DecisionAttempt,
  RequestListOptions,
  Agent,
  AgentStartOptions,
  AgentStatus,
  GetMessagesOptions,
  PauseOptions,
  ResumeOptions,
  SpawnAgentOptions,
  SpawnedAgent,
} from "./api/agent-types.ts";
export { run, type RunOptions, TurnFailedError, TurnWaitingError } from "./run.ts";
export type {
  DrainReport,
  RuntimeDrainOptions,
  LeftBehind,
  RuntimeShutdownOptions,
  AgentListOptions,
  AuthRequest,
  FollowOptions,
  Runtime,
  RuntimeOptions,
  TreeSnapshot,
} from "./api/runtime-types.ts";
export type {
  RunNowOptions,
  ScheduleListOptions,
  ScheduleOptions,
  Schedules,
  ScheduleTimesOptions,
} from "./api/schedule-types.ts";
export { checkedTimes, scheduleOptionsOf } from "./schedules/schedule-options.ts";
export { assertApart } from "./schedules/schedule-distance.ts";
export { StoredSchedules } from "./schedules/stored-schedules.ts";
export type { HealthOptions, RuntimeHealth, RuntimeMetrics } from "./api/runtime-health.ts";
export type { Role, WorkSettings } from "./api/roles.ts";
export { eventsOfRow } from "./follow/tree-stream.ts";
export { eventOfPart, type LivePart, noCursor } from "./follow/live-part.ts";
export { type TreeWatcher, type TreeWatching, watchStoredTree } from "./follow/watch-tree.ts";
export { ownUse } from "./agent/turn-results.ts";
export type {
  Spending,
  TurnSpending,
  EventObserver,
  LimitStop,
  Turn,
  SteerAnswer,
  SteerOptions,
  TurnOptions,
  TurnRest,
  DeepPartial,
  TurnResult,
  WaitingTurn,
} from "./api/turn-types.ts";
