import { createStore } from "@xstate/store";
import { deepFreeze } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import type { Lifecycle, RequestKind, TroupeEvent, Usage } from "../../state/index.ts";
import { accounted, type BudgetOverviews } from "./overview-budgets.ts";

/** One agent as it is watched. */
export interface AgentOverview {
  readonly agentId: string;
  readonly name: string;
  readonly parentAgentId: string | null;
  readonly rootAgentId: string;
  /** It was started in the background: its parent does not wait for it. Absent: no. */
  readonly isBackground?: boolean;
  readonly status: Lifecycle;
  readonly turns: number;
  readonly turnId: string | null;
  /** What the open turn is doing. */
  readonly activity: "idle" | "thinking" | "tools" | "waiting" | "retrying";
  readonly step: number;
  readonly steps: number;
  readonly toolCalls: number;
  /** Names of the tools that run now, by call. */
  readonly runningTools: Readonly<Record<string, string>>;
  /** What somebody has to decide before it goes on, by request. */
  readonly openRequests: Readonly<
    Record<string, { readonly kind: RequestKind; readonly name: string; readonly prompt: string }>
  >;
  readonly usage: Pick<Usage, "inputTokens" | "outputTokens">;
  readonly costMicros: number | null;
  /** Text of the answer that is being written. */
  readonly text: string;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly stopReason: string | null;
  readonly message: string | null;
  readonly prompt: string;
}

export interface OverviewState {
  readonly agents: Readonly<Record<string, AgentOverview>>;
  /** What each agent may spend and has spent, by its id. */
  readonly budgets: BudgetOverviews;
}

const untouched = {
  status: "created",
  turns: 0,
  turnId: null,
  activity: "idle",
  step: 0,
  steps: 0,
  toolCalls: 0,
  runningTools: {},
  openRequests: {},
  usage: { inputTokens: 0, outputTokens: 0 },
  costMicros: 0,
  text: "",
  startedAt: null,
  endedAt: null,
  stopReason: null,
  message: null,
  prompt: "",
} as const;

/** An `@xstate/store` over public events: terminal, inspector and metrics read it. */
export function createOverview() {
  return createStore({
    context: shown({ agents: {}, budgets: {} }),
    on: {
      noted: (context, { event }: { event: TroupeEvent }): OverviewState => {
        const known = context.agents[event.agentId] ?? {
          ...untouched,
          agentId: event.agentId,
          name: event.agentName,
          parentAgentId: event.parentAgentId,
          rootAgentId: event.rootAgentId,
        };
        const next = deepFreeze(noted(known, event));
        const child = backgroundChildOf(context, event);
        if (next === context.agents[event.agentId] && !child) return context;
        return shown({ ...context, agents: { ...context.agents, [event.agentId]: next, ...child } });
      },
      accounted: (context, { accounts }: { accounts: readonly Account[] }): OverviewState =>
        shown({ ...context, budgets: accounted(context.budgets, accounts) }),
    },
  });
}

/** All who look are given this very object. Agents and budgets are frozen by whoever made them. */
function shown(state: OverviewState): OverviewState {
  Object.freeze(state.agents);
  Object.freeze(state.budgets);
  return Object.freeze(state);
}

/** A child is known from its parent's word on, so that it is seen how it was started. */
function backgroundChildOf({ agents }: OverviewState, event: TroupeEvent): OverviewState["agents"] | undefined {
  if (event.type !== "subagent.spawned" || event.mode !== "background") return undefined;
  const { childId, definition, agentId, rootAgentId } = event;
  const known = agents[childId] ?? {
    ...untouched,
    agentId: childId,
    name: definition,
    parentAgentId: agentId,
    rootAgentId,
  };
  return { [childId]: deepFreeze({ ...known, isBackground: true }) };
}

export type Overview = ReturnType<typeof createOverview>;

/** The agent after one more event. */
export function noted(agent: AgentOverview, event: TroupeEvent): AgentOverview {
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
        usage: {
          inputTokens: agent.usage.inputTokens + event.usage.inputTokens,
          outputTokens: agent.usage.outputTokens + event.usage.outputTokens,
        },
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
      return { ...agent, openRequests: { ...agent.openRequests, [requestId]: { kind, name, prompt } } };
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
        runningTools: {},
        openRequests: {},
        text: event.text,
        endedAt: event.at,
        stopReason: event.stopReason,
        message: event.message,
      };
    default:
      return agent;
  }
}

function withTool(agent: AgentOverview, callId: string, name: string): AgentOverview {
  return { ...agent, activity: "tools", runningTools: { ...agent.runningTools, [callId]: name } };
}

function withoutTool(agent: AgentOverview, callId: string): AgentOverview {
  if (!(callId in agent.runningTools)) return agent;
  return { ...agent, runningTools: without(agent.runningTools, callId) };
}

function without<Value>(record: Readonly<Record<string, Value>>, key: string): Record<string, Value> {
  const { [key]: _gone, ...others } = record;
  return others;
}
