import { deepFreeze } from "../../base/index.ts";
import { type Account, addModelUse, type ModelUse, noModelUse, type UseByModel } from "../../budget/index.ts";
import {
  agentOfAccount,
  numberOfTurn,
  type Lifecycle,
  type RequestKind,
  type TroupeEvent,
  type Usage,
} from "../../state/index.ts";
import { createStore } from "@xstate/store";

/** One agent, as the overview shows it. */
export interface AgentOverview {
  readonly agentId: string;
  readonly name: string;
  readonly parentAgentId: string | null;
  readonly rootAgentId: string;
  /** Started in the background, so that its parent does not wait for it. Absent: no. */
  readonly isBackground?: boolean;
  readonly status: Lifecycle;
  readonly turns: number;
  readonly turnId: string | null;
  /** Activity of the open turn. */
  readonly activity: "idle" | "thinking" | "tools" | "waiting" | "retrying";
  readonly step: number;
  readonly steps: number;
  readonly toolCalls: number;
  /** Names of the tools that run now, by call. */
  readonly runningTools: Readonly<Record<string, string>>;
  /** Requests that somebody has to decide before the agent goes on, by id. */
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
  /** Limits and spending of each agent, by its id. */
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

/** An `@xstate/store` over public events, for terminals, inspectors and metrics. */
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

/** Frozen, because all readers get this very object. Agents and budgets are already frozen. */
function shown(state: OverviewState): OverviewState {
  Object.freeze(state.agents);
  Object.freeze(state.budgets);
  return Object.freeze(state);
}

/** Adds a background child as soon as its parent spawns it, because only that event says how it was started. */
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

/** Limits and spending of one agent, as this process last saw them. */
export interface BudgetOverview {
  /** Its own calls over all its turns, by the name of the model. */
  readonly own: UseByModel;
  /** The same with everything that counts on its accounts, subagents included. */
  readonly tree: UseByModel;
  /**
   * Its accounts with limits, used, reserved and unconfirmed: of its life, its newest turn, its background children.
   */
  readonly accounts: Readonly<Record<string, Account>>;
}

export type BudgetOverviews = Readonly<Record<string, BudgetOverview>>;

const none: BudgetOverview = { own: {}, tree: {}, accounts: {} };

/**
 * The budgets after accounts have changed. Spending is added up by differences, so that accounts of ended turns need
 * not be kept.
 */
export function accounted(budgets: BudgetOverviews, accounts: readonly Account[]): BudgetOverviews {
  const next: Record<string, BudgetOverview> = { ...budgets };
  for (const account of accounts) {
    const { id, agentId, parentId, models } = account;
    const known = next[agentId] ?? none;
    if (isOver(known, account)) continue;
    const holder = parentId === null ? null : agentOfAccount(parentId);
    // A turn under its agent's lifetime account is included in that account's figures.
    const counts = holder !== agentId;
    const more = counts ? difference(models, known.accounts[id]?.models ?? {}) : {};
    next[agentId] = deepFreeze({
      own: counts ? sum(known.own, more, 1) : known.own,
      tree: counts ? sum(known.tree, more, 1) : known.tree,
      accounts: keptAccounts(known.accounts, account),
    });
    if (!counts || holder === null) continue;
    const above = next[holder] ?? none;
    next[holder] = deepFreeze({ ...above, own: sum(above.own, more, -1) });
  }
  return next;
}

function isTurn({ id }: Account): boolean {
  return id.startsWith("turn:");
}

/** Whether the account belongs to a turn before the newest. */
function isOver({ accounts }: BudgetOverview, account: Account): boolean {
  return isTurn(account) && Object.values(accounts).some((other) => isTurn(other) && turnOf(other) > turnOf(account));
}

function keptAccounts(accounts: Readonly<Record<string, Account>>, account: Account): Record<string, Account> {
  const kept = Object.values(accounts).filter((other) => !isTurn(account) || !isTurn(other));
  return Object.fromEntries([...kept, account].map((one) => [one.id, one]));
}

function turnOf({ id }: Account): number {
  return numberOfTurn(id);
}

/** The use that was added since `before`. */
function difference(now: UseByModel, before: UseByModel): UseByModel {
  // About every second commit settles no call and keeps the object.
  if (now === before) return {};
  return sum(now, before, -1);
}

function sum(one: UseByModel, other: UseByModel, sign: 1 | -1): UseByModel {
  const changed = Object.entries(other).map(([model, use]) => {
    const part = sign === 1 ? use : negative(use);
    return [model, addModelUse((Object.hasOwn(one, model) ? one[model] : undefined) ?? noModelUse, part)] as const;
  });
  if (changed.length === 0) return one;
  const all = Object.fromEntries([...Object.entries(one), ...changed]);
  return Object.fromEntries(Object.entries(all).filter(([, use]) => !isNothing(use)));
}

function negative(use: ModelUse): ModelUse {
  return Object.fromEntries(Object.entries(use).map(([name, amount]) => [name, -amount])) as ModelUse;
}

function isNothing(use: ModelUse): boolean {
  return Object.values(use).every((amount) => amount === 0);
}
