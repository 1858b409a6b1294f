import { addModelUse, type ModelUse, noModelUse } from "../../budget/index.ts";
import type { LostAgent } from "./lost-agents.ts";
import type { RunLog } from "./run-log.ts";
import type { RunMoment } from "./run-moments.ts";
import type { Span, Timeline } from "./timeline.ts";

/** A run at one moment, as input of a summary. */
export interface SummarySource {
  readonly log: RunLog;
  /** Must include at least the entries of the moment. */
  readonly timeline: Timeline;
  readonly moment: RunMoment;
  /** The end of the known time: the time of the moment, or later while an agent works. */
  readonly until: number;
  /** Agents that no living process runs, by index in the log. */
  readonly lost: ReadonlyMap<number, LostAgent>;
  /** The first words of the run's first input; empty if not known. */
  readonly task: string;
}

/** The fields of a page address that shows a fact. */
export interface SummaryPlace {
  /** The view that shows it. */
  readonly view: "timeline" | "budgets" | "requests";
  /** Id of the agent that is selected. */
  readonly agent: string;
  /** The moment, as `CURSOR` or `CURSOR.N`; `null` for the moment of the summary. */
  readonly at: string | null;
  /** The open bar, by the moment at which it begins; `null` if no bar is open. */
  readonly span: string | null;
}

/** One fact of an answer. */
export interface SummaryFact {
  /** The fact in words. */
  readonly text: string;
  /** The page address that shows the fact; `null` if no view shows it in particular. */
  readonly place: SummaryPlace | null;
}

/** One of the three answers of a summary. */
export interface SummaryAnswer {
  /** The question: why it stopped or what it waits for, who spent it, or what was slow. */
  readonly question: string;
  /** The most important fact first. */
  readonly facts: readonly SummaryFact[];
}

/** Use by an agent's own calls. */
export interface AgentUse {
  /** Id of the agent. */
  readonly agentId: string;
  /** Name of the agent's definition. */
  readonly name: string;
  /** Calls, tokens and cost. */
  readonly use: ModelUse;
}

/** How the time of a run is divided. */
export interface TimeShares {
  readonly totalMs: number;
  /** Time with at least one model call, tool call or wait before a retry. */
  readonly workMs: number;
  /** Time in which nothing worked and a request to a person was open. */
  readonly peopleMs: number;
  readonly idleMs: number;
}

/** The summary of a run. */
export interface RunSummary {
  /** Whether the run has not ended. Figures are then preliminary. */
  readonly isOpen: boolean;
  /** Three answers: why it stopped or what it waits for, who spent it, what was slow. */
  readonly answers: readonly SummaryAnswer[];
  /** Task, team, failures, requests to people and cost, in words. */
  readonly sentences: readonly string[];
  /** By cost, the highest first; models without a price by tokens. */
  readonly byModel: readonly (readonly [model: string, use: ModelUse])[];
  /** Use by the agents' own calls, in the same order. */
  readonly byAgent: readonly AgentUse[];
  /** Use of all calls. */
  readonly total: ModelUse;
}

/** The input of a summary's answers and sentences. */
export interface SummaryFacts extends SummarySource, Omit<RunSummary, "answers" | "sentences"> {
  readonly time: TimeShares;
  /** The spans of an agent that had begun at the moment. */
  readonly spansOf: (agent: number) => readonly Span[];
}

/** Sorts by cost, then by tokens, the highest first. */
export function byCost(one: ModelUse, other: ModelUse): number {
  return other.costMicros - one.costMicros || tokensOf(other) - tokensOf(one);
}

export function tokensOf({ inputTokens, outputTokens }: ModelUse): number {
  return inputTokens + outputTokens;
}

export function sumOfUses(uses: readonly ModelUse[]): ModelUse {
  return uses.reduce(addModelUse, noModelUse);
}
