import { compact, costText, milliseconds, percent, plural } from "./figures.ts";
import type { SummaryFacts } from "./summary-facts.ts";

/** Most definitions that are listed for a team. */
const MOST_NAMES = 6;

/** Counts for a summary. */
interface Counts {
  agents: number;
  turns: number;
  steps: number;
  toolCalls: number;
  failedAgents: number;
  stoppedAgents: number;
  failedModelCalls: number;
  failedToolCalls: number;
  retries: number;
  /** Number of agents by name. */
  readonly names: Map<string, number>;
  /** Number of requests by outcome and decider. */
  readonly requests: Map<string, number>;
}

function countsOf({ log, moment, spansOf }: SummaryFacts): Counts {
  const counts: Counts = {
    agents: 0,
    turns: 0,
    steps: 0,
    toolCalls: 0,
    failedAgents: 0,
    stoppedAgents: 0,
    failedModelCalls: 0,
    failedToolCalls: 0,
    retries: 0,
    names: new Map(),
    requests: new Map(),
  };
  for (const { index, name } of log.agents) {
    const agent = moment.agents[index];
    if (!agent) continue;
    add(counts.names, name);
    counts.agents += 1;
    counts.turns += agent.turn;
    counts.steps += agent.steps;
    counts.toolCalls += agent.toolCalls;
    if (agent.phase === "failed") counts.failedAgents += 1;
    if (agent.phase === "stopped") counts.stoppedAgents += 1;
    for (const { kind, isFailed, last } of spansOf(index)) {
      const end = last < moment.count ? log.entry(last) : undefined;
      if (kind === "retry" || end?.type === "tool.retrying") counts.retries += 1;
      if (kind === "person") add(counts.requests, requestWords(end));
      else if (!isFailed || !end) continue;
      else if (kind === "model") counts.failedModelCalls += 1;
      else counts.failedToolCalls += 1;
    }
  }
  return counts;
}

function add(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

/** The outcome of a request, by the entry that ended the wait for it. */
function requestWords(end: ReturnType<SummaryFacts["log"]["entry"]>): string {
  if (!end) return "open";
  if (end.type !== "request.decided") return "closed with the turn";
  return end.by ? `${end.verdict} by ${end.by}` : end.verdict;
}

/** Describes a run in a few sentences for people. */
export function summarySentences(facts: SummaryFacts): string[] {
  const { task, time, total, isOpen } = facts;
  const counts = countsOf(facts);
  const soFar = isOpen ? " so far" : "";
  const names = [...counts.names].map(([name, count]) => (count === 1 ? name : `${count} × ${name}`));
  const named = [...names.slice(0, MOST_NAMES), ...(names.length > MOST_NAMES ? ["…"] : [])].join(", ");
  const did = `${plural(counts.turns, "turn")}, ${plural(counts.steps, "model call")} and ${plural(counts.toolCalls, "tool call")}`;
  const failed = listed([
    [counts.failedAgents, "agent"],
    [counts.failedModelCalls, "model call"],
    [counts.failedToolCalls, "tool call"],
  ]);
  const besides = listed([
    [counts.stoppedAgents, "agent stopped early", "agents stopped early"],
    [counts.retries, "retry", "retries"],
  ]);
  const requests = [...counts.requests].map(([words, count]) => `${count} ${words}`).join(", ");
  const { inputTokens, outputTokens, cachedInputTokens } = total;
  const cached = cachedInputTokens > 0 ? `, ${percent(cachedInputTokens, inputTokens)} of it cached,` : "";
  const tokens = `${compact(inputTokens)} input tokens${cached} and ${compact(outputTokens)} output tokens`;
  return [
    ...(task === "" ? [] : [`Task: ${task}`]),
    `${plural(counts.agents, "agent")} (${named}) made ${did} in ${milliseconds(time.totalMs)}${soFar}.`,
    `${failed === "" ? "Nothing" : failed} failed${besides === "" ? "" : `; ${besides}`}.`,
    ...(requests === "" ? [] : [`Requests to people: ${requests}.`]),
    `Cost${soFar}: ${costText(total)}, for ${tokens}.`,
  ];
}

/** The counts above 0, in words. */
function listed(counts: readonly (readonly [count: number, one: string, many?: string])[]): string {
  return counts.flatMap(([count, ...words]) => (count > 0 ? [plural(count, ...words)] : [])).join(", ");
}
