import type { SteerAnswer, TurnRest } from "../../runtime/index.ts";
import {
  type AgentRequest,
  type Json,
  type JsonObject,
  meantCall,
  type Message,
  textOf,
  type TroupeEvent,
  type TroupeEventOf,
} from "../../state/index.ts";
import { AnswerShown } from "./answer-shown.ts";
import type { AgUiEvent, AgUiEventBody, AgUiMessage, TokenUsage } from "./events.ts";
import { interruptOf } from "./interrupts.ts";
import { outputOf } from "../core/turn-events.ts";

/** An agent of the tree, and the call that spawned it. */
export interface KnownAgent {
  readonly agentId: string;
  readonly name: string;
  readonly parentAgentId: string | null;
  readonly parentCallId: string | null;
}

/** A message that was given to a running turn. */
export interface SteeredMessage {
  /** The client's id. */
  readonly messageId: string;
  readonly answer: SteerAnswer;
}

export interface RunOfThread {
  readonly threadId: string;
  readonly runId: string;
  readonly rootAgentId: string;
  /** Agents that were spawned before this stream started. */
  readonly agents: readonly KnownAgent[];
  /** Calls whose results came from the client, so they are not sent back. */
  readonly answered: ReadonlySet<string>;
}

/** An agent's state in this stream. */
interface Speaker {
  readonly agent: KnownAgent;
  step: string | null;
  answer: AnswerShown | null;
  /** For subagents. `closed` is final, because an id starts and ends only once in a run. */
  state: "unseen" | "open" | "closed";
}

/**
 * Translates the events of a turn to the AG-UI events of one run. A pure function of events and stored messages: no
 * I/O, no clock.
 *
 * Invariants
 * 1. RUN_STARTED is first; RUN_FINISHED or RUN_ERROR is last.
 * 2. Each started item ends in the same run, by the same agent; a subagent ends after all its items.
 * 3. A message, call or result that was in a snapshot is not sent again.
 */
export class RunTranslation {
  readonly #place: RunOfThread;
  readonly #speakers = new Map<string, Speaker>();
  readonly #agents = new Map<string, KnownAgent>();
  /** Ids of the messages in the last snapshot. */
  #known: ReadonlySet<string> = new Set();

  /** Inputs of other clients that no step has seen yet, by their ids. */
  readonly #foreignInputs = new Set<string>();

  constructor(place: RunOfThread) {
    this.#place = place;
    for (const agent of place.agents) this.#agents.set(agent.agentId, agent);
  }

