import { appendFileSync, readFileSync } from "node:fs";
import { evalVariables } from "./eval-variables.ts";

/** What the cases of `troupe eval --max-cost` have cost. */
export interface EvalSpending {
  readonly dollars: number;
  /** Name of the first case whose cost is unknown. */
  readonly unknown: string | undefined;
}

/** The beginning of the error of a case that does not start, because the limit is reached. */
export const EVAL_NOT_RUN = "not run: --max-cost of `troupe eval` is reached";

/** One case that has ended. `cost`: dollars; `null` if a price is unknown. */
interface SpentCase {
  readonly name: string;
  readonly cost: number | null;
}

/** Adds a case to the file that all processes of the cases share, if there is a limit. */
export function addEvalSpending({ name, cost }: SpentCase): void {
  const { [evalVariables.spending]: path = "" } = process.env;
  if (path !== "") appendFileSync(path, `${JSON.stringify({ name, cost })}\n`);
}

/** Whether no further case may start. */
export function isEvalMoneySpent(): boolean {
  const { [evalVariables.spending]: path = "", [evalVariables.maxCost]: max = "" } = process.env;
  if (path === "") return false;
  const { dollars, unknown } = readEvalSpending(path);
  return unknown !== undefined || dollars >= Number(max);
}

export function readEvalSpending(path: string): EvalSpending {
  const lines = readFileSync(path, "utf8").split("\n");
  const cases = lines.flatMap((line) => (line === "" ? [] : [JSON.parse(line) as SpentCase]));
  return {
    dollars: cases.reduce((sum, { cost }) => sum + (cost ?? 0), 0),
    unknown: cases.find(({ cost }) => cost === null)?.name,
  };
}
