import { addUse, billedModel, modelUseOf, type UseByModel } from "../../budget/index.ts";
import type { RunEntry, RunEntryOf } from "./run-log.ts";

/**
 * What an agent is doing, in one word, for pages. `lost` does not follow from the journal: the agent's process is dead or
 * silent, or no process runs it.
 */
export const phases = [
  "asking",
  "lost",
  "failed",
  "retrying",
  "budget",
  "thinking",
  "tools",
  "waiting",
  "paused",
  "starting",
  "created",
  "stopped",
  "done",
  "ready",
  "shutdown",
] as const;
export type Phase = (typeof phases)[number];

/** The phases in words, for people. */
export const phaseWords: Readonly<Record<Phase, string>> = {
  thinking: "thinking",
  tools: "running tools",
  waiting: "waiting for subagents",
  asking: "waiting for a person",
  budget: "waiting for budget",
  retrying: "retrying",
  paused: "paused",
  lost: "interrupted",
  failed: "failed",
  stopped: "stopped",
  done: "done",
  ready: "ready",
  starting: "starting",
  created: "not started",
  shutdown: "shut down",
};

export interface RunningCall {
  readonly callId: string;
  readonly name: string;
  readonly since: number;
  /** The queue whose worker runs the call or will run it; `null` if the call is not queued. */
  readonly queue: string | null;
}

export interface OpenRequest {
  readonly requestId: string;
  readonly kind: RunEntryOf<"request.opened">["kind"];
  readonly name: string;
  readonly since: number;
}

/** One agent at one moment: the fold of its entries until then. Immutable. */
export interface AgentMoment {
  readonly phase: Phase;
  /** When the phase began. */
  readonly since: number;
  readonly turn: number;
  readonly turnId: string | null;
  readonly step: number;
  /** Steps of all turns. */
  readonly steps: number;
  readonly toolCalls: number;
  readonly running: readonly RunningCall[];
  readonly requests: readonly OpenRequest[];
  /** Number of children whose results the open turn waits for. */
  readonly awaits: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Micro-dollars of the calls that had a price. */
  readonly costMicros: number;
  /** Its own calls that may have cost something, and how many of them have no price. */
  readonly calls: number;
  readonly unpricedCalls: number;
  /** Use of its own calls, by model. */
  readonly models: UseByModel;
  readonly model: string | null;
  readonly stopReason: string | null;
  /** Why the last turn stopped or failed, in words. */
  readonly message: string | null;
  readonly accountId: string | null;
  readonly retryAt: number | null;
}

const none: readonly never[] = [];

/** An agent that was created and has no entry yet. */
export function createdMoment(at: number): AgentMoment {
  return {
    phase: "created",
    since: at,
    turn: 0,
    turnId: null,
    step: 0,
    steps: 0,
    toolCalls: 0,
    running: none,
    requests: none,
    awaits: 0,
    inputTokens: 0,
    outputTokens: 0,
    costMicros: 0,
    calls: 0,
    unpricedCalls: 0,
    models: {},
    model: null,
    stopReason: null,
    message: null,
    accountId: null,
    retryAt: null,
  };
}

/** Returns the agent after one more of its entries. */
export function foldAgentEntry(agent: AgentMoment, entry: RunEntry): AgentMoment {
  return folded(billed(agent, entry), entry);
}

/** Counts everything that its accounts count, including failed calls, side calls and tools' bills. */
function billed(agent: AgentMoment, entry: RunEntry): AgentMoment {
  const settlement = "settlement" in entry ? entry.settlement : null;
  const use = settlement && modelUseOf(settlement);
  if (!settlement || !use) return agent;
  return {
    ...agent,
    inputTokens: agent.inputTokens + use.inputTokens,
    outputTokens: agent.outputTokens + use.outputTokens,
    costMicros: agent.costMicros + use.costMicros,
    calls: agent.calls + use.calls,
    unpricedCalls: agent.unpricedCalls + use.unpricedCalls,
    models: addUse(agent.models, { [billedModel(settlement)]: use }),
  };
}

function folded(agent: AgentMoment, entry: RunEntry): AgentMoment {
  switch (entry.type) {
    case "agent.starting":
      return inPhase(agent, "starting", entry.at);
    case "agent.started":
      return inPhase(agent, "ready", entry.at);
    case "agent.paused":
      return inPhase(agent, "paused", entry.at);
    case "agent.shutdown":
      return inPhase(agent, "shutdown", entry.at);
    case "agent.resumed":
      return inPhase(agent, entry.to === "busy" ? workPhase(agent) : "ready", entry.at);
    case "turn.started":
      return turnStarted(agent, entry);
    case "turn.ended":
      return turnEnded(agent, entry);
    case "model.requested":
      return {
        ...inPhase(agent, "thinking", entry.at),
        step: entry.step,
        steps: agent.steps + (entry.attempt === 1 ? 1 : 0),
        model: entry.model,
        retryAt: null,
      };
    case "model.responded":
      return inPhase(agent, entry.calls.length > 0 ? "tools" : "thinking", entry.at);
    case "model.failed":
      return entry.retryAt === null ? agent : { ...inPhase(agent, "retrying", entry.at), retryAt: entry.retryAt };
    case "intent.refused":
      return refused(agent, entry);
    case "budget.freed":
      return inPhase(agent, workPhase(agent), entry.at);
    default:
      return foldCallEntry(agent, entry);
  }
}

