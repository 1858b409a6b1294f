import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, expect, onTestFinished } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { type BrowserProgram, findBrowser } from "./browser-program.ts";

/** The browser of these tests; `undefined` where they must be skipped: `describe.skipIf(!browserProgram)`. */
export const browserProgram: BrowserProgram | undefined = await findBrowser();

export interface PageOptions {
  /** Default: light. */
  readonly colorScheme?: "light" | "dark";
  /** In CSS pixels. Default: 1,280 by 800. */
  readonly viewport?: { readonly width: number; readonly height: number };
  /** Sets `prefers-reduced-motion`, as people do who want no motion. Default: false. */
  readonly reducedMotion?: boolean;
  /** Pixels of a picture for one CSS pixel. Default: 1. */
  readonly scale?: number;
}

/** A page that fails its test, when that ends, by what it has complained of and by what it has asked for elsewhere. */
export interface WatchedPage extends Page {
  /** Errors of the console, of scripts and of the page's own policies. A test that expects some takes them out. */
  readonly errors: string[];
  /** Addresses that are not on this machine. No request for them leaves the browser. */
  readonly foreignRequests: string[];
}

export interface TestBrowser {
  /**
   * To be called in a test, at whose end the page is closed. Pages share nothing, neither cookies nor storage. Let the test hand its
   * server to `onTestFinished` before it calls this: the server is then closed after the page, which else would complain.
   */
  newPage(options?: PageOptions): Promise<WatchedPage>;
}

/** A browser for a test file, to be called at its top level: it starts with the first page and is closed after the last test. */
export function openBrowser(): TestBrowser {
  let launched: Promise<Browser> | undefined;
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
      onTestFinished(async () => {
        await context.close();
        expect(page.foreignRequests, "requests to other addresses").toEqual([]);
        expect(page.errors, "errors of the page").toEqual([]);
      });
      return page;
    },
  };
}

async function launch(): Promise<Browser> {
  if (!browserProgram) throw new Error("there is no browser here; the test should have been skipped");
  const browser = await chromium.launch({
    executablePath: browserProgram.path,
    // It shows nothing but pages of these tests, and its sandbox does not start for root.
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
  throw new Error("The browser shows no text, because it finds no fonts; every measure of a page would be wrong.");
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

/** Puts a picture of the page into `.troupe/screenshots` and returns its path. `isWhole` takes all of it, not only what is in view. */
export async function screenshot(page: Page, name: string, { isWhole = false } = {}): Promise<string> {
  const path = join(repositoryRoot, ".troupe", "screenshots", `${name}.png`);
  mkdirSync(dirname(path), { recursive: true });
  // Chromium takes no picture of a page that was never drawn.
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
  await page.screenshot({ path, fullPage: isWhole, animations: "disabled" });
  return path;
}

/** One rule of accessibility that the page breaks. */
export interface Violation {
  readonly id: string;
  readonly impact: "minor" | "moderate" | "serious" | "critical";
  readonly help: string;
  /** The elements, as selectors. */
  readonly targets: readonly string[];
}

/** The rules of axe-core that the page breaks as it is now. `only` limits the check to these rules. */
export async function axe(page: Page, only?: readonly string[]): Promise<readonly Violation[]> {
  axeSource ??= readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  // Evaluated through the debugger: the page's own policy lets no foreign script in. And each time anew, because a second run of the
  // same one takes several times as long.
  await page.evaluate(axeSource);
  const options = only === undefined ? {} : { runOnly: only };
  return await page.evaluate<Violation[]>(
    `axe.run(${JSON.stringify(options)}).then(({ violations }) => violations.map(({ id, impact, help, nodes }) => (
      { id, impact, help, targets: nodes.map(({ target }) => target.join(" ")) }
    )))`,
  );
}

/** The rules that the page breaks as it is now, but for what is of little weight. */
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

/** The rules of axe-core that look at colours: the only ones that another colour scheme may break. */
export const colourRules = ["color-contrast", "link-in-text-block"];

/**
 * Takes a picture of the inspector's page in both colour schemes, named after the page and the scheme. Returns the rules of
 * accessibility that the page breaks. The page is left in the light scheme.
 */
export async function inBothSchemes(page: Page, name: string): Promise<readonly Violation[]> {
  await screenshot(page, `${name}-light`);
  const light = await axe(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.locator('[data-theme="dark"]').waitFor();
  // A picture ends what moves: colours are then those of the scheme.
  await screenshot(page, `${name}-dark`);
  const dark = await axe(page, colourRules);
  await page.emulateMedia({ colorScheme: "light" });
  await page.locator('[data-theme="light"]').waitFor();
  return [...light, ...dark];
}
