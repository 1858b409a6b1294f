// `troupe/state`: the shapes of what agents store and tell, with their schemas, and the views over them. docs/state.md explains it.

// An agent as one value, and its way to JSON and back
export {
  agentStateSchema,
  agentStateJson,
  agentStepJson,
  agentStepSchema,
  continuationJson,
  continuationSchema,
  executionStateJson,
  executionStateSchema,
  limitsJson,
  stepExecutionJson,
  stepExecutionSchema,
  toolExecutionJson,
  toolExecutionSchema,
  type AgentState,
  type AgentStateContext,
  type AgentStateJson,
  type AgentStep,
  type CallOutcome,
  type Continuation,
  type ExecutionState,
  type ExecutionStatus,
  type Inference,
  type LlmConfig,
  type MaterialisedExecution,
  type MaterialisedStep,
  type MaterialisedStepExecution,
  type StepExecution,
  type StepType,
  type ToolExecution,
} from "./state/index.ts";

// Changes, each of which gives a new value
export {
  forNextExecution,
  newAgentState,
  type NewAgentState,
  withAddedMessages,
  withContext,
  withEntry,
  withLlmConfig,
  withMetadata,
  withNewExecution,
} from "./state/index.ts";

// Views
export {
  type AgentStateSummary,
  type AgentStateView,
  costOfExecution,
  errorsOf,
  lastStepOf,
  stepsOf,
  stepTypeOf,
  stopReasonOf,
  usageOf,
  viewAgentState,
} from "./state/index.ts";

// Why a run stops, and the arithmetic of limits
export {
  isEmpty,
  isExhausted,
  type Amounts,
  type Limits,
  limitsOf,
  limitsSchema,
  remaining,
  type Remaining,
  unlimited,
} from "./budget/index.ts";
export {
  shouldStop,
  stopReasons,
  stopReasonSchema,
  stopSignalSchema,
  strongestSignal,
  wasForceStopped,
} from "./state/index.ts";

// Messages, entries, events and records
export {
  type AgentRecord,
  agentRecordSchema,
  agentRequestSchema,
  artifactSchema,
  type AssistantMessage,
  contentSchema,
  type Entry,
  type EntryOf,
  type EntryType,
  entrySchema,
  type FinishReason,
  type Lifecycle,
  lifecycleSchema,
  type MessageMetadata,
  messageSchema,
  modelRequestSchema,
  modelResponseSchema,
  type RequestKind,
  type RequestVerdict,
  type ResponseFormat,
  storedErrorSchema,
  type SystemMessage,
  type ToolCallRequest,
  type ToolMessage,
  traceEntrySchema,
  troupeEventSchema,
  type TroupeEventType,
  type TurnRecord,
  turnRecordSchema,
  usageSchema,
  type UserMessage,
} from "./state/index.ts";
