import type { ModelUse } from "../../budget/index.ts";
import type { RunRow } from "../feed/wire.ts";
import { sumOfUses } from "./summary-facts.ts";

type Spent = RunRow["spending"][number];

/** What runs have spent on one model, on the agents of one definition or on one day. */
export interface CostRow {
  readonly name: string;
  readonly use: ModelUse;
  /** Number of runs that spent on it. */
  readonly runs: number;
}

/** What the runs have spent, grouped by the name that `namesOf` returns for each use. */
export function runCosts(rows: readonly RunRow[], nameOf: (row: RunRow, spent: Spent) => string): CostRow[] {
  const parts = rows.flatMap((row) => row.spending.map((spent) => ({ row, spent, name: nameOf(row, spent) })));
  return [...Map.groupBy(parts, ({ name }) => name)].map(([name, own]) => ({
    name,
    use: sumOfUses(own.map(({ spent }) => spent.use)),
    runs: new Set(own.map(({ row }) => row.runId)).size,
  }));
}
