import {
  type AgentStep,
  type ExecutionState,
  type ExecutionStatus,
  type StepType,
  type StoredError,
  stepTypeOf,
  executionStateSchema,
} from "./execution.ts";
import { errorsOf, lastStepOf, stepsOf, stopReasonOf, usageOf, freshExecution } from "./execution-fold.ts";
import { textOf } from "./content-text.ts";
import { type Message, messageSchema } from "./message.ts";
import { type Usage, type ResponseFormat, responseFormatSchema } from "./model-call.ts";
import type { Continuation, StopReason } from "./stop.ts";
import { z } from "zod";
import {
  createId,
  type DeepReadonly,
  deepFreeze,
  countSchema,
  integerSchema,
  optionalPositiveSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import type { Entry } from "./entry.ts";
import { foldExecution } from "./execution-fold.ts";
import { numberOfTurn } from "./agent-ids.ts";
import type { AgentRecord } from "./record.ts";
import { jsonObjectSchema, type JsonObject } from "./json.ts";

/** The model of an agent and its settings. */
export const llmConfigSchema = z.object({
  provider: textSchema,
  model: textSchema,
  temperature: z.number().optional(),
  maxOutputTokens: optionalPositiveSchema,
});
export type LlmConfig = DeepReadonly<z.infer<typeof llmConfigSchema>>;

export const agentStateContextSchema = z.object({
  /** The conversation, oldest first. */
  messages: z.array(messageSchema),
  metadata: jsonObjectSchema,
  systemPrompt: textSchema,
  responseFormat: responseFormatSchema.nullable(),
});
export type AgentStateContext = DeepReadonly<z.infer<typeof agentStateContextSchema>>;

/**
 * An agent as one value: the session data (identity, context), and the execution, which is the newest turn. Immutable: each change is a
 * function that returns a new value with a later `updatedAt`.
 */
export const agentStateSchema = z.object({
  agentId: textSchema,
  parentAgentId: textOrNullSchema,
  /** Milliseconds since the epoch. */
  createdAt: integerSchema,
  updatedAt: integerSchema,
  /** Number of started executions. */
  executionCount: countSchema,
  llmConfig: llmConfigSchema.nullable(),
  context: agentStateContextSchema,
  /** The newest turn, open or ended; `null` before the first, and after `forNextExecution`. */
  execution: executionStateSchema.nullable(),
});
export type AgentState = DeepReadonly<z.infer<typeof agentStateSchema>>;

/** Options of `newAgentState()`. */
export interface NewAgentState {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Default: a random UUID. */
  readonly agentId?: string | undefined;
  /** The agent that spawned it. Default: none. */
  readonly parentAgentId?: string | undefined;
  /** The model and its settings. Default: none. */
  readonly llmConfig?: LlmConfig | undefined;
  /** Initial context. Default: an empty conversation without system prompt and metadata. */
  readonly context?: Partial<AgentStateContext> | undefined;
}

/** The state of an agent before its first execution. */
export function newAgentState(options: NewAgentState): AgentState {
  const { now, agentId = createId(), parentAgentId = null, llmConfig = null } = options;
  const empty = { messages: [], metadata: {}, systemPrompt: "", responseFormat: null };
  return Object.freeze({
    agentId,
    parentAgentId,
    createdAt: now,
    updatedAt: now,
    executionCount: 0,
    llmConfig,
    context: Object.freeze({ ...empty, ...options.context }),
    execution: null,
  });
}

type Change = Partial<Pick<AgentState, "context" | "execution" | "executionCount" | "llmConfig">>;

function changed(state: AgentState, change: Change, now: number): AgentState {
  return Object.freeze({ ...state, ...change, updatedAt: Math.max(now, state.updatedAt) });
}

/** The state with fields of its context replaced: messages, metadata, system prompt, response format. */
export function withContext(state: AgentState, context: Partial<AgentStateContext>, now: number): AgentState {
  return changed(state, { context: Object.freeze({ ...state.context, ...context }) }, now);
}

/** The state with messages added to its conversation. */
export function withAddedMessages(state: AgentState, messages: readonly Message[], now: number): AgentState {
  return withContext(state, { messages: [...state.context.messages, ...messages] }, now);
}

/** The state with metadata added; members of the same name are replaced. */
export function withMetadata(state: AgentState, metadata: JsonObject, now: number): AgentState {
  return withContext(state, { metadata: { ...state.context.metadata, ...metadata } }, now);
}

/** The state with another model and its settings. */
export function withLlmConfig(state: AgentState, llmConfig: LlmConfig | null, now: number): AgentState {
  return changed(state, { llmConfig }, now);
}

/** The state at the start of its next execution. */
export function withNewExecution(state: AgentState, executionId: string, now: number): AgentState {
  const execution = freshExecution(executionId, now);
  return changed(state, { execution, executionCount: state.executionCount + 1 }, now);
}

/** The state after one more entry of its open execution; the same object if the entry does not affect it. */
export function withEntry(state: AgentState, entry: Entry): AgentState {
  if (!state.execution) return state;
  const execution = foldExecution(state.execution, entry);
  return execution === state.execution ? state : changed(state, { execution }, entry.at);
}

/** Only the session data, ready for the next execution. */
export function forNextExecution(state: AgentState, now: number): AgentState {
  return changed(state, { execution: null }, now);
}

/** Settings of an agent's definition that are not in its record. */
export interface AgentSettings {
  readonly llmConfig: LlmConfig | null;
  readonly systemPrompt: string;
  readonly responseFormat: ResponseFormat | null;
}

const noSettings: AgentSettings = { llmConfig: null, systemPrompt: "", responseFormat: null };

/**
 * Derives the public state from the record, the fold of the newest turn and the stored conversation. Nothing is stored for it, and its
 * values are frozen. `waits`: whether the open turn waits for subagents or for a decision on a request.
 */
export function agentStateOf(
  record: AgentRecord,
  execution: ExecutionState | null,
  messages: readonly Message[],
  settings: AgentSettings = noSettings,
  waits = false,
): AgentState {
  const { agentId, parentAgentId, createdAt, lastActivity, metadata, status, turnCount } = record;
  const { llmConfig, systemPrompt, responseFormat } = settings;
  const rests = (waits || status === "paused") && execution?.status === "in_progress";
  const times = [createdAt, lastActivity, messages.at(-1)?.createdAt, ...timesOf(execution)];
  return deepFreeze({
    agentId,
    parentAgentId,
    createdAt,
    updatedAt: Math.max(...times.filter((at) => typeof at === "number")),
    executionCount: execution ? Math.max(turnCount, numberOfTurn(execution.executionId)) : turnCount,
    llmConfig,
    context: { messages, metadata, systemPrompt, responseFormat },
    execution: rests ? { ...execution, status: "waiting" as const } : execution,
  });
}

function timesOf(execution: ExecutionState | null): (number | null | undefined)[] {
  if (!execution) return [];
  const { startedAt, completedAt, currentStepStartedAt, stepExecutions } = execution;
  return [startedAt, completedAt, currentStepStartedAt, stepExecutions.at(-1)?.completedAt];
}

/** Values derived from a state. */
export interface AgentStateView {
  /** Id of the agent. */
  readonly agentId: string;
  /** Id of the agent that spawned it; `null` for a root. */
  readonly parentAgentId: string | null;
  /** When the agent was created, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** When the state last changed, in milliseconds since the epoch. */
  readonly updatedAt: number;
  /** Number of executions, including the newest. */
  readonly executionCount: number;
  /** Seconds from the execution's start to its end or, while it is open, to the last change; `null` if there is none. */
  readonly executionDuration: number | null;
  /** Messages, metadata, system prompt and response format. */
  readonly context: AgentStateContext;
  /** The conversation, oldest first. */
  readonly messages: readonly Message[];
  /** The agent's metadata. */
  readonly metadata: AgentStateContext["metadata"];
  /** The instructions of the newest execution. */
  readonly systemPrompt: string;
  /** The newest execution; `null` before the first one. */
  readonly execution: ExecutionState | null;
  /** Status of the newest execution; `null` if there is none. */
  readonly status: ExecutionStatus | null;
  /** Number of steps in the newest execution. */
  readonly stepCount: number;
  /** The steps in order; an open one is the last. */
  readonly steps: readonly AgentStep[];
  /** The last step, open or ended; `null` before the first one. */
  readonly lastStep: AgentStep | null;
  /** Type of the last step; `null` until the model has answered or failed. */
  readonly lastStepType: StepType | null;
  /** Why the execution ended; `null` while it is open or if there is none. */
  readonly stopReason: StopReason | null;
  /** Tokens of the execution, including failed attempts. */
  readonly usage: Usage;
  /** Errors of the execution, in order. */
  readonly errors: readonly StoredError[];
  /** Whether the execution had errors. */
  readonly hasErrors: boolean;
  /** The last step's answer, if it has no tool calls and nothing failed. */
  readonly finalResponse: string | null;
  /** Whether there is a final response. */
  readonly hasFinalResponse: boolean;
  /** The final response, or the latest step's output. */
  readonly currentResponse: readonly Message[];
  /** A summary of the state, for logs. */
  debug(): AgentStateSummary;
}

/** A short summary of a state, for logs. */
export interface AgentStateSummary {
  /** Status of the execution; `null` if there is none. */
  readonly status: ExecutionStatus | null;
  /** Number of executions. */
  readonly executionCount: number;
  /** Whether there is an execution. */
  readonly hasExecution: boolean;
  /** Id of the execution; `null` if there is none. */
  readonly executionId: string | null;
  /** Number of steps in the execution. */
  readonly steps: number;
  /** For instance `No Stop Signals; Continuation Requested: No`. */
  readonly continuation: string;
  /** Whether the execution had errors. */
  readonly hasErrors: boolean;
  /** Errors of the execution, in order. */
  readonly errors: readonly StoredError[];
  /** Tokens of the execution, including failed attempts. */
  readonly usage: Usage;
}

const noUsage: Usage = Object.freeze({ inputTokens: 0, outputTokens: 0 });

/** Adds the derived values to a state. */
export function viewAgentState(state: AgentState): AgentStateView {
  const { agentId, parentAgentId, createdAt, updatedAt, executionCount, context, execution } = state;
  const { messages, metadata, systemPrompt } = context;
  const steps = execution ? stepsOf(execution) : [];
  const lastStep = (execution && lastStepOf(execution)) ?? null;
  const isOpen = lastStep !== null && lastStep.inference === null && lastStep.errors.length === 0;
  const lastStepType = lastStep && !isOpen ? stepTypeOf(lastStep) : null;
  const errors = execution ? errorsOf(execution) : [];
  const usage = execution ? usageOf(execution) : noUsage;
  const output = lastStep ? messages.filter(({ id }) => lastStep.outputMessageIds.includes(id)) : [];
  const final = lastStepType === "final_response" ? output.at(-1) : undefined;
  const status = execution?.status ?? null;
  return {
    agentId,
    parentAgentId,
    createdAt,
    updatedAt,
    executionCount,
    executionDuration: execution ? secondsBetween(execution.startedAt, execution.completedAt ?? updatedAt) : null,
    context,
    messages,
    metadata,
    systemPrompt,
    execution,
    status,
    stepCount: steps.length,
    steps,
    lastStep,
    lastStepType,
    stopReason: (execution && stopReasonOf(execution)) ?? null,
    usage,
    errors,
    hasErrors: errors.length > 0,
    finalResponse: final ? textOf(final.content) : null,
    hasFinalResponse: lastStepType === "final_response",
    currentResponse: output,
    debug: () => ({
      status,
      executionCount,
      hasExecution: execution !== null,
      executionId: execution?.executionId ?? null,
      steps: steps.length,
      continuation: continuationText(execution?.continuation),
      hasErrors: errors.length > 0,
      errors,
      usage,
    }),
  };
}

function secondsBetween(from: number, to: number): number {
  return Math.max(0, to - from) / 1_000;
}

function continuationText(continuation: Continuation | undefined): string {
  const reasons = (continuation?.stopSignals ?? []).map(({ reason }) => reason);
  const signals = reasons.length === 0 ? "No Stop Signals" : `Stop Signals: ${reasons.join(", ")}`;
  return `${signals}; Continuation Requested: ${continuation?.isContinuationRequested ? "Yes" : "No"}`;
}
