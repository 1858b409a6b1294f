// The door of the package, grouped by what its users do. A name stands here when a page of docs/ explains it; test/architecture/door
// holds the list. The ReAct core is in `troupe/react`, the shapes of what is stored and told in `troupe/state`.

// Define: agents
export {
  type AgentDefinition,
  type AgentOptions,
  type AgentTool,
  defineAgent,
  type InstructionsContext,
  subagent,
  type SubagentOptions,
  type SubagentTool,
} from "./agents/index.ts";

// Define: tools
export {
  askUser,
  type ClientTool,
  clientTool,
  type DataSubject,
  defineTool,
  type PreviousTool,
  type Reconciliation,
  type RunContext,
  type SavedArtifact,
  scheduleTurn,
  type SpawnedChild,
  type Tool,
  type ToolDefinition,
  type ToolResult,
  toolResult,
  type ToolResultPart,
} from "./tools/index.ts";
export type { EffectClass, SessionStub, StubMismatch, StubReport, StubUse } from "./state/index.ts";

// Define: models
export {
  bindThinking,
  fallbackModel,
  type GenerateOptions,
  type LanguageModel,
  type ModelChoice,
  type ModelCallIdentity,
  type ModelDelta,
  offlineModel,
  openaiModel,
  type OpenaiModelOptions,
  routedModel,
} from "./model/index.ts";
export type { CallSettings, ModelRequest, ModelResponse } from "./state/index.ts";

// Define: hooks and plugins
export {
  approval,
  contextWarning,
  type Hook,
  type HookContext,
  type HookDrafts,
  type Hooks,
  noProgressGuard,
  type Plugin,
  reflection,
  toolLogging,
  trust,
} from "./hooks/index.ts";
export type { HookName } from "./state/index.ts";

// Define: what a model sees of a conversation
export {
  type Compaction,
  type CompactionInput,
  type CompactionStrategy,
  type CompileInput,
  dropOldest,
  elideResults,
  fullHistory,
  type HistoryCompiler,
  reactHistory,
  summarize,
  windowHistory,
  withoutTraces,
} from "./context/index.ts";

// Run
export {
  type Agent,
  type AgentLoop,
  type AgentStartOptions,
  type AgentStatus,
  createAgent,
  createAgentLoop,
  type CreateAgentOptions,
  createRuntime,
  getRuntime,
  type LoopMessage,
  type LoopResult,
  type LoopTurn,
  run,
  type RunOptions,
  type Runtime,
  type RuntimeOptions,
  type SpawnedAgent,
  type SteerAnswer,
  type Turn,
  type TurnContext,
  TurnFailedError,
  type TurnOptions,
  type TurnRest,
  type DeepPartial,
  type TurnResult,
  TurnWaitingError,
  type WaitingTurn,
} from "./runtime/index.ts";

// Decide and authenticate
export type { AuthRequest, Decide, DecisionAttempt } from "./runtime/index.ts";
export type { AgentRequest } from "./state/index.ts";
export type { Auth } from "./tools/index.ts";

// Budget
export {
  type Account,
  type Budget,
  type LimitName,
  type ModelUse,
  type Price,
  totalUse,
  type UseByModel,
} from "./budget/index.ts";
export type { PriceTable } from "./model/index.ts";
export type {
  LimitStop,
  Spending,
  TurnSpending,
} from "./runtime/index.ts";
export type { StopReason, StopSignal, Usage } from "./state/index.ts";

// Delete
export type { DeletedTree, DeletionReport, OwnerDeletionReport, RetentionOptions } from "./runtime/index.ts";
export type { Deletion } from "./state/index.ts";

// Watch
export type { AgentOverview } from "./state/index.ts";
export type {
  BudgetOverview,
  DrainReport,
  EventObserver,
  Overview,
  OverviewState,
  RuntimeHealth,
  RuntimeMetrics,
} from "./runtime/index.ts";
export type { TraceEntry, TroupeEvent, TroupeEventOf } from "./state/index.ts";
export { formatAgentCursor, formatTurnCursor } from "./stores/index.ts";

// Store, and hand work on
export { localQueues, type QueueCount, type QueueHealth, type Queues } from "./queues/index.ts";
export type {
  AgentMetadata,
  ArtifactStore,
  MessageCompaction,
  MessageStore,
  ProjectionContext,
  Projections,
  StateStore,
} from "./runtime/index.ts";
export { memoryStores, type Stores } from "./stores/index.ts";

// Errors
export {
  AgentBusyError,
  AgentDeletedError,
  AgentNotStartedError,
  AgentStopError,
  AlreadyOwnedError,
  ContextTooLongError,
  CorruptRecordError,
  type ErrorFamily,
  InvalidInputError,
  JobStoppedError,
  LeaseLostError,
  ModelError,
  NotFoundError,
  OutcomeUnknownError,
  PolicyRefusedError,
  RequestConflictError,
  StoreRolledBackError,
  StoreUnavailableError,
  StubMismatchError,
  ToolNotStartedError,
  TroupeError,
  TurnConflictError,
  TurnInterruptedError,
  UnsupportedError,
} from "./errors/index.ts";

// Values that all of them share
export type { Clock, Json, TraceHeaders } from "./base/index.ts";
export {
  type Artifact,
  type Content,
  type ContentPart,
  type JsonObject,
  type Message,
  type StoredError,
  textOf,
} from "./state/index.ts";
