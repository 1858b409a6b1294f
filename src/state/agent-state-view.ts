import type { AgentState, AgentStateContext } from "./agent-state.ts";
import {
  type AgentStep,
  errorsOf,
  type ExecutionState,
  type ExecutionStatus,
  lastStepOf,
  type StepType,
  type StoredError,
  stepsOf,
  stepTypeOf,
  stopReasonOf,
  usageOf,
} from "./execution.ts";
import { type Message, textOf } from "./message.ts";
import type { Usage } from "./model-call.ts";
import type { Continuation, StopReason } from "./stop.ts";

/** What a state is asked for (row S9). Everything is derived; nothing is stored twice. */
export interface AgentStateView {
  readonly agentId: string;
  readonly parentAgentId: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly executionCount: number;
  /** Seconds from the execution's start to its end or, while it is open, to the last change; null without one. */
  readonly executionDuration: number | null;
  readonly context: AgentStateContext;
  readonly messages: readonly Message[];
  readonly metadata: AgentStateContext["metadata"];
  readonly systemPrompt: string;
  readonly execution: ExecutionState | null;
  readonly status: ExecutionStatus | null;
  readonly stepCount: number;
  /** In order, an open one last. */
  readonly steps: readonly AgentStep[];
  readonly lastStep: AgentStep | null;
  /** Null while the model has neither answered nor failed. */
  readonly lastStepType: StepType | null;
  readonly stopReason: StopReason | null;
  /** Tokens of the execution, failed attempts included. */
  readonly usage: Usage;
  readonly errors: readonly StoredError[];
  readonly hasErrors: boolean;
  /** The last step's answer, where it asked for no tools and nothing failed. */
  readonly finalResponse: string | null;
  readonly hasFinalResponse: boolean;
  /** The final response, or what the latest step has put out. */
  readonly currentResponse: readonly Message[];
  /** The state in short, for logs. */
  debug(): AgentStateSummary;
}

export interface AgentStateSummary {
  readonly status: ExecutionStatus | null;
  readonly executionCount: number;
  readonly hasExecution: boolean;
  readonly executionId: string | null;
  readonly steps: number;
  /** For instance `No Stop Signals; Continuation Requested: No`. */
  readonly continuation: string;
  readonly hasErrors: boolean;
  readonly errors: readonly StoredError[];
  readonly usage: Usage;
}

const noUsage: Usage = Object.freeze({ inputTokens: 0, outputTokens: 0 });

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
