import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, expect } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { type BrowserProgram, findBrowser } from "./browser-program.ts";

/** The browser of these tests; `undefined` if they must be skipped: `describe.skipIf(!browserProgram)`. */
export const browserProgram: BrowserProgram | undefined = await findBrowser();

export interface PageOptions {
  /** Default: light. */
  readonly colorScheme?: "light" | "dark";
  /** In CSS pixels. Default: 1,280 by 800. */
  readonly viewport?: { readonly width: number; readonly height: number };
  /** Sets `prefers-reduced-motion`. Default: false. */
  readonly reducedMotion?: boolean;
  /** Pixels of a screenshot for one CSS pixel. Default: 1. */
  readonly scale?: number;
}

/** A page that fails its test, at the test's end, if it has logged errors or requested other hosts. */
export interface WatchedPage extends Page {
  /**
   * Errors of the console, of scripts and of the page's own policies. A test that expects some removes them; one that expects them until
   * its end closes the context first, because a page without its server logs more of them.
   */
  readonly errors: string[];
  /** Requested URLs that are not on this machine. No request for them leaves the browser. */
  readonly foreignRequests: string[];
}

export interface TestBrowser {
  /**
   * To be called in a test, which closes the page at its end, before the functions of `onTestFinished`: a server that closes there
   * has no page left that would log errors. Pages share neither cookies nor storage.
   */
  newPage(options?: PageOptions): Promise<WatchedPage>;
}

/** A browser for a test file, to be called at its top level: it starts with the first page and is closed after the last test. */
export function openBrowser(): TestBrowser {
  let launched: Promise<Browser> | undefined;
  const pages: WatchedPage[] = [];
  afterEach(async () => {
    const closed = pages.splice(0);
    for (const page of closed) await page.context().close();
    for (const page of closed) {
      expect(page.foreignRequests, "requests to other addresses").toEqual([]);
      expect(page.errors, "errors of the page").toEqual([]);
    }
  });
  afterAll(async () => {
    await (await launched)?.close();
  });
  return {
    async newPage({ colorScheme = "light", viewport, reducedMotion = false, scale = 1 } = {}) {
      launched ??= launch();
      const browser = await launched;
      const context = await browser.newContext({
        colorScheme,
        viewport: viewport ?? { width: 1_280, height: 800 },
        reducedMotion: reducedMotion ? "reduce" : "no-preference",
        deviceScaleFactor: scale,
        locale: "en-US",
        timezoneId: "UTC",
      });
      const page = watched(await context.newPage());
      pages.push(page);
      return page;
    },
  };
}

async function launch(): Promise<Browser> {
  if (!browserProgram) throw new Error("no browser is available; the test should have been skipped");
  const browser = await chromium.launch({
    executablePath: browserProgram.path,
    // It only shows pages of these tests, and its sandbox does not start as root.
    chromiumSandbox: false,
    args: ["--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"],
    env: { ...process.env, ...browserProgram.environment },
  });
  const page = await browser.newPage();
  await page.setContent("<p>Text</p>");
  const height = (await page.locator("p").boundingBox())?.height ?? 0;
  await page.close();
  if (height > 0) return browser;
  await browser.close();
  throw new Error("The browser shows no text because it finds no fonts; all measurements of a page would be wrong.");
}

function watched(page: Page): WatchedPage {
  const errors: string[] = [];
  const foreignRequests: string[] = [];
  const look = (request: { url(): string }): void => {
    if (!isOwn(request.url())) foreignRequests.push(request.url());
  };
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(error.stack ?? error.message));
  page.on("crash", () => errors.push("the page crashed"));
  page.on("websocket", look);
  page.context().on("request", look);
  return Object.assign(page, { errors, foreignRequests });
}

function isOwn(address: string): boolean {
  const { protocol, hostname } = new URL(address);
  if (["data:", "blob:", "about:", "file:"].includes(protocol)) return true;
  return hostname === "127.0.0.1" || hostname === "localhost";
}

/** Writes a screenshot of the page to `.troupe/screenshots` and returns its path. `isWhole` includes the part outside the viewport. */
export async function screenshot(page: Page, name: string, { isWhole = false } = {}): Promise<string> {
  const path = join(repositoryRoot, ".troupe", "screenshots", `${name}.png`);
  mkdirSync(dirname(path), { recursive: true });
  // Chromium cannot capture a page that was never drawn.
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
  await page.screenshot({ path, fullPage: isWhole, animations: "disabled" });
  return path;
}

/** An accessibility rule that the page breaks. */
export interface Violation {
  readonly id: string;
  readonly impact: "minor" | "moderate" | "serious" | "critical";
  readonly help: string;
  /** Selectors of the elements. */
  readonly targets: readonly string[];
}

/** The rules of axe-core that the page currently breaks. `only` limits the check to these rules. */
export async function axe(page: Page, only?: readonly string[]): Promise<readonly Violation[]> {
  axeSource ??= readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  // Evaluated through the debugger, because the page's own policy blocks foreign scripts. Evaluated again for each check, because a
  // second run of the same one takes several times as long.
  await page.evaluate(axeSource);
  const options = only === undefined ? {} : { runOnly: only };
  return await page.evaluate<Violation[]>(
    `axe.run(${JSON.stringify(options)}).then(({ violations }) => violations.map(({ id, impact, help, nodes }) => (
      { id, impact, help, targets: nodes.map(({ target }) => target.join(" ")) }
    )))`,
  );
}

/** The rules that the page currently breaks, except minor ones. */
export async function faultsOf(
  page: Page,
  only?: readonly string[],
): Promise<readonly Pick<Violation, "id" | "targets">[]> {
  const found = await axe(page, only);
  return found.filter(({ impact }) => impact !== "minor").map(({ id, targets }) => ({ id, targets }));
}

/** Opens a view of the run on the inspector's page. */
export async function showView(page: Page, name: string): Promise<void> {
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name }).click();
}

let axeSource: string | undefined;

/** The rules of axe-core about colours: only these depend on the colour scheme. */
export const colourRules = ["color-contrast", "link-in-text-block"];

/**
 * Writes screenshots of the inspector's page in both colour schemes, named after the page and the scheme. Returns the accessibility
 * rules that the page breaks. The page is left in the light scheme.
 */
export async function inBothSchemes(page: Page, name: string): Promise<readonly Violation[]> {
  await screenshot(page, `${name}-light`);
  const light = await axe(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.locator('[data-theme="dark"]').waitFor();
  // A screenshot ends transitions: colours are then those of the scheme.
  await screenshot(page, `${name}-dark`);
  const dark = await axe(page, colourRules);
  await page.emulateMedia({ colorScheme: "light" });
  await page.locator('[data-theme="light"]').waitFor();
  return [...light, ...dark];
}
