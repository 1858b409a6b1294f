import {
  type CaseChange,
  type Change,
  type Comparison,
  allAttempts,
  caseKey,
  type EvalReport,
  figuresOf,
  isFlaky,
} from "./eval-report.ts";
import { formatCost, formatCount, formatDuration } from "../view/format.ts";

/** Characters that XML 1.0 does not allow, and halves of surrogate pairs. */
const notInXml = /(?![\t\n\r])\p{Control}|[\ufffe\uffff]|\p{Surrogate}/gu;

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** A text for an element or a quoted attribute of XML and HTML. */
function escaped(text: string): string {
  return text.replaceAll(notInXml, "\ufffd").replaceAll(/[&<>"']/g, (character) => entities[character] ?? "");
}

/** The report as JUnit's XML: a suite for each file; a case fails if its pass rate is below the lowest one. */
export function junitXml(report: EvalReport): string {
  const files = Map.groupBy(report.cases, ({ file }) => file);
  for (const { file } of report.skipped) if (!files.has(file)) files.set(file, []);
  const suites = [...files].map(([file, cases]) => suiteXml(report, file, cases));
  const errors = report.errors.map(
    (message, index) =>
      `    <testcase classname="errors" name="error ${index + 1}"><error message="${escaped(firstLine(message))}">${escaped(message)}</error></testcase>`,
  );
  const ofErrors =
    errors.length === 0
      ? []
      : [
          `  <testsuite name="outside of cases" tests="${errors.length}" failures="0" errors="${errors.length}">`,
          ...errors,
          "  </testsuite>",
        ];
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<testsuites name="troupe eval">',
    ...suites.flat(),
    ...ofErrors,
    "</testsuites>",
    "",
  ].join("\n");
}

function suiteXml({ minPass, skipped }: EvalReport, file: string, cases: EvalReport["cases"]): string[] {
  const lines = cases.map(({ name, attempts }) => {
    const { passed, runs, passRate, durationMs } = figuresOf(attempts);
    const opening = `    <testcase classname="${escaped(file)}" name="${escaped(name)}" time="${seconds(durationMs * runs)}"`;
    if (passRate >= minPass) return `${opening}/>`;
    const failures = [...new Set(attempts.flatMap(({ failure }) => failure ?? []))];
    const message = `${passed} of ${runs} runs passed`;
    return `${opening}><failure message="${escaped(message)}">${escaped(failures.join("\n\n"))}</failure></testcase>`;
  });
  const left = skipped
    .filter((one) => one.file === file)
    .map(({ name }) => `    <testcase classname="${escaped(file)}" name="${escaped(name)}"><skipped/></testcase>`);
  const failed = cases.filter(({ attempts }) => figuresOf(attempts).passRate < minPass).length;
  const time = cases.flatMap(({ attempts }) => attempts).reduce((sum, { durationMs }) => sum + durationMs, 0);
  return [
    `  <testsuite name="${escaped(file)}" tests="${cases.length + left.length}" failures="${failed}" errors="0" skipped="${left.length}" time="${seconds(time)}">`,
    ...lines,
    ...left,
    "  </testsuite>",
  ];
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1_000).toFixed(3);
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}

const style = `
:root { color-scheme: light dark; --line: #8884; --bad: #c0392b; --good: #1e8449; --odd: #b9770e; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; }
th, td { text-align: left; padding: .4rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; } td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; font-size: 13px; }
.good { color: var(--good); } .bad { color: var(--bad); } .odd { color: var(--odd); }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a7a; --good: #6fd08c; --odd: #f0b656; } }
`;

