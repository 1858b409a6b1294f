import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { createRuntime } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { troupe } from "../cli/support/in-process.ts";
import { watchedTeam } from "../inspector/team.ts";
import { axe, browserProgram, openBrowser, screenshot } from "../support/browser.ts";

const browser = openBrowser();
const canary = "canary-7f3a";

describe.skipIf(!browserProgram)("a run that was exported as a page", () => {
  it("opens from the file alone and shows tree, timeline, messages, prompts and calls", async () => {
    const { path } = await exported([]);
    const page = await browser.newPage();
    await page.goto(`${pathToFileURL(path).href}#/run/desk`);
    await page.getByText("exported file").waitFor();
    await page.getByRole("treegrid").getByText("reader").first().waitFor();
    const open = async (view: string): Promise<void> => {
      await page.goto(`${pathToFileURL(path).href}#/run/desk?agent=desk&view=${view}`);
    };
    await open("messages");
    await page.getByText(canary).first().waitFor();
    await page.getByRole("button", { name: "Prompts as sent" }).click();
    await page.getByText("exact", { exact: true }).first().waitFor();
    await screenshot(page, "exported-messages");
    await open("timeline");
    await page.locator("canvas").first().waitFor();
    for (const view of ["chart", "events", "budgets"]) {
      await open(view);
      await page.getByRole("treegrid").first().waitFor();
    }
    expect((await axe(page)).filter(({ impact }) => impact === "critical" || impact === "serious")).toEqual([]);
    expect(await page.evaluate("document.getElementById('app').textContent.includes('was exported without')")).toBe(
      false,
    );
  });

  it("holds, with names only, nothing that somebody wrote", async () => {
    const { path } = await exported(["--names-only"]);
    const text = readFileSync(path, "utf8");
    expect(text).not.toContain(canary);
    const page = await browser.newPage({ colorScheme: "dark" });
    await page.goto(pathToFileURL(path).href);
    await page.getByText("exported file").waitFor();
    const data = await page.evaluate<string>(`(async () => {
      const packed = document.getElementById("troupe-data").textContent.trim();
      const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
      return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    })()`);
    expect(data).toContain('"desk"');
    expect(data).not.toContain(canary);
  });
});

/** A page of a finished run in whose input, and so in whose prompts, is the canary. */
async function exported(words: readonly string[]): Promise<{ readonly path: string }> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-exported-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const store = join(folder, "runs.db");
  const runtime = await createRuntime({ agents: [watchedTeam()], stores: sqliteStores(store) });
  const agent = await runtime.agent("lead", { agentId: "desk", metadata: { note: canary } });
  await agent.start();
  await agent.executeTurn(`Look at ${canary}.`).result;
  await runtime.shutdown();
  const path = join(folder, "run.html");
  const said = await troupe(["export", "desk", "--store", store, "--html", path, ...words]);
  expect(said).toEqual({ code: 0, out: [`Written: ${path}`], notes: [] });
  return { path };
}
