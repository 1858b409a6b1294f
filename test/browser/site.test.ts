// The documentation site as a static server gives it, under a path of its own.
import { serveStatic } from "@hono/node-server/serve-static";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import type { AddressInfo } from "node:net";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  browserProgram,
  colourRules,
  faultsOf,
  openBrowser,
  screenshot,
  type WatchedPage,
} from "../support/browser.ts";
import { buildSite, SITE_BUILD_MS, siteBase, siteFolder } from "../support/built-site.ts";

const browser = openBrowser();

function withoutBase(path: string): string {
  return path.slice(siteBase.length - 1);
}

/** The address of the home page. */
async function servedSite(): Promise<string> {
  const app = new Hono();
  app.use(`${siteBase}*`, serveStatic({ root: siteFolder, rewriteRequestPath: withoutBase }));
  const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
  await new Promise<void>((resolve) => server.once("listening", resolve));
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${siteBase}`;
}

async function heading(page: WatchedPage, text: string): Promise<void> {
  await page.getByRole("heading", { level: 1, name: text }).waitFor();
}

describe.skipIf(!browserProgram)("the documentation site", () => {
  beforeAll(buildSite, SITE_BUILD_MS);

  test("leads from home over first steps to a name of the API, and is searched without a network", async () => {
    const home = await servedSite();
    const page = await browser.newPage();
    await page.goto(home);
    await heading(page, "troupe");
    await page.getByRole("navigation", { name: "Main Navigation" }).getByRole("link", { name: "First steps" }).click();
    await heading(page, "First steps");
    await page.getByRole("navigation", { name: "Main Navigation" }).getByRole("link", { name: "API" }).click();
    await heading(page, "API");
    await page.getByRole("main").getByRole("link", { name: "createRuntime" }).first().click();
    await heading(page, "troupe");
    await expect.poll(() => page.url()).toBe(`${home}api/troupe.html#createRuntime`);
    await page.getByRole("main").getByRole("link", { name: "RuntimeOptions" }).first().click();
    await expect.poll(() => page.url()).toBe(`${home}api/troupe.html#RuntimeOptions`);
    await expect.poll(() => page.locator("#RuntimeOptions").isVisible()).toBe(true);

    await page.getByRole("button", { name: "Search" }).first().click();
    await page.getByRole("searchbox").fill("reserve budget");
    const found = page.getByRole("option").filter({ hasText: "How much is reserved" }).first();
    await found.waitFor();
    await found.click();
    await heading(page, "Budgets");
    expect(new URL(page.url()).pathname).toBe(`${siteBase}budgets.html`);
  });

  test("is read on a phone: nothing is wider than the page, and its menu leads on", async () => {
    const home = await servedSite();
    const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
    for (const path of ["", "budgets.html", "cli.html", "api/troupe.html", "examples/05-budgets.html"]) {
      await page.goto(`${home}${path}`);
      await page.locator("h1").waitFor();
      const width = await page.evaluate<number>("document.documentElement.scrollWidth");
      expect.soft(width, path).toBe(390);
    }
    await page.goto(home);
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("navigation", { name: "Sidebar Navigation" }).getByRole("link", { name: "Budgets" }).click();
    await heading(page, "Budgets");
  });

  test.each(["light", "dark"] as const)("has no faults of accessibility, %s", async (colorScheme) => {
    const home = await servedSite();
    const page = await browser.newPage({ colorScheme });
    const only = colorScheme === "dark" ? colourRules : undefined;
    for (const [name, path] of [
      ["home", ""],
      ["guide", "budgets.html"],
      ["api", "api/troupe-stores-sqlite.html"],
      ["example", "examples/05-budgets.html"],
    ] as const) {
      await page.goto(`${home}${path}`);
      await page.locator("h1").waitFor();
      await screenshot(page, `site-${name}-${colorScheme}`);
      expect.soft(await faultsOf(page, only), name).toEqual([]);
    }
    await page.getByRole("button", { name: "Search" }).first().click();
    await page.getByRole("searchbox").fill("reserve budget");
    await page.getByRole("option").first().waitFor();
    await screenshot(page, `site-search-${colorScheme}`);
    // The list of results is VitePress's own: its options are links, to which other rules object.
    expect.soft(await faultsOf(page, colourRules), "search").toEqual([]);
  });
});