/** The report as one HTML file, which loads and runs nothing. */
export function reportHtml(report: EvalReport, comparison: Comparison | undefined): string {
  const all = figuresOf(allAttempts(report));
  const at = new Date(report.createdAt).toISOString().replace("T", " ").slice(0, 16);
  const title = `Evals: ${percent(all.passRate)} passed`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body>
<h1>${escaped(title)}</h1>
<p>${report.cases.length} cases, ${all.runs} runs (${percent(all.interval.low)} to ${percent(all.interval.high)} at 95 %), lowest accepted rate ${percent(report.minPass)}; ${escaped(at)} UTC.</p>
${report.errors.map((message) => `<pre class="bad">${escaped(message)}</pre>`).join("\n")}
<table>
<thead><tr><th scope="col">Case</th><th scope="col" class="n">Passed</th><th scope="col" class="n">Rate (95 %)</th><th scope="col" class="n">Cost</th><th scope="col" class="n">Tokens</th><th scope="col" class="n">Time</th></tr></thead>
<tbody>
${report.cases.map((one) => caseRow(one)).join("\n")}
${report.skipped.map((one) => `<tr><td>${escaped(caseKey(one))}</td><td colspan="5">skipped</td></tr>`).join("\n")}
</tbody>
</table>
${comparison ? comparisonHtml(comparison) : ""}
</body>
</html>
`;
}

function caseRow(one: EvalReport["cases"][number]): string {
  const figures = figuresOf(one.attempts);
  const { passed, runs, passRate, interval, cost, tokens, durationMs } = figures;
  const tone = isFlaky(figures) ? "odd" : passed === runs ? "good" : "bad";
  const failures = one.attempts.filter(({ failure }) => failure !== null);
  const details =
    failures.length === 0
      ? ""
      : `<details><summary>${failures.length} failed${isFlaky(figures) ? ", flaky" : ""}</summary>${failures
          .map(
            ({ run, failure, agents }) =>
              `<p>Run ${run}${agents.map(({ agentId }) => `, ${escaped(agentId)}`).join("")}</p><pre>${escaped(failure ?? "")}</pre>`,
          )
          .join("")}</details>`;
  return (
    `<tr><td>${escaped(caseKey(one))}${details}</td><td class="n ${tone}">${passed}/${runs}</td>` +
    `<td class="n">${percent(passRate)} (${percent(interval.low)} to ${percent(interval.high)})</td>` +
    `<td class="n">${costText(cost)}</td><td class="n">${formatCount(Math.round(tokens))}</td><td class="n">${formatDuration(durationMs)}</td></tr>`
  );
}

function changeCells({ passRate, cost, tokens, durationMs }: CaseChange): string {
  return changeTexts({ passRate, cost, tokens, durationMs })
    .map(
      ({ text, isSignificant }) =>
        `<td class="n${isSignificant ? " odd" : ""}">${isSignificant ? `<strong>${text}</strong>` : text}</td>`,
    )
    .join("");
}

function comparisonHtml({ changes, added, removed }: Comparison): string {
  return `<h2>Compared with the earlier report</h2>
<p>Significant changes (p &lt; 0.05, each figure by itself) are in bold.</p>
<table>
<thead><tr><th scope="col">Case</th><th scope="col" class="n">Rate</th><th scope="col" class="n">Cost</th><th scope="col" class="n">Tokens</th><th scope="col" class="n">Time</th></tr></thead>
<tbody>
${changes.map((change) => `<tr><td>${escaped(change.key ?? "all cases")}</td>${changeCells(change)}</tr>`).join("\n")}
${added.map((key) => `<tr><td>${escaped(key)}</td><td colspan="4">new</td></tr>`).join("\n")}
${removed.map((key) => `<tr><td>${escaped(key)}</td><td colspan="4">removed</td></tr>`).join("\n")}
</tbody>
</table>`;
}

function changeText(change: Change | undefined, show: (value: number) => string) {
  if (!change) return { text: "?", isSignificant: false };
  const [before, now] = [show(change.before), show(change.now)];
  return { text: before === now ? now : `${before} → ${now}`, isSignificant: change.isSignificant };
}

/** The texts of a case's changes: rate, cost, tokens and time. */
export function changeTexts({ passRate, cost, tokens, durationMs }: Omit<CaseChange, "key">) {
  return [
    changeText(passRate, percent),
    changeText(cost, costText),
    changeText(tokens, (value) => formatCount(Math.round(value))),
    changeText(durationMs, formatDuration),
  ] as const;
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** `cost`: in dollars. */
export function costText(cost: number | null): string {
  return formatCost(cost === null ? null : cost * 1_000_000);
}
