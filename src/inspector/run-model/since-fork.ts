import { isInherited, type RunLog } from "./run-log.ts";

/** What a run did from a place in its journal on. */
export interface UseSince {
  readonly steps: number;
  readonly toolCalls: number;
  readonly tokens: number;
  /** Micro-dollars of the calls that had a price; `null` if none had one. */
  readonly costMicros: number | null;
  /** Model calls, and how many of them had no price. */
  readonly calls: number;
  readonly unpricedCalls: number;
  /** Milliseconds until its last entry. */
  readonly ms: number;
}

/** An origin and its fork, each from the point at which they part; `undefined` unless the second is a fork of the first. */
export function sinceFork(
  origin: RunLog,
  fork: RunLog,
): { readonly origin: UseSince; readonly fork: UseSince } | undefined {
  const [root] = fork.agents;
  if (!root?.origin || root.origin.runId !== origin.agents[0]?.agentId) return undefined;
  const parted = placeOf(origin, root.origin);
  const own = fork.entries.findIndex((entry) => !isInherited(fork, entry));
  return {
    origin: useSince(origin, parted < 0 ? origin.length : parted),
    fork: useSince(fork, own < 0 ? fork.length : fork.first + own),
  };
}

/** The first entry of the step or, without one, the first after the turn; -1 if there is none. */
function placeOf(log: RunLog, { turn, step }: { readonly turn: number; readonly step: number | null }): number {
  let number = 0;
  for (const [index, entry] of log.entries.entries()) {
    const at = log.first + index;
    if (log.agentOf(at) !== 0) continue;
    if (entry.type === "turn.started") ({ number } = entry);
    if (number !== turn) continue;
    if (step === null && entry.type === "turn.ended") return at + 1;
    const isIntent = entry.type === "model.requested" || entry.type === "intent.refused";
    if (step !== null && isIntent && entry.step === step) return at;
  }
  return -1;
}

function useSince(log: RunLog, from: number): UseSince {
  const steps = new Set<string>();
  let [toolCalls, tokens, costMicros, calls, unpricedCalls] = [0, 0, 0, 0, 0];
  for (let at = from; at < log.length; at += 1) {
    const entry = log.entry(at);
    if (entry?.type === "model.requested") steps.add(`${log.agentOf(at)} ${entry.turnId} ${entry.step}`);
    else if (entry?.type === "tool.settled") toolCalls += 1;
    else if (entry?.type === "model.responded") {
      calls += 1;
      tokens += entry.usage.inputTokens + entry.usage.outputTokens;
      if (entry.costMicros === null) unpricedCalls += 1;
      else costMicros += entry.costMicros;
    }
  }
  const ms = from < log.length ? log.endedAt - log.timeOf(from) : 0;
  return {
    steps: steps.size,
    toolCalls,
    tokens,
    costMicros: calls > unpricedCalls ? costMicros : null,
    calls,
    unpricedCalls,
    ms,
  };
}
