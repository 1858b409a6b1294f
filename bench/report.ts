import { readFileSync } from "node:fs";
import type { Peer } from "./peers/index.ts";
import type { Samples } from "./rounds.ts";
import { median, medianInterval, quantile } from "./statistics.ts";
import { isRate, type Pair, type Study, type Unit } from "./study.ts";

/** One line of the result: troupe on some stores against the bare side. */
export interface Row {
  readonly name: string;
  readonly stores: string;
  /** Set if a study measures several things. */
  readonly variant?: string;
  /** The source of the figures in `ours` if it is not troupe: another library, or the bare loop. */
  readonly contender?: string;
  /** The amount of work on each side, if the study varies it. */
  readonly at?: { readonly ours: number; readonly bare: number };
  readonly unit: Unit;
  readonly better: "lower" | "higher";
  /** Medians of the rounds. */
  readonly ours: number;
  readonly bare: number;
  /** ours / bare, of the medians. */
  readonly ratio: number;
}

/** A row with the spread of its figures. */
export interface DetailedRow {
  readonly row: Row;
  /** The middle half of the rounds. */
  readonly spread: { readonly ours: Range; readonly bare: Range };
  /** Processor time per unit of work, ours / bare, by round, because the two samples of a round are close in time. */
  readonly processor: {
    readonly ratio: number;
    /** The middle half of the rounds. */
    readonly range: Range;
    /** The interval that contains the ratio with a probability of about 95 %. */
    readonly interval: Range;
  };
}

interface Range {
  readonly low: number;
  readonly high: number;
}

/** One row per pair, in order. */
export function rowsOf(
  study: Pick<Study, "name" | "unit">,
  pairs: readonly Pair[],
  samples: Samples,
): readonly DetailedRow[] {
  return pairs.map((pair) => {
    const [samplesOfOurs = [], samplesOfBare = []] = [samples.get(pair.ours), samples.get(pair.bare)];
    const ours = samplesOfOurs.map(({ value }) => value);
    const bare = samplesOfBare.map(({ value }) => value);
    const row: Row = {
      name: study.name,
      stores: pair.stores,
      ...(pair.variant === undefined ? {} : { variant: pair.variant }),
      ...(pair.contender === undefined ? {} : { contender: pair.contender }),
      ...(pair.at === undefined ? {} : { at: pair.at }),
      unit: pair.unit ?? study.unit,
      better: isRate(pair.unit ?? study.unit) ? "higher" : "lower",
      ours: median(ours),
      bare: median(bare),
      ratio: median(ours) / median(bare),
    };
    const spread = { ours: rangeOf(ours), bare: rangeOf(bare) };
    const ratios = samplesOfOurs.map(
      ({ processorMs }, round) => processorMs / (samplesOfBare[round]?.processorMs ?? Number.NaN),
    );
    return {
      row,
      spread,
      processor: { ratio: median(ratios), range: rangeOf(ratios), interval: medianInterval(ratios) },
    };
  });
}

/** Versions and options of a run. */
export interface RunHead {
  /** Versions of this package, of Node, and of the libraries that took part. */
  readonly versions: Readonly<Record<string, string>>;
  readonly quick: boolean;
}

export function runHead(quick: boolean, peers: readonly Pick<Peer, "name" | "version">[]): RunHead {
  const { version: troupe } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
    readonly version: string;
  };
  const others = Object.fromEntries(peers.map(({ name, version }) => [name, version]));
  return { versions: { troupe, node: process.versions.node, ...others }, quick };
}

/** The last line of `--json` output. */
export interface RunFigures extends RunHead {
  readonly scenarios: readonly Row[];
}

/** Formats the last line of `--json` output: three decimals, four for ratios. */
export function jsonLine(rows: readonly DetailedRow[], head: RunHead): string {
  const scenarios = rows.map(({ row }) => ({
    ...row,
    ours: round(row.ours, 3),
    bare: round(row.bare, 3),
    ratio: round(row.ratio, 4),
  }));
  return JSON.stringify({ ...head, scenarios } satisfies RunFigures);
}

/** The table for people. */
export function table(rows: readonly DetailedRow[]): string {
  const head = [
    "scenario",
    "contender",
    "unit",
    "better",
    "ours",
    "± %",
    "bare",
    "± %",
    "ratio",
    "between",
    "cpu ratio",
    "± %",
    "95 %",
  ];
  const body = rows.map(({ row, spread, processor }) => [
    row.variant === undefined ? row.name : `${row.name}, ${row.variant}`,
    row.contender ?? row.stores,
    row.unit,
    row.better,
    figure(row.ours),
    percent(spread.ours, row.ours),
    figure(row.bare),
    percent(spread.bare, row.bare),
    row.ratio.toFixed(2),
    `${(spread.ours.low / spread.bare.high).toFixed(2)}-${(spread.ours.high / spread.bare.low).toFixed(2)}`,
    processor.ratio.toFixed(2),
    percent(processor.range, processor.ratio),
    `${processor.interval.low.toFixed(2)}-${processor.interval.high.toFixed(2)}`,
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

function rangeOf(values: readonly number[]): Range {
  return { low: quantile(values, 0.25), high: quantile(values, 0.75) };
}

function figure(value: number): string {
  return value >= 100 ? value.toFixed(0) : Math.abs(value) >= 1 ? value.toFixed(2) : value.toFixed(3);
}

/** Half the width of the middle half, in percent of the median. */
function percent(range: Range, middle: number): string {
  return (((range.high - range.low) / 2 / middle) * 100).toFixed(1);
}
