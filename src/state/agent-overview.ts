import type { TroupeEvent, TroupeEventOf } from "./event.ts";
import type { Usage } from "./model-call.ts";
import type { Lifecycle } from "./record.ts";
import type { RequestKind } from "./request.ts";

/** One agent as derived from its events. */
export interface AgentOverview {
  /** Id of the agent. */
  readonly agentId: string;
  /** Name of the agent's definition. */
  readonly name: string;
  /** Id of the agent that spawned it; `null` for a root. */
  readonly parentAgentId: string | null;
  /** Id of the root of its tree. */
  readonly rootAgentId: string;
  /** `true` if it was started in the background, so that its parent does not wait for it. */
  readonly isBackground?: boolean;
  /** Lifecycle status of the agent. */
  readonly status: Lifecycle;
  /** Number of its newest turn. */
  readonly turns: number;
  /** Id of its newest turn; `null` before the first one. */
  readonly turnId: string | null;
  /** Current activity of the open turn. */
  readonly activity: "idle" | "thinking" | "tools" | "waiting" | "retrying";
  /** The step of the newest turn, from 1; 0 before the first one. */
  readonly step: number;
  /** Number of steps in all its turns. */
  readonly steps: number;
  /** Number of tool and subagent calls in all its turns. */
  readonly toolCalls: number;
  /** Names of the running tools, by call. */
  readonly runningTools: Readonly<Record<string, string>>;
  /** Open requests by id: the agent continues once they are decided. */
  readonly openRequests: Readonly<
    Record<string, { readonly kind: RequestKind; readonly name: string; readonly prompt: string }>
  >;
  /** Tokens of all its model calls. */
  readonly usage: Pick<Usage, "inputTokens" | "outputTokens" | "cachedInputTokens">;
  /** Cost of all its model calls in millionths of a dollar; `null` if a price is unknown. */
  readonly costMicros: number | null;
  /** Text of the answer that is being generated. */
  readonly text: string;
  /** When its first turn started, in milliseconds since the epoch; `null` before that. */
  readonly startedAt: number | null;
  /** When its newest turn ended, in milliseconds since the epoch; `null` while it is open or before the first turn. */
  readonly endedAt: number | null;
  /** Why its newest turn ended; `null` while it is open or before the first turn. */
  readonly stopReason: string | null;
  /** The explanation of the stop reason; `null` if there is none. */
  readonly message: string | null;
  /** The input of its newest turn, as text. */
  readonly prompt: string;
}

/**
 * Applies one more event to the agents by id, which are in the order of their first events. A changed agent is replaced by another frozen
 * value.
 */
export function noteAgentEvent(agents: Map<string, AgentOverview>, event: TroupeEvent): void {
  const { agentId, agentName: name, parentAgentId, rootAgentId } = event;
  const known = agents.get(agentId) ?? { ...untouched, agentId, name, parentAgentId, rootAgentId };
  agents.set(agentId, Object.freeze(noted(known, event)));
  if (event.type === "subagent.spawned" && event.mode === "background") noteBackgroundChild(agents, event);
}

/** Adds a background child as soon as its parent spawns it, because only that event contains the mode. */
function noteBackgroundChild(agents: Map<string, AgentOverview>, event: TroupeEventOf<"subagent.spawned">): void {
  const { childId, definition: name, agentId: parentAgentId, rootAgentId } = event;
  const known = agents.get(childId) ?? { ...untouched, agentId: childId, name, parentAgentId, rootAgentId };
  agents.set(childId, Object.freeze({ ...known, isBackground: true }));
}

const untouched = Object.freeze({
  status: "created",
  turns: 0,
  turnId: null,
  activity: "idle",
  step: 0,
  steps: 0,
  toolCalls: 0,
  runningTools: Object.freeze({}),
  openRequests: Object.freeze({}),
  usage: Object.freeze({ inputTokens: 0, outputTokens: 0 }),
  costMicros: 0,
  text: "",
  startedAt: null,
  endedAt: null,
  stopReason: null,
  message: null,
  prompt: "",
} as const);

