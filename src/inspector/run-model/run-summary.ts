import { addModelUse, type ModelUse, noModelUse, totalUse } from "../../budget/index.ts";
import { isBusy } from "./agent-moment.ts";
import type { RunLog } from "./run-log.ts";
import { slowAnswer, spentAnswer, stateAnswer } from "./summary-answers.ts";
import {
  type AgentUse,
  byCost,
  type RunSummary,
  sumOfUses,
  type SummaryFacts,
  type SummarySource,
  type TimeShares,
} from "./summary-facts.ts";
import { summarySentences } from "./summary-sentences.ts";
import type { Span, Timeline } from "./timeline.ts";

/** Summarizes a run at a moment, in time linear in the number of its spans. */
export function runSummary(source: SummarySource): RunSummary {
  const { log, timeline, moment, until } = source;
  const spans = log.agents.map(({ index }): readonly Span[] => {
    const all = timeline.spansOf(index);
    return (all.at(-1)?.first ?? 0) < moment.count ? all : all.filter(({ first }) => first < moment.count);
  });
  const spansOf = (agent: number): readonly Span[] => spans[agent] ?? [];
  const models = new Map<string, ModelUse>();
  const byAgent: AgentUse[] = [];
  for (const { index, agentId, name } of log.agents) {
    const one = moment.agents[index];
    if (!one || one.calls === 0) continue;
    const use = totalUse(one.models);
    for (const [name, own] of Object.entries(one.models)) {
      models.set(name, addModelUse(models.get(name) ?? noModelUse, own));
    }
    byAgent.push({ agentId, name, use });
  }
  const facts: SummaryFacts = {
    ...source,
    spansOf,
    isOpen: source.lost.size > 0 || moment.agents.some((one) => one !== undefined && isBusy(one)),
    byModel: [...models].toSorted(([, one], [, other]) => byCost(one, other)),
    byAgent: byAgent.toSorted((one, other) => byCost(one.use, other.use)),
    total: sumOfUses(byAgent.map(({ use }) => use)),
    time: timeShares(log, timeline, { spansOf, until }),
  };
  return {
    isOpen: facts.isOpen,
    answers: [stateAnswer(facts), spentAnswer(facts), slowAnswer(facts)],
    sentences: summarySentences(facts),
    byModel: facts.byModel,
    byAgent: facts.byAgent,
    total: facts.total,
  };
}

interface Range {
  readonly start: number;
  readonly end: number;
}

function timeShares(
  log: RunLog,
  timeline: Timeline,
  { spansOf, until }: Pick<SummaryFacts, "spansOf" | "until">,
): TimeShares {
  const totalMs = Math.max(0, until - log.startedAt);
  const people = log.agents.flatMap(({ index }) => spansOf(index).filter(({ kind }) => kind === "person"));
  const workMs = coveredMs(timeline.busy, until);
  const peopleMs = coveredMs([...timeline.busy, ...people], until) - workMs;
  return { totalMs, workMs, peopleMs, idleMs: Math.max(0, totalMs - workMs - peopleMs) };
}

/** Milliseconds covered by at least one of the ranges, until a time. */
function coveredMs(ranges: readonly Range[], until: number): number {
  let covered = 0;
  let last = Number.NEGATIVE_INFINITY;
  for (const { start, end } of ranges.toSorted((one, other) => one.start - other.start)) {
    const stop = Math.min(end, until);
    covered += Math.max(0, stop - Math.max(start, last));
    last = Math.max(last, stop);
  }
  return covered;
}
