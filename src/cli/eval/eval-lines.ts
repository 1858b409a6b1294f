import { formatCount, formatDuration, formatNumberOf } from "../view/format.ts";
import { type Column, tableLines } from "../view/table.ts";
import { printable } from "../view/terminal-text.ts";
import {
  allAttempts,
  caseKey,
  type Comparison,
  type EvalReport,
  figuresOf,
  type Figures,
  isFlaky,
} from "./eval-report.ts";
import { changeTexts, costText, percent } from "./report-files.ts";

const columns: readonly Column[] = [
  { title: "CASE", minWidth: 20 },
  { title: "PASSED", align: "right" },
  { title: "RATE (95 %)", align: "right" },
  { title: "COST", align: "right", leaveOut: 2 },
  { title: "TOKENS", align: "right", leaveOut: 1 },
  { title: "TIME", align: "right", leaveOut: 3 },
  { title: "" },
];

/** The report for a terminal: a table of the cases, failures, the comparison, and all cases together. */
export function reportLines(report: EvalReport, comparison: Comparison | undefined, width: number): string[] {
  const all = figuresOf(allAttempts(report));
  const flaky = report.cases.filter(({ attempts }) => isFlaky(figuresOf(attempts))).length;
  return [
    ...tableLines(columns, report.cases.map(caseRow), width),
    ...report.cases.flatMap(failureLines),
    ...report.errors.flatMap((message) => ["", "An error outside of cases:", ...indented(message)]),
    ...(comparison ? comparisonLines(comparison, width) : []),
    "",
    `${formatNumberOf(report.cases.length, "case")}, ${formatNumberOf(all.runs, "run")}: ${rateText(all)} passed, ` +
      `${all.cost === null ? "cost unknown" : costText(all.cost * all.runs)}, ${formatCount(Math.round(all.tokens * all.runs))} tokens` +
      `${flaky > 0 ? `, ${flaky} flaky` : ""}${report.skipped.length > 0 ? `, ${report.skipped.length} skipped` : ""}`,
    ...(all.passRate < report.minPass ? [`Fewer than ${percent(report.minPass)} of the runs passed.`] : []),
  ];
}

function rateText({ passRate, interval }: Figures): string {
  return `${percent(passRate)} (${percent(interval.low)} to ${percent(interval.high)})`;
}

function caseRow(one: EvalReport["cases"][number]): string[] {
  const figures = figuresOf(one.attempts);
  const { passed, runs, cost, tokens, durationMs } = figures;
  return [
    caseKey(one),
    `${passed}/${runs}`,
    rateText(figures),
    costText(cost),
    formatCount(Math.round(tokens)),
    formatDuration(durationMs),
    isFlaky(figures) ? "flaky" : passed === 0 ? "failed" : "",
  ];
}

/** The first failure; the others are in the files. */
function failureLines(one: EvalReport["cases"][number]): string[] {
  const failed = one.attempts.filter(({ failure }) => failure !== null);
  const [first] = failed;
  if (!first) return [];
  const title = `${printable(caseKey(one))}, run ${first.run}${failed.length > 1 ? ` and ${failed.length - 1} more` : ""}:`;
  return ["", title, ...indented(first.failure ?? "")];
}

function indented(text: string): string[] {
  return printable(text)
    .split("\n")
    .map((line) => `  ${line}`.trimEnd());
}

function comparisonLines({ changes, added, removed }: Comparison, width: number): string[] {
  const rows = changes.map(({ key, ...figures }) => [
    key ?? "all cases",
    ...changeTexts(figures).map(({ text, isSignificant }) => (isSignificant ? `${text} *` : text)),
  ]);
  const titles: readonly Column[] = [
    { title: "COMPARED", minWidth: 20 },
    { title: "RATE", align: "right" },
    { title: "COST", align: "right", leaveOut: 2 },
    { title: "TOKENS", align: "right", leaveOut: 1 },
    { title: "TIME", align: "right", leaveOut: 3 },
  ];
  return [
    "",
    ...tableLines(titles, rows, width),
    ...added.map((key) => `new: ${printable(key)}`),
    ...removed.map((key) => `removed: ${printable(key)}`),
    "* significant: p < 0.05, each figure by itself",
  ];
}