  begin(): AgUiEvent[] {
    const { threadId, runId } = this.#place;
    return [{ type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0" }];
  }

  /** Sends all stored messages; their later events send nothing. */
  snapshot(messages: readonly AgUiMessage[]): AgUiEvent[] {
    this.#known = new Set(messages.map(({ id }) => id));
    return [{ type: "MESSAGES_SNAPSHOT", messages }];
  }

  /** Tells the client what became of the messages that it gave to a running turn. */
  steered(steers: readonly SteeredMessage[]): AgUiEvent[] {
    return steers.map(({ messageId, answer }) => ({
      type: "CUSTOM",
      name: "troupe.steer",
      value: { messageId, ...answer },
    }));
  }

  /**
   * Whether the event begins the step that follows an input of another client, which a snapshot shows before the answer to it.
   * @param own The client's own inputs, by their stored ids.
   */
  isStepAfterForeignInput(event: TroupeEvent, own: Pick<ReadonlyMap<string, unknown>, "has">): boolean {
    if (event.agentId !== this.#place.rootAgentId) return false;
    const isForeign = event.type === "turn.steered" && !own.has(event.messageId) && !this.#known.has(event.messageId);
    if (isForeign) this.#foreignInputs.add(event.messageId);
    if (event.type !== "step.started" || this.#foreignInputs.size === 0) return false;
    this.#foreignInputs.clear();
    return true;
  }

  /** Whether the last snapshot contained a message. */
  hasShown(messageId: string): boolean {
    return this.#known.has(messageId);
  }

  /** `stored`: the message of the event, for a model's answer or a call's result. */
  take(event: TroupeEvent, stored?: Message): AgUiEvent[] {
    if (event.type === "subagent.spawned") return this.#spawned(event);
    if (event.type === "subagent.ended") return this.#ended(event);
    const speaker = this.#speaker(event.agentId, event);
    if (speaker.state === "closed") return [];
    const bodies = this.#bodiesOf(event, speaker, stored);
    return bodies.length === 0
      ? []
      : [...this.#open(speaker), ...this.#of(speaker, bodies).map((body) => ({ ...body, timestamp: event.at }))];
  }

  /** Subagents with at least one event in this stream. */
  get speakers(): ReadonlySet<string> {
    const shown = [...this.#speakers.values()].filter(({ state }) => state !== "unseen");
    return new Set(shown.map(({ agent }) => agent.agentId).filter((agentId) => agentId !== this.#place.rootAgentId));
  }

  /** Closes all open items once the turn has come to rest. */
  close(rest: TurnRest): AgUiEvent[] {
    const requests = requestsOf(rest);
    const subagents = [...this.#speakers.values()].filter(({ agent }) => agent.agentId !== this.#place.rootAgentId);
    const root = this.#speakers.get(this.#place.rootAgentId);
    return [
      // A subagent may have started after its parent had ended.
      ...subagents.flatMap((speaker) => this.#suspend(speaker, requests)),
      ...(root ? this.#closeSpeaker(root, null) : []),
    ];
  }

  /** The last event of a run whose turn is at rest. */
  finish(rest: TurnRest): AgUiEvent[] {
    return [this.#lastEvent(rest, requestsOf(rest))];
  }

  /** The last event of a run that was refused or has nothing to do. */
  finishAtOnce(outcome: "success" | { readonly message: string; readonly code: string }): AgUiEvent[] {
    const { threadId, runId } = this.#place;
    if (outcome !== "success") return [{ type: "RUN_ERROR", ...outcome }];
    return [{ type: "RUN_FINISHED", threadId, runId, outcome: { type: "success" } }];
  }

  #bodiesOf(event: TroupeEvent, speaker: Speaker, stored: Message | undefined): AgUiEventBody[] {
    switch (event.type) {
      case "step.started":
        return beginStep(speaker, stepOf(event));
      case "step.completed":
        return speaker.step === stepOf(event) ? endStep(speaker) : [];
      case "text.delta":
      case "reasoning.delta":
        return this.#answer(speaker, event)?.piece(event) ?? [];
      case "text.snapshot":
        return this.#answer(speaker, event)?.snapshot(event) ?? [];
      case "step.restarted":
        return [...(speaker.answer?.end() ?? []), custom(event)];
      case "model.responded":
        return this.#responded(event, speaker, stored);
      case "tool.completed":
      case "tool.failed":
        return this.#result(event, stored);
      case "turn.answered":
        return this.#answered(event, stored);
      case "turn.completed":
      case "turn.stopped":
      case "turn.failed":
        return [...(speaker.answer?.end() ?? []), ...endStep(speaker)];
      // A client runs the calls of TOOL_CALL events, so these are sent only when the attempt has succeeded.
      case "call.delta":
      case "tool.progress":
      case "artifact.saved":
      case "budget.changed":
      case "budget.forecast":
      case "budget.warning":
      case "budget.exhausted":
      case "context.compacted":
      case "request.decided":
      case "warning":
        return [custom(event)];
      default:
        return [];
    }
  }

  #responded(event: TroupeEventOf<"model.responded">, speaker: Speaker, stored: Message | undefined): AgUiEventBody[] {
    const text = stored === undefined ? "" : textOf(stored.content);
    const answer = this.#answer(speaker, event);
    if (answer === undefined) return [];
    const calls = stored?.role === "assistant" ? (stored.toolCalls ?? []) : [];
    return [
      ...answer.responded(text),
      ...calls
        .map(meantCall)
        .flatMap(({ callId: toolCallId, name, arguments: args }): AgUiEventBody[] => [
          { type: "TOOL_CALL_START", toolCallId, toolCallName: name, parentMessageId: answer.messageId },
          ...(args === "" ? [] : [{ type: "TOOL_CALL_ARGS", toolCallId, delta: args } as const]),
          { type: "TOOL_CALL_END", toolCallId },
        ]),
    ];
  }

  #result(
    { type, callId, ...event }: TroupeEventOf<"tool.completed"> | TroupeEventOf<"tool.failed">,
    stored: Message | undefined,
  ): AgUiEventBody[] {
    if (this.#known.has(callId) || this.#place.answered.has(callId)) return [];
    const failure = type === "tool.failed" && "error" in event ? (event.error?.message ?? "") : "";
    const content = stored === undefined ? failure : textOf(stored.content);
    return [{ type: "TOOL_CALL_RESULT", messageId: callId, toolCallId: callId, role: "tool", content }];
  }

  /** The result of a call is also an answer, as a message of its own. */
  #answered({ messageId }: TroupeEventOf<"turn.answered">, stored: Message | undefined): AgUiEventBody[] {
    const delta = stored === undefined ? "" : textOf(stored.content);
    if (delta === "" || this.#known.has(messageId)) return [];
    return [
      { type: "TEXT_MESSAGE_START", messageId, role: "assistant" },
      { type: "TEXT_MESSAGE_CONTENT", messageId, delta },
      { type: "TEXT_MESSAGE_END", messageId },
    ];
  }

  /** The answer that an event belongs to; `undefined` if it was in a snapshot. */
  #answer(speaker: Speaker, event: TroupeEvent): AnswerShown | undefined {
    const step = stepOf(event);
    if (this.#known.has(step)) return undefined;
    if (speaker.answer?.step !== step) speaker.answer = new AnswerShown(step);
    return speaker.answer;
  }

  #spawned(event: TroupeEventOf<"subagent.spawned">): AgUiEvent[] {
    const { childId: agentId, definition: name, agentId: parentAgentId, callId: parentCallId } = event;
    this.#agents.set(agentId, { agentId, name, parentAgentId, parentCallId });
    return this.#open(this.#speaker(agentId, { agentName: name, parentAgentId }));
  }

  #ended({ childId, outcome, stopReason, agentId }: TroupeEventOf<"subagent.ended">): AgUiEvent[] {
    const speaker = this.#speaker(childId, { agentName: childId, parentAgentId: agentId });
    if (speaker.state === "closed") return [];
    const opened = this.#open(speaker);
    const end: AgUiEventBody =
      outcome === "completed"
        ? { type: "SUBAGENT_FINISHED", outcome: { type: "success" } }
        : { type: "SUBAGENT_ERROR", message: `the subagent ended: ${outcome} (${stopReason})`, code: stopReason };
    return [...opened, ...this.#suspendBelow(childId, []), ...this.#closeSpeaker(speaker, end)];
  }

  #speaker(agentId: string, event: Pick<TroupeEvent, "agentName" | "parentAgentId">): Speaker {
    const known = this.#speakers.get(agentId);
    if (known) return known;
    const { agentName: name, parentAgentId } = event;
    const agent = this.#agents.get(agentId) ?? { agentId, name, parentAgentId, parentCallId: null };
    this.#agents.set(agentId, agent);
    const speaker: Speaker = { agent, step: null, answer: null, state: "unseen" };
    this.#speakers.set(agentId, speaker);
    return speaker;
  }

  /** Announces a subagent once, after its parents. */
  #open(speaker: Speaker): AgUiEvent[] {
    const { agentId: subagentRunId, name, parentAgentId, parentCallId } = speaker.agent;
    if (speaker.state !== "unseen") return [];
    speaker.state = "open";
    if (subagentRunId === this.#place.rootAgentId) return [];
    const above = this.#agents.get(parentAgentId ?? "");
    const isBelowRoot = above === undefined || above.agentId === this.#place.rootAgentId;
    const opened = isBelowRoot
      ? []
      : this.#open(this.#speaker(above.agentId, { agentName: above.name, parentAgentId: above.parentAgentId }));
    return [
      ...opened,
      {
        type: "SUBAGENT_STARTED",
        subagentRunId,
        name,
        ...(isBelowRoot ? {} : { parentSubagentRunId: above.agentId }),
        ...(parentCallId === null ? {} : { parentToolCallId: parentCallId }),
      },
    ];
  }

  #of({ agent }: Speaker, bodies: readonly AgUiEventBody[]): AgUiEvent[] {
    const { agentId } = agent;
    if (agentId === this.#place.rootAgentId) return [...bodies];
    return bodies.map((body) => ({ ...body, subagentRunId: agentId }));
  }

  /** Ends an open subagent, after its own subagents. */
  #suspend(speaker: Speaker, requests: readonly AgentRequest[]): AgUiEvent[] {
    if (speaker.state !== "open") return [];
    const { agentId } = speaker.agent;
    const interruptIds = requests.filter((request) => request.agentId === agentId).map(({ requestId }) => requestId);
    const end: AgUiEventBody = {
      type: "SUBAGENT_FINISHED",
      outcome: { type: "suspended", ...(interruptIds.length === 0 ? {} : { interruptIds }) },
    };
    return [...this.#suspendBelow(agentId, requests), ...this.#closeSpeaker(speaker, end)];
  }

  #suspendBelow(agentId: string, requests: readonly AgentRequest[]): AgUiEvent[] {
    const below = [...this.#speakers.values()].filter(({ agent }) => agent.parentAgentId === agentId);
    return below.flatMap((speaker) => this.#suspend(speaker, requests));
  }

  #closeSpeaker(speaker: Speaker, end: AgUiEventBody | null): AgUiEvent[] {
    speaker.state = "closed";
    const ends = [...(speaker.answer?.end() ?? []), ...endStep(speaker)];
    return this.#of(speaker, end === null ? ends : [...ends, end]);
  }

  #lastEvent(rest: TurnRest, requests: readonly AgentRequest[]): AgUiEvent {
    const { threadId, runId, rootAgentId } = this.#place;
    const finished = { type: "RUN_FINISHED", threadId, runId } as const;
    if (rest.status === "waiting") {
      if (rest.reason === "paused") {
        return {
          type: "RUN_ERROR",
          message: "the agent is paused; its run continues when it is resumed",
          code: "paused",
        };
      }
      const others = requests.filter(({ kind }) => kind !== "client");
      if (others.length === 0) {
        const pendingToolCallIds = requests.map(({ callId }) => callId);
        return { ...finished, outcome: { type: "success", pendingToolCallIds } };
      }
      const interrupts = others.map((request) => interruptOf(request, rootAgentId));
      return { ...finished, outcome: { type: "interrupt", interrupts } };
    }
    const usage = usageOf(rest);
    if (rest.stopReason === "user_requested") return { ...finished, outcome: { type: "cancelled" }, usage };
    if (rest.status === "completed" || rest.stopReason === "stop_requested") {
      const output = outputOf(rest);
      const result = output === undefined || output === null ? {} : { result: output };
      return { ...finished, outcome: { type: "success" }, ...result, usage };
    }
    const message = rest.error?.message ?? rest.stop?.message ?? rest.text;
    return { type: "RUN_ERROR", message, code: rest.error?.code ?? rest.stopReason, usage };
  }
}

function requestsOf(rest: TurnRest): readonly AgentRequest[] {
  return rest.status === "waiting" && rest.reason === "request" ? rest.requests : [];
}

/** The step of an event, which is also the id of the model's message. */
function stepOf({ turnId, step }: TroupeEvent): string {
  return `${turnId ?? ""}:${step ?? 0}`;
}

function beginStep(speaker: Speaker, step: string): AgUiEventBody[] {
  const ended = [...(speaker.answer?.end() ?? []), ...endStep(speaker)];
  speaker.step = step;
  return [...ended, { type: "STEP_STARTED", stepName: step }];
}

function endStep(speaker: Speaker): AgUiEventBody[] {
  const { step: stepName } = speaker;
  speaker.step = null;
  return stepName === null ? [] : [{ type: "STEP_FINISHED", stepName }];
}

/** The common fields of all events, which are left out of a custom event's value. */
const common: ReadonlySet<string> = new Set(
  "type agentId agentName parentAgentId rootAgentId sessionId turnId step at cursor after".split(" "),
);

function custom(event: TroupeEvent): AgUiEventBody {
  const fields = Object.entries(event).filter((entry): entry is [string, Json] => !common.has(entry[0]));
  return { type: "CUSTOM", name: `troupe.${event.type}`, value: Object.fromEntries(fields) as JsonObject };
}

function usageOf(rest: Exclude<TurnRest, { status: "waiting" }>): readonly TokenUsage[] {
  return Object.entries(rest.spent.byModel).map(([model, spent]) => ({
    model,
    inputTokens: spent.inputTokens,
    outputTokens: spent.outputTokens,
    totalTokens: spent.inputTokens + spent.outputTokens,
    reasoningTokens: spent.reasoningTokens,
    cachedInputTokens: spent.cachedInputTokens,
    cacheWriteInputTokens: spent.cacheWriteTokens,
  }));
}
