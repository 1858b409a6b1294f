import { addModelUse, type ModelUse, noModelUse } from "../../budget/index.ts";
import type { LostAgent } from "./lost-agents.ts";
import type { RunLog } from "./run-log.ts";
import type { RunMoment } from "./run-moments.ts";
import type { Span, Timeline } from "./timeline.ts";

/** A run at one moment, of which a summary is made. */
export interface SummarySource {
  readonly log: RunLog;
  /** Has taken in at least what the moment has. */
  readonly timeline: Timeline;
  readonly moment: RunMoment;
  /** Until when the run is known: the time of the moment, or later while an agent works. */
  readonly until: number;
  /** Agents that no living process runs, by their places in the log. */
  readonly lost: ReadonlyMap<number, LostAgent>;
  /** The first words of its first input; empty if they are not known. */
  readonly task: string;
}

/** Where on the page something is seen: fields of its address. */
export interface SummaryPlace {
  /** The view that shows it. */
  readonly view: "timeline" | "budgets" | "requests";
  /** Id of the agent that is selected. */
  readonly agent: string;
  /** The moment, as `CURSOR` or `CURSOR.N`; `null` for that of the summary. */
  readonly at: string | null;
  /** The bar that is open, by the moment with which it begins; `null` if no bar is. */
  readonly span: string | null;
}

/** One fact of an answer. */
export interface SummaryFact {
  /** In words. */
  readonly text: string;
  /** Where the fact is seen; `null` if no view shows it in particular. */
  readonly place: SummaryPlace | null;
}

/** One of the three answers of a summary. */
export interface SummaryAnswer {
  /** What it answers: why it stopped or what it waits for, who spent it, what was slow. */
  readonly question: string;
  /** The most important one first. */
  readonly facts: readonly SummaryFact[];
}

/** What an agent's own calls have used. */
export interface AgentUse {
  /** Id of the agent. */
  readonly agentId: string;
  /** Name of its definition. */
  readonly name: string;
  /** Calls, tokens and cost. */
  readonly use: ModelUse;
}

/** How the time of a run divides. */
export interface TimeShares {
  readonly totalMs: number;
  /** At least one model call, tool or wait before a retry was under way. */
  readonly workMs: number;
  /** Nothing worked, and a person was waited for. */
  readonly peopleMs: number;
  readonly idleMs: number;
}

/** A run in short. */
export interface RunSummary {
  /** It has not ended: figures are those so far. */
  readonly isOpen: boolean;
  /** Why it stopped or what it waits for, who spent it, what was slow. */
  readonly answers: readonly SummaryAnswer[];
  /** Task, team, failures, requests to people and cost, in words. */
  readonly sentences: readonly string[];
  /** The dearest first; of those without a price the ones with most tokens. */
  readonly byModel: readonly (readonly [model: string, use: ModelUse])[];
  /** Own calls, in the same order. */
  readonly byAgent: readonly AgentUse[];
  /** Of all calls. */
  readonly total: ModelUse;
}

/** What the parts of a summary are made of. */
export interface SummaryFacts extends SummarySource, Omit<RunSummary, "answers" | "sentences"> {
  readonly time: TimeShares;
  /** The spans that had begun, of each agent. */
  readonly spansOf: (agent: number) => readonly Span[];
}

/** The dearest first, then the one with most tokens. */
export function byCost(one: ModelUse, other: ModelUse): number {
  return other.costMicros - one.costMicros || tokensOf(other) - tokensOf(one);
}

export function tokensOf({ inputTokens, outputTokens }: ModelUse): number {
  return inputTokens + outputTokens;
}

export function sumOfUses(uses: readonly ModelUse[]): ModelUse {
  return uses.reduce(addModelUse, noModelUse);
}
