import { NotFoundError } from "../../errors/index.ts";
import type { EvalRun, Evals } from "./answers.ts";
import type { Sources } from "./source.ts";
import type { Visibility } from "./visible-values.ts";

/** A report of evals that a feed shows. */
export interface EvalsSource {
  /** The newest state of the report. */
  overview(): Promise<Evals>;
  /** The runs of a case, by its key; `undefined` if the report does not have the case. */
  runs(key: string): Promise<readonly ReportedRun[] | undefined>;
}

/** One run of a case, as its report has it. */
export interface ReportedRun extends Omit<EvalRun, "agents"> {
  /** Its root agents, as `EvalRun` has them. */
  readonly agents: readonly Omit<EvalRun["agents"][number], "isStored">[];
}

/** Most characters of a failure in an answer. */
const LONGEST_FAILURE = 10_000;

export async function shownEvals(source: EvalsSource, sight: Visibility): Promise<Evals> {
  const { errors, ...report } = await source.overview();
  return { ...report, errors: errors.map((text) => shownText(text, sight)) };
}

/** The runs of a case, those that failed first. Rejects with `NotFoundError` for an unknown case. */
export async function shownEvalRuns(
  { source, sources }: { readonly source: EvalsSource; readonly sources: Sources },
  key: string,
  sight: Visibility,
): Promise<EvalRun[]> {
  const runs = await source.runs(key);
  if (!runs) throw new NotFoundError(`the report has no case "${key}"`);
  const shown: EvalRun[] = [];
  for (const { agents, failure, ...run } of runs) {
    const linked: EvalRun["agents"][number][] = [];
    for (const agent of agents) linked.push({ ...agent, isStored: await sources.has(agent.agentId) });
    shown.push({ ...run, failure: failure === null ? null : shownText(failure, sight), agents: linked });
  }
  return shown.toSorted((one, other) => Number(one.passed) - Number(other.passed) || one.run - other.run);
}

function shownText(text: string, { namesOnly, redactor }: Visibility): string {
  return namesOnly ? "" : redactor.text(text).slice(0, LONGEST_FAILURE);
}
