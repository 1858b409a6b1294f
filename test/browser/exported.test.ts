import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { type AgentDefinition, createRuntime, defineAgent, subagent } from "../../src/index.ts";
import { Feed, pageOfRun, serveFeed } from "../../src/inspector/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { troupe } from "../cli/support/in-process.ts";
import { watchedTeam } from "../inspector/team.ts";
import { axe, browserProgram, openBrowser, screenshot, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();
const canary = "canary-7f3a";

describe.skipIf(!browserProgram)("a run exported as a page", () => {
  it("opens from the file and shows tree, timeline, messages, prompts and calls", async () => {
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

  it("shows the same tree as the live page, at any depth", async () => {
    const folder = newFolder();
    const runtime = await createRuntime({ agents: [deepTeam()] });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent("chief", { agentId: "desk" });
    await agent.start();
    await agent.executeTurn("Go down.").result;
    const feed = new Feed({ run: "desk" });
    feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
    const server = await serveFeed(feed);
    onTestFinished(() => server.close());
    const path = join(folder, "deep.html");
    writeFileSync(path, await pageOfRun(feed, "desk"));

    const live = await treeAndChart(await browser.newPage(), `${server.url}&/run/desk`);
    const exported = await treeAndChart(await browser.newPage(), `${pathToFileURL(path).href}#/run/desk`);
    expect(live.levels).toEqual([1, 2, 3, 4, 3, 4, 2, 3, 4, 3, 4]);
    expect(exported).toEqual(live);
  });

  it("contains no text of users, models or tools with names only", async () => {
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

/** Four levels, two agents below each except the third, which has one. */
function deepTeam(): AgentDefinition {
  const scribe = defineAgent({ name: "scribe", model: scriptedModel("written") });
  const clerk = defineAgent({ name: "clerk", tools: [subagent(scribe)], model: asking("scribe", 1) });
  const head = defineAgent({ name: "head", tools: [subagent(clerk)], model: asking("clerk", 2) });
  return defineAgent({ name: "chief", tools: [subagent(head)], model: asking("head", 2) });
}

function asking(name: string, times: number) {
  return scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "tool"
      ? "done"
      : { toolCalls: Array.from({ length: times }, (_, index) => ({ name, arguments: { input: `part ${index}` } })) },
  );
}

/** The rows of the tree with their levels, and the chart of the last one. */
async function treeAndChart(page: WatchedPage, address: string) {
  await page.goto(address);
  const rows = page.getByRole("treegrid", { name: "Agents" }).getByRole("row");
  await expect.poll(() => rows.count()).toBe(11);
  const all = await rows.all();
  const levels = await Promise.all(all.map(async (row) => Number(await row.getAttribute("aria-level"))));
  const seen = {
    levels,
    names: await page.locator(".tree-name").allTextContents(),
  };
  await rows.last().click();
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Chart" }).click();
  await page.getByRole("heading", { name: "scribe" }).waitFor();
  const transitions = page.getByRole("region", { name: "Transitions of the turn" }).getByRole("row");
  await expect.poll(() => transitions.count()).toBe(3);
  return { ...seen, transitions: await transitions.allTextContents() };
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-exported-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A page of a finished run whose input, and therefore whose prompts, contain the canary. */
async function exported(words: readonly string[]): Promise<{ readonly path: string }> {
  const folder = newFolder();
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
