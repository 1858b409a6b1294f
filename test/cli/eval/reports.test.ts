// The reports of `troupe eval`: figures, comparison, JSON, JUnit and HTML.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseHTML } from "linkedom";
import { describe, expect, onTestFinished, test } from "vitest";
import { reportLines } from "../../../src/cli/eval/eval-lines.ts";
import { compareReports, isGoodEnough, readReport, reportJson } from "../../../src/cli/eval/eval-report.ts";
import { junitXml, reportHtml } from "../../../src/cli/eval/report-files.ts";
import { attempt, no, reportOf, yes } from "./reports.ts";

const hostileText = `<script>alert("1")</script> ]]> & 'quoted' \u0000\u001b[31m \ud800`;

describe("the pass rate", () => {
  test("is that of all runs, and errors outside of cases count", () => {
    expect(isGoodEnough(reportOf({ a: yes, b: [true, true, true, false, false] }))).toBe(true);
    expect(isGoodEnough(reportOf({ a: yes, b: no }))).toBe(false);
    expect(isGoodEnough(reportOf({ a: yes }, { errors: ["a.eval.ts: it does not load"] }))).toBe(false);
  });

  test("is printed with its interval, flaky cases and the first failure", () => {
    const lines = reportLines(reportOf({ good: yes, odd: [true, false, true, true, false] }), undefined, 120).join(
      "\n",
    );
    expect(lines).toMatch(/a\.eval\.ts > good +5\/5 +100 % \(57 % to 100 %\) +\$0\.0010 +103 +13 ms$/m);
    expect(lines).toMatch(/a\.eval\.ts > odd +3\/5 .* flaky$/m);
    expect(lines).toContain("a.eval.ts > odd, run 2 and 1 more:\n  expected 1, and it was 2");
    expect(lines).toMatch(/2 cases, 10 runs: 80 % \(49 % to 94 %\) passed, \$0\.0100, 1k tokens, 1 flaky$/m);
  });
});

describe("the comparison", () => {
  test("marks significant changes only", () => {
    const before = reportOf({ same: yes, worse: yes, little: yes, gone: yes });
    const now = reportOf({ same: yes, worse: no, little: [true, true, true, true, false], new: yes });
    const comparison = compareReports(before, now);
    const marked = comparison.changes.filter(({ passRate }) => passRate.isSignificant).map(({ key }) => key ?? "all");
    expect(marked).toEqual(["all", "a.eval.ts > worse"]);
    expect(comparison).toMatchObject({ added: ["a.eval.ts > new"], removed: ["a.eval.ts > gone"] });
    const lines = reportLines(now, comparison, 120).join("\n");
    expect(lines).toMatch(/a\.eval\.ts > worse +100 % → 0 % \* /);
    expect(lines).toMatch(/a\.eval\.ts > little +100 % → 80 % /);
    expect(lines).toMatch(/new: a\.eval\.ts > new\nremoved: a\.eval\.ts > gone\n/);
  });

  test("sees that a case has become dearer, and does not guess unknown prices", () => {
    const dearer = reportOf({ a: yes });
    dearer.cases[0]?.attempts.splice(
      0,
      5,
      ...yes.map((_, index) => attempt(index + 1, true, { cost: 0.005 + index / 10_000 })),
    );
    expect(compareReports(reportOf({ a: yes }), dearer).changes[1]?.cost).toMatchObject({ isSignificant: true });
    dearer.cases[0]?.attempts.splice(0, 1, attempt(1, true, { cost: null }));
    expect(compareReports(reportOf({ a: yes }), dearer).changes[1]?.cost).toBeUndefined();
  });
});

describe("files", () => {
  const report = reportOf(
    { [hostileText]: [false], good: [true] },
    { skipped: [{ file: "a.eval.ts", name: hostileText }], errors: [hostileText] },
  );
  report.cases[0]?.attempts.splice(0, 1, attempt(1, false, { failure: hostileText }));

  test("the JSON is read again", async () => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-report-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, "report.json");
    writeFileSync(path, reportJson(report));
    expect(await readReport(path)).toEqual(report);
    expect(JSON.parse(reportJson(report))).toMatchObject({
      summary: { passed: 1, runs: 2, passRate: 0.5, isGoodEnough: false },
      cases: [{ passRate: 0, isFlaky: false }, { passRate: 1 }],
    });
    for (const text of ["", "[]", "{", '{"format":"troupe.eval/2"}', JSON.stringify({ ...report, cases: [{}] })]) {
      writeFileSync(path, text);
      await expect(readReport(path)).rejects.toThrow(
        /report\.json is not a report that `troupe eval --json` wrote \(troupe\.eval\/1\)/,
      );
    }
    await expect(readReport(join(folder, "none.json"))).rejects.toThrow(/none\.json/);
  });

  test("the JUnit file is valid XML for texts with any characters", () => {
    const xml = junitXml(report);
    for (const text of ["<script", "\u0000", "\u001b"]) expect(xml).not.toContain(text);
    expect(xml).toContain("&lt;script&gt;");
    expect(xml).toContain('tests="3" failures="1" errors="0" skipped="1"');
    expect(xml.match(/<testcase /g)).toHaveLength(4);
    expect(xml).toContain('<failure message="0 of 1 runs passed">');
    // Every tag is closed.
    expect(xml.match(/<testsuite /g)?.length).toBe(xml.match(/<\/testsuite>/g)?.length);
  });

  test("the page runs and loads nothing", () => {
    const html = reportHtml(report, compareReports(report, report));
    const { document } = parseHTML(html);
    expect(
      document.querySelectorAll("script, link, img, iframe, object, [src], [href], [onclick], [style]"),
    ).toHaveLength(0);
    expect(html).not.toMatch(/https?:/);
    expect(html).toContain("default-src 'none'");
    expect(document.querySelector("details pre")?.textContent).toContain('<script>alert("1")</script>');
    expect(document.querySelectorAll("tbody tr").length).toBeGreaterThan(4);
  });
});
