import type { RunRow } from "../feed/wire.ts";
import { type CostRow, runCosts } from "../run-model/run-costs.ts";
import { byCost } from "../run-model/summary-facts.ts";
import type { RunQuery } from "./feed-client.ts";
import { plural } from "./format.ts";
import { addressOf } from "./page-state.ts";
import { type UseRow, UseTable } from "./tables.tsx";
import { oneLine } from "./untrusted.tsx";

const day = new Intl.DateTimeFormat("en-CA", { year: "numeric", month: "2-digit", day: "2-digit" });

/** The runs that a row sums up: `spent` in the address, such as `model:gpt-5`, `agent:reader`, `day:2026-11-28`. */
export function filterOf(spent: string): Pick<RunQuery, "model" | "agent" | "since" | "until"> {
  const [kind, name] = partsOf(spent);
  if (kind === "model" || kind === "agent") return { [kind]: name };
  const [since, until] = [new Date(`${name}T00:00`), new Date(`${name}T00:00`)];
  until.setDate(until.getDate() + 1);
  return Number.isNaN(since.getTime()) ? {} : { since: since.getTime(), until: until.getTime() };
}

export function wordsOfSpent(spent: string): string {
  return partsOf(spent).join(" ");
}

function partsOf(spent: string): readonly [string, string] {
  const end = spent.indexOf(":");
  return [spent.slice(0, end), spent.slice(end + 1)];
}

interface CostsProps {
  readonly rows: readonly RunRow[];
  /** Whether there are no older runs. */
  readonly isAll: boolean;
}

/** The total cost of the listed runs by model, by definition and by day. Each row links to its runs. */
export function Costs({ rows, isAll }: CostsProps) {
  const models = runCosts(rows, (_, { model }) => model).toSorted((one, other) => byCost(one.use, other.use));
  const agents = runCosts(rows, (_, { name }) => name).toSorted((one, other) => byCost(one.use, other.use));
  const days = runCosts(rows, ({ createdAt }) => day.format(createdAt)).toSorted((one, other) =>
    other.name.localeCompare(one.name),
  );
  return (
    <section aria-label="Costs of the runs">
      <p class="quiet cost-scope">
        {isAll ? "Of all" : "Of the newest"} {plural(rows.length, "run")} that the filter shows, with the calls of all
        their agents. A day is that on which a run began. Each row leads to its runs.
      </p>
      <UseTable label="By model" what="Model" rows={linked("model", models)} />
      <UseTable label="By agent" what="Agents of a definition, their own calls" rows={linked("agent", agents)} />
      <UseTable label="By day" what="Day" most={62} rows={linked("day", days)} />
    </section>
  );
}

/** Rows with links to the runs that they sum up. */
function linked(kind: string, costs: readonly CostRow[]): UseRow[] {
  return costs.map(({ name, ...row }) => ({
    ...row,
    key: name,
    name: <a href={addressOf({ page: "runs", spent: `${kind}:${name}` })}>{oneLine(name, 60)}</a>,
  }));
}