function foldCallEntry(agent: AgentMoment, entry: RunEntry): AgentMoment {
  switch (entry.type) {
    case "tool.started": {
      const { callId, name, at, queue = null } = entry;
      const running = [...agent.running.filter((call) => call.callId !== callId), { callId, name, since: at, queue }];
      const toolCalls = agent.toolCalls + (entry.attempt === 1 ? 1 : 0);
      return settled({ ...agent, running, toolCalls }, at);
    }
    case "tool.settled": {
      const running = agent.running.filter((call) => call.callId !== entry.callId);
      return settled({ ...agent, running, toolCalls: agent.toolCalls + (entry.internal ? 1 : 0) }, entry.at);
    }
    case "child.spawned":
      if (entry.background) return { ...agent, toolCalls: agent.toolCalls + 1 };
      return settled({ ...agent, toolCalls: agent.toolCalls + 1, awaits: agent.awaits + 1 }, entry.at);
    case "child.ended":
      return settled({ ...agent, awaits: Math.max(0, agent.awaits - 1) }, entry.at);
    case "call.waiting":
      return settled({ ...agent, awaits: Math.max(agent.awaits, entry.openIds.length) }, entry.at);
    case "child.reported":
      return settled({ ...agent, awaits: Math.max(0, agent.awaits - 1) }, entry.at);
    case "request.opened": {
      const { requestId, kind, name, at } = entry;
      return settled({ ...agent, requests: [...agent.requests, { requestId, kind, name, since: at }] }, at);
    }
    case "request.decided":
      return settled(
        { ...agent, requests: agent.requests.filter(({ requestId }) => requestId !== entry.requestId) },
        entry.at,
      );
    default:
      return agent;
  }
}

function inPhase(agent: AgentMoment, phase: Phase, at: number): AgentMoment {
  return agent.phase === phase ? agent : { ...agent, phase, since: at };
}

/** The phase between two model calls: the most urgent open item determines it. */
function workPhase({ requests, running, awaits, turnId }: AgentMoment): Phase {
  if (turnId === null) return "ready";
  if (requests.length > 0) return "asking";
  if (running.length > 0) return "tools";
  return awaits > 0 ? "waiting" : "thinking";
}

function settled(agent: AgentMoment, at: number): AgentMoment {
  const isWorking = agent.phase === "tools" || agent.phase === "waiting" || agent.phase === "asking";
  return isWorking || agent.phase === "thinking" ? inPhase(agent, workPhase(agent), at) : agent;
}

function turnStarted(agent: AgentMoment, entry: RunEntryOf<"turn.started">): AgentMoment {
  return {
    ...inPhase(agent, "thinking", entry.at),
    turn: entry.number,
    turnId: entry.turnId,
    step: 0,
    running: none,
    requests: none,
    awaits: 0,
    model: entry.model.name,
    stopReason: null,
    message: null,
    accountId: entry.accountId,
  };
}

function turnEnded(agent: AgentMoment, entry: RunEntryOf<"turn.ended">): AgentMoment {
  const phase = entry.outcome === "completed" ? "done" : entry.outcome;
  return {
    ...inPhase(agent, entry.lifecycle === "paused" ? "paused" : phase, entry.at),
    turnId: null,
    running: none,
    requests: none,
    awaits: 0,
    stopReason: entry.stopReason,
    message: entry.signal?.message ?? entry.error?.message ?? null,
    retryAt: null,
  };
}

function refused(agent: AgentMoment, entry: RunEntryOf<"intent.refused">): AgentMoment {
  // A refusal because of a pause is followed by `agent.paused`, once the calls in flight have ended.
  return entry.reason === "mustWait" ? inPhase(agent, "budget", entry.at) : agent;
}

/** Whether the agent works or waits for something during its turn. */
export function isBusy({ phase }: AgentMoment): boolean {
  return busyPhases.has(phase);
}

const busyPhases: ReadonlySet<Phase> = new Set([
  "asking",
  "retrying",
  "budget",
  "thinking",
  "tools",
  "waiting",
  "starting",
]);
