// The pictures of docs/inspector.md and the README: `TROUPE_PICTURES=1 npx vitest run test/browser/pictures.test.ts` puts them there.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { Feed, type FeedServer, serveFeed } from "../../src/inspector/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { troupe } from "../cli/support/in-process.ts";
import { browserProgram, openBrowser, screenshot } from "../support/browser.ts";
import { combinedRows } from "../support/full.ts";

const browser = openBrowser();
const folder = join(repositoryRoot, "docs", "pictures");
const mostBytes = 180 * 1024;
const isWanted = process.env["TROUPE_PICTURES"] === "1";
const views = [
  ["timeline", "light"],
  ["timeline", "dark"],
  ["chart", "light"],
  ["messages", "light"],
  ["messages", "dark"],
  ["budgets", "light"],
] as const;

describe.skipIf(!browserProgram)("a picture of each main view of the main job", () => {
  const place = mkdtempSync(join(tmpdir(), "troupe-pictures-"));
  let stores: Stores;
  let server: FeedServer;
  let runId = "";
  beforeAll(async () => {
    const store = join(place, "jobs.db");
    const { code, notes } = await troupe(["ask", "--model", "offline", "--quiet", "--store", store]);
    if (code !== 0) throw new Error(notes.join("\n"));
    stores = sqliteStores(store);
    const feed = new Feed();
    feed.add({ stores, tenant: "default" });
    runId = (await feed.runs({})).items[0]?.runId ?? "";
    server = await serveFeed(feed);
  });
  afterAll(async () => {
    await server.close();
    await stores.close();
    rmSync(place, { recursive: true, force: true });
  });

  it.each(isWanted ? views : combinedRows(views))("%s, %s", async (view, colorScheme) => {
    // All charts are side by side on a laptop.
    const viewport = view === "chart" ? { width: 1_440, height: 900 } : { width: 1_280, height: 640 };
    const page = await browser.newPage({ colorScheme, viewport });
    await page.goto(server.url);
    await page.getByText(runId.slice(-6)).first().waitFor();
    await page.goto(`${server.origin}/#/run/${runId}?agent=${runId}&view=${view}`);
    await page.getByRole("treegrid").getByText("reader").first().waitFor();
    if (view === "messages") {
      await page.getByRole("button", { name: "Prompts as sent" }).click();
      await page.getByText("exact", { exact: true }).first().waitFor();
    }
    // Fonts and the canvas are drawn a frame or two after the data has come.
    await page.waitForLoadState("networkidle");
    const name = `inspector-${view}-${colorScheme}`;
    const path = await screenshot(page, name);
    expect(statSync(path).size).toBeLessThan(mostBytes);
    if (!isWanted) return;
    mkdirSync(folder, { recursive: true });
    copyFileSync(path, join(folder, `${name}.png`));
  });
});