/** The agent after one more of its events: the same object if nothing changed. */
function noted(agent: AgentOverview, event: TroupeEvent): AgentOverview {
  switch (event.type) {
    case "lifecycle.changed":
      return { ...agent, status: event.status };
    case "turn.started":
      return {
        ...agent,
        turns: event.number,
        turnId: event.turnId,
        activity: "thinking",
        prompt: event.prompt,
        text: "",
        startedAt: agent.startedAt ?? event.at,
        endedAt: null,
        stopReason: null,
        message: null,
      };
    case "step.started":
      return { ...agent, step: event.step ?? agent.step, steps: agent.steps + 1, activity: "thinking", text: "" };
    case "step.restarted":
      return { ...agent, activity: "retrying", text: "" };
    case "text.delta":
      return { ...agent, activity: "thinking", text: agent.text.slice(0, event.offset) + event.text };
    case "text.snapshot":
      return { ...agent, activity: "thinking", text: event.text };
    case "model.responded":
      return {
        ...agent,
        activity: event.toolCalls > 0 ? "tools" : "thinking",
        usage: Object.freeze({
          inputTokens: agent.usage.inputTokens + event.usage.inputTokens,
          outputTokens: agent.usage.outputTokens + event.usage.outputTokens,
          ...cachedOf(agent.usage, event.usage),
        }),
        costMicros: agent.costMicros === null || event.costMicros === null ? null : agent.costMicros + event.costMicros,
      };
    case "tool.started":
      return withTool(
        { ...agent, toolCalls: agent.toolCalls + (event.attempt === 1 ? 1 : 0) },
        event.callId,
        event.name,
      );
    case "tool.completed":
    case "tool.failed":
      return withoutTool(agent, event.callId);
    case "request.opened": {
      const { requestId, kind, name, prompt } = event;
      const request = Object.freeze({ kind, name, prompt });
      return { ...agent, openRequests: Object.freeze({ ...agent.openRequests, [requestId]: request }) };
    }
    case "request.decided":
      return { ...agent, activity: "tools", openRequests: without(agent.openRequests, event.requestId) };
    case "subagent.spawned": {
      const activity = event.mode === "background" ? agent.activity : "waiting";
      return { ...agent, activity, toolCalls: agent.toolCalls + 1 };
    }
    case "turn.waiting":
      return { ...agent, activity: "waiting" };
    case "turn.completed":
    case "turn.stopped":
    case "turn.failed":
      return {
        ...agent,
        activity: "idle",
        runningTools: untouched.runningTools,
        openRequests: untouched.openRequests,
        text: event.text,
        endedAt: event.at,
        stopReason: event.stopReason,
        message: event.message,
      };
    default:
      return agent;
  }
}

/** Absent if the provider has read nothing from its cache, as with most models of tests. */
function cachedOf(one: AgentOverview["usage"], other: Usage): Pick<Usage, "cachedInputTokens"> {
  const cachedInputTokens = (one.cachedInputTokens ?? 0) + (other.cachedInputTokens ?? 0);
  return cachedInputTokens > 0 ? { cachedInputTokens } : {};
}

function withTool(agent: AgentOverview, callId: string, name: string): AgentOverview {
  return { ...agent, activity: "tools", runningTools: Object.freeze({ ...agent.runningTools, [callId]: name }) };
}

function withoutTool(agent: AgentOverview, callId: string): AgentOverview {
  if (!(callId in agent.runningTools)) return agent;
  return { ...agent, runningTools: without(agent.runningTools, callId) };
}

function without<Value>(record: Readonly<Record<string, Value>>, key: string): Readonly<Record<string, Value>> {
  const { [key]: _gone, ...others } = record;
  return Object.freeze(others);
}
