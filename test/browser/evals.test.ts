// The page of a report of evals, as `troupe inspect --evals` serves it.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { evalFilesSource } from "../../src/cli/eval/eval-files.ts";
import { reportJson } from "../../src/cli/eval/eval-report.ts";
import { defineAgent, memoryStores, run } from "../../src/index.ts";
import { Feed, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { attempt, no, reportOf, yes } from "../cli/eval/reports.ts";
import { browserProgram, inBothSchemes, openBrowser } from "../support/browser.ts";

const browser = openBrowser();
const failure = 'expected "refund", and the agent called <b>nothing</b>\u202e';
const before = reportOf({ "refunds a broken order": yes, "keeps its word": yes, gone: yes });
const now = reportOf(
  { "refunds a broken order": no, "keeps its word": [true, false, true, true, true], "is polite": yes },
  { skipped: [{ file: "a.eval.ts", name: "later" }] },
);
now.cases[0]?.attempts.splice(0, 1, attempt(1, false, { failure }));

/** Writes a report and opens its page, with a store that has the run `case_1`. */
async function served({ namesOnly = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "troupe-evals-page-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const files = { file: join(folder, "now.json"), before: join(folder, "before.json") };
  writeFileSync(files.file, reportJson(now));
  writeFileSync(files.before, reportJson(before));
  const stores = memoryStores();
  const desk = defineAgent({ name: "desk", model: scriptedModel("There is no refund.") });
  await run(desk, "Order 7 arrived broken.", { agentId: "case_1", stores: { ...stores, close: async () => {} } });
  const feed = new Feed({ namesOnly, evals: await evalFilesSource(files) });
  feed.add({ stores, tenant: "default" });
  const server = await serveFeed(feed);
  onTestFinished(() => server.close());
  return server;
}

describe.skipIf(!browserProgram)("the page of evals", () => {
  test("shows rates, flaky cases and significant changes, and leads from a failed run to its stored run", async () => {
    const { url } = await served();
    const page = await browser.newPage();
    await page.goto(url);
    const row = (name: string) =>
      page.getByRole("row").filter({ has: page.getByRole("button", { name, exact: true }) });
    const broken = row("refunds a broken order");
    await broken.getByText("0 of 5").waitFor();
    const text = (await broken.textContent()) ?? "";
    expect(text).toContain("0 % (0 % to 43 %)");
    expect(text).toContain("changed from 100 %");
    expect(text).toContain("$0.00100");
    const flaky = (await row("keeps its word").textContent()) ?? "";
    expect(flaky).toContain("flaky");
    expect(flaky).toContain("80 % (38 % to 96 %)from 100 %");
    expect(await row("is polite").textContent()).toContain("new");
    expect(await page.getByRole("status", { name: "Sums" }).textContent()).toMatch(
      /^60 % passed, 80 % needed 3 cases · 15 runs · 1 flaky · \$0\.0150/,
    );
    await page.getByText("Only in the earlier report: 1 case").waitFor();
    await page.getByText("Skipped: 1 case").waitFor();

    await page.getByRole("checkbox", { name: "only failed, flaky or changed" }).check();
    await row("is polite").waitFor({ state: "detached" });
    await broken.getByRole("button").click();
    const runs = page.getByRole("table", { name: "Runs of the case" });
    await runs.getByText("the agent called <b>nothing</b>").first().waitFor();
    // A character that changes the direction of the text is shown as its code.
    await runs.getByText("⟨U+202E⟩").first().waitFor();
    // Only the first run is stored.
    await expect.poll(() => runs.getByRole("link").count()).toBe(1);
    expect((await inBothSchemes(page, "page-evals")).filter(({ impact }) => impact === "serious")).toEqual([]);
    for (const width of [390, 1_024]) {
      await page.setViewportSize({ width, height: 800 });
      const wider = () => page.evaluate("document.documentElement.scrollWidth - innerWidth");
      await expect.poll(wider).toBeLessThanOrEqual(0);
    }

    await runs.getByRole("link", { name: "desk" }).click();
    await page.getByRole("treegrid", { name: "Agents" }).getByText("desk").first().waitFor();
    // Back leads to the open case.
    await page.goBack();
    await runs.getByRole("link", { name: "desk" }).waitFor();
  });

  test("with names only shows no failures", async () => {
    const { url } = await served({ namesOnly: true });
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByRole("button", { name: "refunds a broken order" }).click();
    const runs = page.getByRole("table", { name: "Runs of the case" });
    await runs.getByText("failed").first().waitFor();
    expect(await page.getByText("the agent called").count()).toBe(0);
  });
});
