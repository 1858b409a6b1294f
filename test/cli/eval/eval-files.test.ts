// Reports in files as the feed of the inspector answers them: `troupe inspect --evals FILE --compare FILE`.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { evalFilesSource } from "../../../src/cli/eval/eval-files.ts";
import { reportJson } from "../../../src/cli/eval/eval-report.ts";
import { InvalidInputError } from "../../../src/errors/index.ts";
import { Feed, serveFeed } from "../../../src/inspector/index.ts";
import { evalRunSchema, evalsSchema } from "../../../src/inspector/feed/answers.ts";
import { troupe } from "../support/in-process.ts";
import { attempt, no, reportOf, yes } from "./reports.ts";

const noReport = /is not a report that `troupe eval --json` wrote \(troupe\.eval\/1\)/;

function folderOfTest(): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-eval-files-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

describe("a report in a file", () => {
  test("is answered over HTTP in the published form, with its failed runs first", async () => {
    const folder = folderOfTest();
    const [file, before] = [join(folder, "now.json"), join(folder, "before.json")];
    const report = reportOf(
      { worse: [false, true, true, false, false], "a/b > c %": [true] },
      { errors: ["key=sk-1"] },
    );
    writeFileSync(file, reportJson(report));
    writeFileSync(before, reportJson(reportOf({ worse: yes, gone: yes })));
    const feed = new Feed({ evals: await evalFilesSource({ file, before }) });
    const server = await serveFeed(feed);
    onTestFinished(() => server.close());
    const ask = async (path: string): Promise<unknown> => {
      const headers = { authorization: `Bearer ${server.tokens.watch}` };
      return await (await fetch(`${server.origin}/api/${path}`, { headers })).json();
    };
    expect(await ask("info")).toMatchObject({ hasEvals: true });
    const evals = evalsSchema.strict().parse(await ask("evals"));
    expect(evals).toMatchObject({
      all: { runs: 6, passed: 3 },
      cases: [
        { key: "a.eval.ts > worse", passRate: 0.4, isFlaky: true, changes: { passRate: { before: 1, now: 0.4 } } },
        { changes: null },
      ],
      compared: { added: ["a.eval.ts > a/b > c %"], removed: ["a.eval.ts > gone"] },
    });
    const { items } = (await ask(`evals/${encodeURIComponent("a.eval.ts > worse")}`)) as { items: unknown[] };
    const runs = items.map((item) => evalRunSchema.strict().parse(item));
    expect(runs.map(({ run, passed }) => [run, passed])).toEqual([
      [1, false],
      [4, false],
      [5, false],
      [2, true],
      [3, true],
    ]);
    expect(runs[0]?.agents).toEqual([{ kind: "case", agentId: "case_1", agentName: "desk", isStored: false }]);
    expect(await ask(`evals/${encodeURIComponent("a.eval.ts > a/b > c %")}`)).toMatchObject({
      items: [{ passed: true }],
    });
    expect(await ask("evals/none")).toMatchObject({ error: { code: "not_found" } });
  });

  test("is read again when it is written, and a damaged one is an error until it is whole again", async () => {
    const file = join(folderOfTest(), "now.json");
    writeFileSync(file, reportJson(reportOf({ a: no })));
    const feed = new Feed({ evals: await evalFilesSource({ file }) });
    expect(await feed.evals()).toMatchObject({ all: { passed: 0 }, compared: null });
    writeFileSync(file, '{"format":"troupe.eval/1","cases":[');
    await expect(feed.evals()).rejects.toThrow(noReport);
    writeFileSync(file, reportJson(reportOf({ a: yes, b: yes })));
    expect(await feed.evals()).toMatchObject({ all: { passed: 10 } });
    rmSync(file);
    await expect(feed.evals()).rejects.toThrow(/now\.json/);
  });

  test("with names only has no texts of runs, and a long failure is cut", async () => {
    const file = join(folderOfTest(), "now.json");
    const report = reportOf({ a: [false] }, { errors: ["it does not load"] });
    report.cases[0]?.attempts.splice(0, 1, attempt(1, false, { failure: "x".repeat(50_000) }));
    writeFileSync(file, reportJson(report));
    const evals = await evalFilesSource({ file });
    const hidden = new Feed({ namesOnly: true, evals });
    expect((await hidden.evals())?.errors).toEqual([""]);
    expect((await hidden.evalRuns("a.eval.ts > a"))[0]?.failure).toBe("");
    expect((await new Feed({ evals }).evalRuns("a.eval.ts > a"))[0]?.failure).toHaveLength(10_000);
  });

  test("is absent from a feed without one", async () => {
    const feed = new Feed();
    expect(await feed.evals()).toBeNull();
    expect(feed.info("watch")).not.toHaveProperty("hasEvals");
    await expect(feed.evalRuns("a")).rejects.toThrow("there is no report of evals here");
  });
});

describe("troupe inspect", () => {
  test("refuses a damaged report, a comparison without a report, and a report without --evals", async () => {
    const file = join(folderOfTest(), "now.json");
    writeFileSync(file, reportJson(reportOf({ a: yes })));
    for (const [words, message] of [
      [["--compare", file], /give the report to compare with --evals/],
      [["--evals", `${file}.none`], /none/],
      [["--evals", file, "--compare", import.meta.filename], noReport],
      [[file], /is a report of evals; give it with --evals/],
      [["--evals", file, "--store", `${file}.db`], /there is no store at/],
      [["--evals", " "], /must not be empty/],
    ] as const) {
      const { code, notes } = await troupe(["inspect", ...words]);
      expect([code, notes.join("\n")]).toEqual([2, expect.stringMatching(message)]);
    }
    await expect(evalFilesSource({ file: import.meta.filename })).rejects.toThrow(InvalidInputError);
  });
});
