// `troupe eval` as users start it: in a process of its own, with vitest below it.
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { watch } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { repositoryRoot } from "../../../scripts/run-command.ts";
import type { EvalReport } from "../../../src/cli/eval/eval-report.ts";
import { sqliteStores } from "../../../src/stores/sqlite.ts";
import { startCli } from "../../e2e/cli-process.ts";
import { troupe } from "../support/in-process.ts";

const cases = "test/cli/eval/cases";
const deskFile = `${cases}/desk.eval.ts`;

function folderForTest(): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-eval-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function evaluate(words: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const { code, stdout, stderr } = await startCli(repositoryRoot, ["eval", ...words], {
    COLUMNS: "160",
    CI: "1",
    ...environment,
  }).ended;
  return { code, stdout, stderr };
}

interface Written {
  readonly cases: readonly {
    readonly name: string;
    readonly passed: number;
    readonly runs: number;
    readonly isFlaky: boolean;
  }[];
}

describe("eval", () => {
  test("twenty offline cases pass for the good agent, while CI is set; their runs are kept", async () => {
    const folder = folderForTest();
    const kept = join(folder, "runs", "kept.db");
    const json = join(folder, "reports", "now.json");
    const options = ["--keep", kept, "--json", json, "--concurrency", "4", "--max-cost", "100"];
    const { code, stdout, stderr } = await evaluate([deskFile, ...options]);
    expect(stdout + stderr).toContain("20 cases, 20 runs: 100 % (84 % to 100 %) passed, $0.0");
    expect(code).toBe(0);
    expect(stderr).toMatch(/^pass {2}desk > refunds order 18 once {2}\d+ ms$/m);
    const report = JSON.parse(readFileSync(json, "utf8")) as {
      cases: { attempts: { cost: number; tokens: number; agents: { agentId: string }[] }[] }[];
    };
    const ids = report.cases.flatMap(({ attempts }) =>
      attempts.flatMap(({ agents }) => agents.map(({ agentId }) => agentId)),
    );
    expect(ids).toHaveLength(22);
    const stores = sqliteStores(kept);
    onTestFinished(() => stores.close());
    const roots = await stores.listAgents({ tenant: "default", rootsOnly: true });
    expect(roots.map(({ agentId }) => agentId).toSorted()).toEqual(ids.toSorted());
  });

  test.each([
    ["pays twice", 18],
    ["pays unasked", 18],
    ["wrong order", 18],
    ["wrong amount", 19],
    ["talks on", 18],
    ["fails", 19],
  ])("they catch an agent that %s", async (fault, failed) => {
    const junit = join(folderForTest(), "junit.xml");
    const { code, stdout } = await evaluate([deskFile, "--junit", junit, "--concurrency", "4"], {
      TROUPE_TEST_FAULT: fault,
    });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^Fewer than 100 % of the runs passed\.$/m);
    expect(stdout).toContain("The run:\n    input: Refund order 1.");
    expect(readFileSync(junit, "utf8")).toContain(`tests="20" failures="${failed}"`);
  });

  test("repeats, finds flaky cases, compares, and writes a page", async () => {
    const folder = folderForTest();
    const at = (name: string): string => join(folder, name);
    const words = [`${cases}/flaky.eval.ts`, "--repeat", "4"];
    const first = await evaluate([...words, "--min-pass", "0.5", "--json", at("before.json")], {
      TROUPE_TEST_FOLDER: folder,
    });
    expect(first.code, first.stderr).toBe(0);
    expect(first.stdout).toMatch(/passes every other time +2\/4 .*flaky/);
    expect(first.stdout).toMatch(/1 flaky, 1 skipped/);
    const written = JSON.parse(readFileSync(at("before.json"), "utf8")) as Written;
    expect(written.cases).toMatchObject([{ name: "passes every other time", passed: 2, runs: 4, isFlaky: true }]);
    const second = await evaluate([...words, "--compare", at("before.json"), "--html", at("page.html")], {
      TROUPE_TEST_FOLDER: folder,
    });
    expect(second.code).toBe(1);
    expect(second.stdout).toMatch(/^COMPARED +RATE +COST +TOKENS +TIME\nall cases +50 % /m);
    for (const text of [
      second.stdout,
      readFileSync(at("page.html"), "utf8"),
      readFileSync(at("before.json"), "utf8"),
    ]) {
      expect(text).not.toContain("hunter2");
      expect(text).toContain("[redacted]");
    }
  });

  test("a file that does not load fails, although all other cases passed", async () => {
    const folder = folderForTest();
    const { code, stdout } = await evaluate([cases, "--min-pass", "0"], { TROUPE_TEST_FOLDER: folder });
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /An error outside of cases:\n {2}test\/cli\/eval\/cases\/broken-file\.eval\.ts: .*the file is broken/,
    );
  });

  test("a signal to end writes the reports with the cases that have ended", async () => {
    const folder = folderForTest();
    const [json, junit] = [join(folder, "now.json"), join(folder, "junit.xml")];
    const watcher = watch(folder);
    const command = ["eval", `${cases}/long.eval.ts`, "--repeat", "2", "--json", json, "--junit", junit];
    const process = startCli(repositoryRoot, command, { TROUPE_TEST_FOLDER: folder, TROUPE_TEST_LONG: "1" });
    for await (const { filename } of watcher) if (filename === "running") break;
    process.signal("SIGINT");
    const { code, stdout, stderr } = await process.ended;
    expect(code, stderr).toBe(130);
    expect(stderr).toMatch(/^SIGINT: .* A second signal ends at once\.$/m);
    expect(stdout).toMatch(/ends before the signal +1\/1 /);
    expect(stdout).toContain("interrupted by SIGINT in run 1 of 2; the report has the cases that ended before");
    const report = JSON.parse(readFileSync(json, "utf8")) as EvalReport & { summary: { isGoodEnough: boolean } };
    expect(report.summary.isGoodEnough).toBe(false);
    expect(report.cases.map(({ name, attempts }) => [name, attempts.length])).toContainEqual([
      "ends before the signal",
      1,
    ]);
    expect([...report.cases, ...report.skipped].map(({ name }) => name)).not.toContain("comes after the signal");
    expect(readFileSync(junit, "utf8")).toContain('<error message="interrupted by SIGINT');
  });

  test("a report that cannot be written leaves the terminal's and the others", async () => {
    const folder = folderForTest();
    const broken = join(folder, "now.json");
    // Only the write itself finds that the target has no folder.
    symlinkSync(join(folder, "none", "now.json"), broken);
    const page = join(folder, "page.html");
    const { code, stdout, stderr } = await evaluate([`${cases}/long.eval.ts`, "--json", broken, "--html", page]);
    expect(code).toBe(2);
    expect(stdout).toContain("3 cases, 3 runs: 100 %");
    expect(stderr).toContain(broken);
    expect(readFileSync(page, "utf8")).toContain("3 cases");
  });

  test.each(["1", "4"])("starts no case once --max-cost is spent, with a concurrency of %s", async (concurrency) => {
    const json = join(folderForTest(), "now.json");
    const command = [`${cases}/long.eval.ts`, deskFile, "--repeat", "2", "--json", json, "--concurrency", concurrency];
    const { code, stdout, stderr } = await evaluate([...command, "--max-cost", "0.000001"]);
    expect(code, stderr).toBe(1);
    expect(stdout).toMatch(
      /--max-cost is reached: \$0\.\d+ of \$0\.0+1 are spent; the cases that had not started were not/,
    );
    const { cases: ran, skipped } = JSON.parse(readFileSync(json, "utf8")) as EvalReport;
    // One of the cases calls no model.
    const paid = ran.flatMap(({ attempts }) => attempts).filter(({ tokens }) => tokens > 0);
    expect(paid.length).toBeGreaterThanOrEqual(1);
    expect(paid.length).toBeLessThanOrEqual(Number(concurrency));
    expect(skipped.length).toBeGreaterThan(15);
  });

  test("the example runs", async () => {
    const { code, stdout, stderr } = await evaluate(["examples/evals", "--repeat", "2"]);
    expect(code, stderr).toBe(0);
    expect(stdout).toContain("6 cases, 12 runs: 100 %");
  });
});

