import { type ModelUse, totalUse, type UseByModel } from "../../budget/index.ts";
import {
  type AgentRequest,
  type Json,
  type Message,
  textOf,
  type TroupeEvent,
  type TroupeEventOf,
} from "../../state/index.ts";
import type { AiSdkData, AiSdkMetadata, FinishReason, PartChunk, UiChunk } from "./chunks.ts";
import { StepWriting } from "./step-writing.ts";

/** What a client's message has of a turn. */
export interface ClientPart {
  /** Number of steps of the agent itself whose parts it has. */
  readonly steps: number;
  /** Its calls: whether they have a result, and whether the page was asked for it. */
  readonly calls: ReadonlyMap<string, { readonly isSettled: boolean; readonly isAsked: boolean }>;
  /** Approvals that it shows. */
  readonly approvals: ReadonlySet<string>;
  /** Calls whose results it has as answers. */
  readonly answers: ReadonlySet<string>;
}

/** A client that has nothing of the turn. */
export const newClient: ClientPart = { steps: 0, calls: new Map(), approvals: new Set(), answers: new Set() };

/** A turn and what the client has of it. */
export interface ShownTurn {
  readonly turnId: string;
  readonly rootAgentId: string;
  readonly client: ClientPart;
}

/** The stored objects that an event refers to. */
export interface Referred {
  /** For a model's answer or a call's result. */
  readonly message?: Message | undefined;
  /** For `request.opened` and `request.decided`. */
  readonly request?: AgentRequest | undefined;
}

type Ended = TroupeEventOf<"turn.completed" | "turn.stopped" | "turn.failed">;
type Subagent = AiSdkData["subagent"];

/**
 * Translates the events of a turn to the chunks of one UI message. A pure function of events and stored objects: no I/O, no clock.
 *
 * Invariants
 * 1. `start` is first; `finish` or `error` is last.
 * 2. A chunk that names a call or an approval follows the chunk that adds it, in this stream or in the client's message.
 * 3. The same events give the same parts, live, in a replay, and for the history.
 * 4. What the client's message has is not sent again, except for results, which replace themselves.
 */
export class MessageTranslation {
  readonly #turn: ShownTurn;
  /** Calls in the message. */
  readonly #calls: Set<string>;
  readonly #approvals: Set<string>;
  readonly #subagents = new Map<string, Subagent>();
  #writing: StepWriting | undefined;
  /** Chunks of calls that came while the model wrote: a repeated attempt would remove them with its step. */
  #held: PartChunk[] = [];
  #step: number | null = null;
  #ended: Ended | undefined;

  constructor(turn: ShownTurn) {
    this.#turn = turn;
    this.#calls = new Set(turn.client.calls.keys());
    this.#approvals = new Set(turn.client.approvals);
  }

  start(): UiChunk[] {
    const { turnId } = this.#turn;
    return [{ type: "start", messageId: turnId, messageMetadata: { turnId, status: "running" } }];
  }

  take(event: TroupeEvent, referred: Referred = {}): PartChunk[] {
    switch (event.type) {
      case "subagent.spawned":
        return this.#spawned(event);
      case "subagent.ended":
        return this.#changed(event.childId, { status: event.outcome });
      case "request.opened":
        return this.#hold(this.#opened(event, referred.request));
      case "request.decided":
        return this.#hold(this.#decided(event, referred.request));
      case "tool.completed":
      case "tool.failed":
        return this.#hold(this.#result(event, referred.message));
      case "tool.progress": {
        const { callId, name, update } = event;
        return [{ type: "data-progress", data: { callId, name, update }, transient: true }];
      }
      case "artifact.saved": {
        const { agentId, artifactId, name, version, contentType, size } = event;
        const data = { agentId, artifactId, name, version, contentType, size };
        return [{ type: "data-artifact", id: `${artifactId}:${version}`, data }];
      }
      case "budget.forecast": {
        const { accountId, limit, used, reserved, max, expected, renewsAt, metAt, message } = event;
        const data = { accountId, limit, used, reserved, max, expected, renewsAt, metAt, message };
        return [{ type: "data-forecast", data, transient: true }];
      }
      case "budget.warning":
      case "budget.exhausted":
      case "budget.changed":
        return [budgetChunk(event)];
      default:
        return event.agentId === this.#turn.rootAgentId ? this.#own(event, referred) : this.#below(event, referred);
    }
  }

