// The shared table component, for lists from the feed and for use by calls.
import type { ComponentChildren } from "preact";
import { type AgentUse, sumOfUses } from "../run-model/summary-facts.ts";
import type { Asked } from "./asked.ts";
import { compact, costText, costTitle, percent } from "./format.ts";

/** A column's title, and whether it contains figures. */
export type Column = readonly [name: ComponentChildren, isNumber?: boolean];

interface TableProps {
  readonly columns: readonly Column[];
  readonly class?: string;
  readonly label?: string;
  /** The rows. */
  readonly children: ComponentChildren;
}

export function Table({ columns, class: kind = "", label, children }: TableProps) {
  return (
    <table class={`run-table ${kind}`} aria-label={label}>
      <thead>
        <tr>
          {columns.map(([name, isNumber], index) => (
            <th key={index} scope="col" class={isNumber ? "number" : ""}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

interface AskedTableProps<Row> extends Omit<TableProps, "children"> {
  readonly asked: Pick<Asked<unknown>, "failure">;
  /** `undefined` until the first answer. */
  readonly rows: readonly Row[] | undefined;
  /** What is being read, such as `the store`. */
  readonly what: string;
  /** Shown if there are no rows. */
  readonly empty: ComponentChildren;
  readonly line: (row: Row) => ComponentChildren;
}

/** A requested list: a loading message, an error, a message that it is empty, or its table. */
export function AskedTable<Row>({ asked: { failure }, rows, what, empty, line, ...table }: AskedTableProps<Row>) {
  return (
    <>
      {failure !== null && (
        <p class="banner bad" role="alert">
          {failure}
        </p>
      )}
      {rows === undefined ? (
        failure === null && <p class="empty loading">Reading {what} …</p>
      ) : rows.length === 0 ? (
        empty
      ) : (
        <Table {...table}>{rows.map(line)}</Table>
      )}
    </>
  );
}

export interface UseRow {
  readonly key: string;
  readonly name: ComponentChildren;
  readonly use: AgentUse["use"];
  /** Number of runs that the row sums up. Absent if the table has no such column. */
  readonly runs?: number;
}

interface UseTableProps {
  readonly label: string;
  /** Title of the first column. */
  readonly what: string;
  readonly rows: readonly UseRow[];
  /** Most rows to show; one more row has the sum of the others. Default 20. */
  readonly most?: number;
}

/** Tokens and cost by model, agent, definition or day. */
export function UseTable({ label, what, rows, most = 20 }: UseTableProps) {
  const rest = rows.slice(most);
  const sum = sumOfUses(rest.map(({ use }) => use));
  const shown = [
    ...rows.slice(0, most),
    ...(rest.length === 0 ? [] : [{ key: "", name: <i>{rest.length.toLocaleString("en")} others</i>, use: sum }]),
  ] as const;
  const hasRuns = rows.some(({ runs }) => runs !== undefined);
  const names = ["Cost", ...(hasRuns ? ["Runs"] : []), "Calls", "Input", "Cached", "Output", "Reasoning"];
  return (
    <Table class="use-table" label={label} columns={[[what], ...names.map((name) => [name, true] as const)]}>
      {shown.map(({ key, name, use, ...row }) => (
        <tr key={key}>
          <td>{name}</td>
          <td class="number figures" title={costTitle(use)}>
            {costText(use)}
          </td>
          {hasRuns && <td class="number figures">{("runs" in row ? row.runs : undefined)?.toLocaleString("en")}</td>}
          <td class="number figures">{use.calls.toLocaleString("en")}</td>
          <td class="number figures">{compact(use.inputTokens)}</td>
          <td class="number figures">
            {compact(use.cachedInputTokens)}
            {use.cachedInputTokens > 0 && <span class="quiet"> {percent(use.cachedInputTokens, use.inputTokens)}</span>}
          </td>
          <td class="number figures">{compact(use.outputTokens)}</td>
          <td class="number figures">{compact(use.reasoningTokens)}</td>
        </tr>
      ))}
    </Table>
  );
}