describe("eval: wrong values", () => {
  test.each([
    [[], "missing required argument 'files'"],
    [["nowhere"], "there is no file or folder nowhere"],
    [["package.json"], "package.json is not an eval file"],
    [["scripts"], "scripts has no eval file"],
    [[deskFile, "--repeat", "0"], "Expected a whole number from 1 to 1000."],
    [[deskFile, "--concurrency", "x"], "Expected a whole number from 1 to 100."],
    [[deskFile, "--max-cost", "0"], "Expected a number above 0, in digits: 30, or 0.25."],
    [[deskFile, "--max-cost", "much"], "Expected a number above 0, in digits: 30, or 0.25."],
    [[deskFile, "--min-pass", "80"], "Expected a number from 0 to 1, such as 0.8."],
    [[deskFile, "--min-pass", "-1"], "Expected a number from 0 to 1, such as 0.8."],
    [[deskFile, "--compare", "nowhere.json"], "nowhere.json"],
    [[deskFile, "--compare", "package.json"], "package.json is not a report"],
    [[deskFile, "--json", ""], "It must not be empty."],
    [[deskFile, "--junit", " "], "It must not be empty."],
    [[deskFile, "--html", "package.json/page.html"], "package.json"],
    [[deskFile, "--keep", "package.json/kept.db"], "package.json"],
    [[deskFile, "--json", "src"], "src is a folder; give the path of a file"],
    [[deskFile, "--keep", "src"], "src is a folder; give the path of a file"],
    [[deskFile, "--config", ""], "It must not be empty."],
    [[deskFile, "--config", "nowhere.config.ts"], "nowhere.config.ts"],
    [[deskFile, "--live", "--store", "a.db"], "unknown option '--store'"],
  ])("%j", async (words, message) => {
    const { code, notes } = await troupe(["eval", ...words]);
    expect([code, notes.join("\n")]).toEqual([2, expect.stringContaining(message)]);
  });

  test("write nothing", async () => {
    const folder = folderForTest();
    const file = join(folder, "a.txt");
    writeFileSync(file, "");
    await troupe(["eval", deskFile, "--json", join(folder, "now.json"), "--html", join(file, "page.html")]);
    expect(existsSync(join(folder, "now.json"))).toBe(false);
  });
});