  /** Whether the event of the turn's end was taken. */
  get hasEnded(): boolean {
    return this.#ended !== undefined;
  }

  /** Chunks for a turn that waits: the calls that the page has to answer, and the end. */
  wait(requests: readonly AgentRequest[], models: UseByModel): UiChunk[] {
    const asked = requests.filter(({ kind }) => kind !== "approval" && kind !== "budget");
    return [
      ...this.#close(),
      ...asked.flatMap((request) => this.#ask(request)),
      this.#finish({ finishReason: "tool-calls", status: "waiting", models }),
    ];
  }

  /** The end of the stream of a turn whose agent is paused. */
  pause(models: UseByModel): UiChunk[] {
    const message = "the agent is paused; the turn continues when it is resumed";
    return [...this.#close(), this.#finish({ finishReason: "interrupted", status: "paused", models, message })];
  }

  /** The end of the stream of a turn that has ended. */
  end(models: UseByModel): UiChunk[] {
    const ended = this.#ended;
    const closed = this.#close();
    if (ended === undefined) return closed;
    const { stopReason } = ended;
    const message = (ended.type === "turn.failed" ? ended.error?.message : undefined) ?? ended.message ?? ended.text;
    const explained = { models, stopReason, message };
    if (ended.type === "turn.failed") {
      const messageMetadata = this.#metadata({ ...explained, status: "failed" });
      return [...closed, { type: "message-metadata", messageMetadata }, { type: "error", errorText: message }];
    }
    if (ended.type === "turn.completed") {
      const finishReason = stopReason === "finish_reason" ? "length" : "stop";
      return [...closed, this.#finish({ models, stopReason, status: "completed", finishReason })];
    }
    if (stopReason === "refusal") {
      return [...closed, this.#finish({ ...explained, status: "stopped", finishReason: "content-filter" })];
    }
    const abort = stopReason === "user_requested" ? ([{ type: "abort", reason: message }] as const) : [];
    return [...closed, ...abort, this.#finish({ ...explained, status: "stopped", finishReason: "interrupted" })];
  }

  #own(event: TroupeEvent, { message }: Referred): PartChunk[] {
    switch (event.type) {
      case "step.started":
        return this.#begin(event);
      case "text.delta":
      case "reasoning.delta":
      case "call.delta":
        return this.#writingOf(event)?.piece(event) ?? [];
      case "text.snapshot":
        return this.#writingOf(event)?.snapshot(event) ?? [];
      case "step.restarted":
        return this.#writingOf(event)?.restart() ?? [];
      case "model.responded": {
        const chunks = this.#writingOf(event)?.responded(message) ?? [];
        for (const chunk of chunks) if (chunk.type === "tool-input-available") this.#calls.add(chunk.toolCallId);
        return [...chunks, ...this.#endWriting()];
      }
      case "step.completed":
        return this.#endStep();
      case "turn.answered":
        return this.#answered(event, message);
      case "turn.steered": {
        const { messageId: id, prompt: text, step } = event;
        if (step !== null && step <= this.#turn.client.steps) return [];
        return [{ type: "steering-message", id, parts: [{ type: "text", text }] }];
      }
      case "turn.completed":
      case "turn.stopped":
      case "turn.failed":
        this.#ended = event;
        return [];
      default:
        return [];
    }
  }

  #begin({ turnId, step }: TroupeEventOf<"step.started">): PartChunk[] {
    if (step === null || step <= this.#turn.client.steps) return [];
    const ended = this.#close();
    this.#step = step;
    this.#writing = new StepWriting(`${turnId}:${step}`);
    return [...ended, { type: "start-step" }];
  }

  /**
   * The result of a call is also an answer. It is a step of its own: `sendAutomaticallyWhen` would send a message again whose last step
   * has only calls with results.
   */
  #answered({ callId, messageId: id }: TroupeEventOf<"turn.answered">, message: Message | undefined): PartChunk[] {
    const delta = message === undefined ? "" : textOf(message.content);
    if (delta === "" || this.#turn.client.answers.has(callId)) return [];
    return [
      { type: "start-step" },
      { type: "text-start", id, providerMetadata: { troupe: { answerOf: callId } } },
      { type: "text-delta", id, delta },
      { type: "text-end", id },
    ];
  }

  /** `undefined` for a step that the client has or that has been answered. */
  #writingOf({ step }: TroupeEvent): StepWriting | undefined {
    return step === this.#step ? this.#writing : undefined;
  }

  #close(): PartChunk[] {
    const ends = this.#writing?.end() ?? [];
    return [...ends, ...this.#endWriting(), ...this.#endStep()];
  }

  #endWriting(): PartChunk[] {
    const held = this.#held;
    this.#writing = undefined;
    this.#held = [];
    return held;
  }

  #hold(chunks: PartChunk[]): PartChunk[] {
    if (this.#writing === undefined) return chunks;
    this.#held.push(...chunks);
    return [];
  }

  #endStep(): PartChunk[] {
    if (this.#step === null) return [];
    this.#step = null;
    return [{ type: "finish-step" }];
  }

  #below(event: TroupeEvent, { message }: Referred): PartChunk[] {
    if ((event.type !== "model.responded" && event.type !== "turn.answered") || message === undefined) return [];
    const text = textOf(message.content);
    return text === "" ? [] : this.#changed(event.agentId, { text });
  }

  #spawned(event: TroupeEventOf<"subagent.spawned">): PartChunk[] {
    const { childId: agentId, definition: name, agentId: parentAgentId, callId } = event;
    return this.#changed(agentId, { agentId, name, parentAgentId, callId, status: "running", text: "" });
  }

  #changed(agentId: string, change: Partial<Subagent>): PartChunk[] {
    const known = this.#subagents.get(agentId);
    const unknown = { agentId, name: agentId, parentAgentId: null, callId: null, status: "running", text: "" };
    const data: Subagent = { ...(known ?? unknown), ...change };
    this.#subagents.set(agentId, data);
    return [{ type: "data-subagent", id: agentId, data }];
  }

  /** An approval is shown at its call. A call of a subagent is shown once it has a request. */
  #opened({ kind }: TroupeEventOf<"request.opened">, request: AgentRequest | undefined): PartChunk[] {
    if (request === undefined || (kind !== "approval" && kind !== "budget")) return [];
    const { requestId: approvalId, callId: toolCallId, prompt: reason, argumentsHash: signature } = request;
    if (this.#approvals.has(approvalId) || this.#turn.client.calls.get(toolCallId)?.isSettled === true) return [];
    this.#approvals.add(approvalId);
    return [...this.#shownCall(request), { type: "tool-approval-request", approvalId, toolCallId, reason, signature }];
  }

  #decided({ verdict, reason }: TroupeEventOf<"request.decided">, request: AgentRequest | undefined): PartChunk[] {
    if (request === undefined || !this.#approvals.has(request.requestId)) return [];
    const { requestId: approvalId, callId: toolCallId, decision } = request;
    if (this.#turn.client.calls.get(toolCallId)?.isSettled === true) return [];
    const approved = verdict === "approved" || verdict === "edited";
    const edited = verdict === "edited" && decision?.arguments !== undefined ? decision.arguments : undefined;
    const why = reason === null ? {} : { reason };
    return [
      ...(edited === undefined ? [] : [{ ...callChunk(request, this.#turn), input: edited }]),
      { type: "tool-approval-response", approvalId, approved, ...why },
      ...(request.kind === "budget" ? [budgetResult(toolCallId, approved)] : []),
    ];
  }

  #shownCall(request: AgentRequest): PartChunk[] {
    if (this.#calls.has(request.callId)) return [];
    this.#calls.add(request.callId);
    return [...this.#stepOf(request), callChunk(request, this.#turn)];
  }

  /**
   * A call of a subagent is a step of its own: `sendAutomaticallyWhen` compares the calls of the last step, and the call that spawned
   * the subagent has no result yet. So is a request for more budget, which belongs to no call of the model.
   */
  #stepOf({ agentId, kind }: AgentRequest): PartChunk[] {
    return agentId === this.#turn.rootAgentId && kind !== "budget" ? [] : [{ type: "start-step" }];
  }

  /** Shows a call that waits for the page, so that its `onToolCall` runs once. */
  #ask(request: AgentRequest): PartChunk[] {
    const { callId, requestId, kind, prompt } = request;
    if (this.#turn.client.calls.get(callId)?.isAsked === true) return [];
    const step = this.#calls.has(callId) ? [] : this.#stepOf(request);
    this.#calls.add(callId);
    const chunk = callChunk(request, this.#turn);
    return [...step, { ...chunk, providerExecuted: false, toolMetadata: { requestId, kind, prompt } }];
  }

  #result(event: TroupeEventOf<"tool.completed" | "tool.failed">, message: Message | undefined): PartChunk[] {
    const { callId: toolCallId } = event;
    if (!this.#calls.has(toolCallId)) return [];
    const text = message === undefined ? "" : textOf(message.content);
    if (event.type === "tool.failed" && event.outcome === "denied") return [{ type: "tool-output-denied", toolCallId }];
    if (event.type === "tool.failed") {
      return [{ type: "tool-output-error", toolCallId, errorText: event.error?.message ?? text }];
    }
    return [{ type: "tool-output-available", toolCallId, output: event.structured ?? text }];
  }

  #finish({ finishReason, ...ending }: Ending & { readonly finishReason: FinishReason }): UiChunk {
    return { type: "finish", finishReason, messageMetadata: this.#metadata(ending) };
  }

  #metadata({ models, status, stopReason, message }: Ending): AiSdkMetadata {
    const use = totalUse(models);
    return {
      turnId: this.#turn.turnId,
      status,
      ...(stopReason === undefined ? {} : { stopReason }),
      ...(message === undefined ? {} : { message }),
      usage: usageOf(use),
      ...(use.unpricedCalls > 0 ? {} : { cost: use.costMicros / 1_000_000 }),
    };
  }
}

interface Ending {
  readonly models: UseByModel;
  readonly status: AiSdkMetadata["status"];
  readonly stopReason?: string;
  readonly message?: string;
}

function usageOf(use: ModelUse): NonNullable<AiSdkMetadata["usage"]> {
  const { inputTokens, outputTokens, reasoningTokens, cachedInputTokens } = use;
  const totalTokens = inputTokens + outputTokens;
  return { inputTokens, outputTokens, totalTokens, reasoningTokens, cachedInputTokens };
}

function callChunk(
  { callId: toolCallId, name: toolName, arguments: input, agentId, agentName, kind, requestId, prompt }: AgentRequest,
  { rootAgentId }: ShownTurn,
): Extract<PartChunk, { readonly type: "tool-input-available" }> {
  const owner = agentId === rootAgentId ? {} : { title: `${agentName}: ${toolName}` };
  const asked = kind === "budget" ? { toolMetadata: { requestId, kind, prompt } } : {};
  const call = { type: "tool-input-available", toolCallId, toolName, input: input as Json } as const;
  return { ...call, providerExecuted: true, ...owner, ...asked };
}

/** No tool runs after a decision on more budget, so the decision settles its part. */
function budgetResult(toolCallId: string, approved: boolean): PartChunk {
  if (!approved) return { type: "tool-output-denied", toolCallId };
  return { type: "tool-output-available", toolCallId, output: "approved" };
}

function budgetChunk(event: TroupeEventOf<"budget.warning" | "budget.exhausted" | "budget.changed">): PartChunk {
  const { accountId, message } = event;
  const limit = event.type === "budget.changed" ? null : event.limit;
  const states = { "budget.warning": "warning", "budget.exhausted": "exhausted", "budget.changed": "changed" } as const;
  const data = { state: states[event.type], accountId, limit, message };
  return { type: "data-budget", id: `${accountId}:${limit ?? "all"}`, data };
}
