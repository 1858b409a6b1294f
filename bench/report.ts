import type { Sample, Samples } from "./rounds.ts";
import type { Scenario } from "./scenario.ts";
import { median, quantile } from "./statistics.ts";

/** One line of the result: ours on some stores against the bare loop. */
export interface Row {
  readonly name: string;
  readonly stores: string;
  readonly unit: string;
  readonly better: "lower" | "higher";
  /** Medians of the rounds. */
  readonly ours: number;
  readonly bare: number;
  /** ours / bare, of the medians. */
  readonly ratio: number;
}

/** A row with what a person needs to judge it. */
export interface DetailedRow {
  readonly row: Row;
  readonly spread: { readonly ours: Range; readonly bare: Range };
  /** ours / bare of the processor time per turn. */
  readonly processorRatio: number;
}

interface Range {
  /** The middle half of the rounds lies between these. */
  readonly low: number;
  readonly high: number;
}

/** The first list of samples is the bare loop's; each of the others becomes a row, in the order of `stores`. */
export function rowsOf(scenario: Scenario, stores: readonly string[], samples: Samples): readonly DetailedRow[] {
  const [bareSamples = [], ...others] = samples;
  const bare = bareSamples.map(({ value }) => value);
  return others.map((samplesOfOurs, index) => {
    const ours = samplesOfOurs.map(({ value }) => value);
    const row: Row = {
      name: scenario.name,
      stores: stores[index] ?? "",
      unit: scenario.unit,
      better: scenario.unit === "turns/s" ? "higher" : "lower",
      ours: median(ours),
      bare: median(bare),
      ratio: median(ours) / median(bare),
    };
    const spread = { ours: rangeOf(ours), bare: rangeOf(bare) };
    return { row, spread, processorRatio: processorTime(samplesOfOurs) / processorTime(bareSamples) };
  });
}

/** The one line that `--json` ends with; three digits behind the point, four for ratios. */
export function jsonLine(rows: readonly DetailedRow[]): string {
  const scenarios = rows.map(({ row }) => ({
    ...row,
    ours: round(row.ours, 3),
    bare: round(row.bare, 3),
    ratio: round(row.ratio, 4),
  }));
  return JSON.stringify({ scenarios });
}

/** The table for people. */
export function table(rows: readonly DetailedRow[]): string {
  const head = ["scenario", "stores", "unit", "better", "ours", "± %", "bare", "± %", "ratio", "between", "cpu ratio"];
  const body = rows.map(({ row, spread, processorRatio }) => [
    row.name,
    row.stores,
    row.unit,
    row.better,
    figure(row.ours),
    percent(spread.ours, row.ours),
    figure(row.bare),
    percent(spread.bare, row.bare),
    row.ratio.toFixed(2),
    `${(spread.ours.low / spread.bare.high).toFixed(2)}-${(spread.ours.high / spread.bare.low).toFixed(2)}`,
    processorRatio.toFixed(2),
  ]);
  const lines = [head, ...body];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const textColumns = 4;
  return lines
    .map((line) =>
      line
        .map((cell, column) => {
          const width = widths[column] ?? 0;
          return column < textColumns ? cell.padEnd(width) : cell.padStart(width);
        })
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

function processorTime(samples: readonly Sample[]): number {
  return median(samples.map(({ processorMs }) => processorMs));
}

function rangeOf(values: readonly number[]): Range {
  return { low: quantile(values, 0.25), high: quantile(values, 0.75) };
}

function figure(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(2);
}

/** Half the width of the middle half, in percent of the median. */
function percent(range: Range, middle: number): string {
  return (((range.high - range.low) / 2 / middle) * 100).toFixed(1);
}
