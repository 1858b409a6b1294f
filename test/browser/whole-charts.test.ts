import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Locator } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, memoryStores } from "../../src/index.ts";
import { Feed, pageOfRun, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import {
  axe,
  browserProgram,
  openBrowser,
  type PageOptions,
  screenshot,
  type WatchedPage,
} from "../support/browser.ts";

const browser = openBrowser();
const laptop = { width: 1_440, height: 900 };
const small = { width: 1_024, height: 700 };

interface Opened {
  readonly page: WatchedPage;
  /** Releases the tool and waits for the end of the turn. */
  readonly end: () => Promise<void>;
  readonly feed: Feed;
}

/** The charts of an agent whose tool call is in flight. */
async function opened(options: PageOptions): Promise<Opened> {
  const held = Promise.withResolvers<string>();
  onTestFinished(() => held.resolve("seen"));
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({ at: z.string() }),
    effect: "none",
    execute: () => held.promise,
  });
  const model = scriptedModel([{ toolCalls: [{ name: "look", arguments: { at: "it" } }] }, "Seen."]);
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", tools: [look], model })], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("clerk", { agentId: "desk" });
  await agent.start();
  const turn = agent.executeTurn("Look at it.");
  const feed = new Feed({ run: "desk" });
  feed.add({ stores, tenant: "default", runtime });
  const server = await serveFeed(feed);
  onTestFinished(() => server.close());
  const page = await browser.newPage(options);
  await page.goto(`${server.url}&/run/desk?view=chart`);
  await tile(page, "Turn").getByText("model.responded").first().waitFor();
  const end = async (): Promise<void> => {
    held.resolve("seen");
    await turn.result;
  };
  return { page, end, feed };
}

function tile(page: WatchedPage, name: string): Locator {
  return page.getByRole("region", { name, exact: true });
}

/** The names of the active states in a drawn chart, outermost first. */
async function activeIn(page: WatchedPage, name: string): Promise<readonly string[]> {
  return await tile(page, name).locator(".texts.active .state-name").allTextContents();
}

interface Measured {
  readonly texts: number;
  /** Describes what lies outside the box, as text. */
  readonly outside: readonly string[];
  /** The height of the smallest text, in screen pixels. */
  readonly smallest: number;
}

async function measured(page: WatchedPage, name: string): Promise<Measured> {
  return await page.evaluate<Measured>(`(() => {
    const chart = document.querySelector('section[aria-label="${name}"] .chart');
    const box = chart.parentElement.getBoundingClientRect();
    const isOutside = (part) => {
      const { left, top, right, bottom } = part.getBoundingClientRect();
      return left < box.left || top < box.top || right > box.right || bottom > box.bottom;
    };
    const texts = [...chart.querySelectorAll("text")];
    const drawn = [...texts, ...chart.querySelectorAll("rect, circle, path:not(marker path)")];
    return {
      texts: texts.length,
      outside: drawn.filter(isOutside).map((part) => part.outerHTML),
      smallest: Math.min(...texts.map((text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)),
    };
  })()`);
}

describe.skipIf(!browserProgram)("the charts of an agent, while a call is in flight", () => {
  test("are side by side on a laptop, each complete, readable and in its current state", async () => {
    const { page, end } = await opened({ viewport: laptop });
    await expect.poll(() => activeIn(page, "Tool call")).toEqual(["performing", "running"]);
    await screenshot(page, "charts-laptop");
    for (const name of ["Agent", "Turn", "Tool call"]) {
      const { texts, outside, smallest } = await measured(page, name);
      expect({ name, outside }).toEqual({ name, outside: [] });
      expect(texts).toBeGreaterThanOrEqual(10);
      expect(smallest).toBeGreaterThanOrEqual(10);
    }
    expect(await activeIn(page, "Agent")).toEqual(["busy", "working"]);
    expect(await activeIn(page, "Turn")).toEqual(["round"]);
    const words = async (name: string): Promise<string> =>
      (await tile(page, name).locator(".chart-head").textContent()) ?? "";
    expect(await words("Agent")).toMatch(/Agent.*busy\.working \d.* m?s.*from ready on turn\.started/);
    expect(await words("Turn")).toMatch(
      /Turn.*round.*from thinking\.calling on model\.responded because runsToolsNext/,
    );
    expect(await words("Tool call")).toMatch(/Tool call.*look.*performing\.running.*on tool\.started/);
    expect((await axe(page)).filter(({ impact }) => impact !== "minor")).toEqual([]);

    await page.keyboard.press("[");
    await page.keyboard.press("[");
    await expect.poll(() => activeIn(page, "Turn")).toEqual(["thinking", "calling"]);
    expect(await activeIn(page, "Agent")).toEqual(["busy", "working"]);
    expect(await activeIn(page, "Tool call")).toEqual([]);
    expect(await words("Tool call")).toContain("No tool call of this turn at this moment.");

    await page.keyboard.press("l");
    await end();
    await expect.poll(() => activeIn(page, "Turn")).toEqual(["done"]);
    expect(await activeIn(page, "Agent")).toEqual(["ready"]);
    expect(await activeIn(page, "Tool call")).toEqual(["settled"]);
  });

  test("are shown one at a time on a small screen, each complete and readable", async () => {
    const { page } = await opened({ viewport: small });
    for (const name of ["Agent", "Turn", "Tool call"]) {
      await page.getByRole("button", { name, exact: true }).click();
      await tile(page, name).locator(".state-name").first().waitFor();
      expect(await page.locator(".chart-tile").count()).toBe(1);
      const { outside, smallest } = await measured(page, name);
      expect({ name, outside }).toEqual({ name, outside: [] });
      expect(smallest).toBeGreaterThanOrEqual(10);
      await screenshot(page, `charts-small-${name}`);
    }
    await page.setViewportSize({ width: 390, height: 844 });
    // The chart is laid out anew for the narrow box.
    await expect.poll(async () => (await measured(page, "Tool call")).outside).toEqual([]);
    expect((await measured(page, "Tool call")).smallest).toBeGreaterThan(7);
  });

  test("pulse at a transition just taken, and stand still if reduced motion is requested", async () => {
    const { page, end } = await opened({ viewport: laptop });
    const edge = tile(page, "Turn").locator(".edge.taken");
    const shown = `document.querySelector('section[aria-label="Turn"] .edge.taken')`;
    const movesBy = (): Promise<unknown> => page.evaluate(`getComputedStyle(${shown}).animationName`);
    expect(await movesBy()).toBe("taken");
    const before = await edge.getAttribute("d");
    await page.evaluate(`window.known = ${shown}`);
    await end();
    await expect.poll(() => activeIn(page, "Turn")).toEqual(["done"]);
    expect(await edge.count()).toBe(1);
    expect(await edge.getAttribute("d")).not.toBe(before);
    // A new element starts the animation.
    expect(await page.evaluate("window.known.isConnected")).toBe(false);
    await page.emulateMedia({ reducedMotion: "reduce" });
    expect(await movesBy()).toBe("none");
  });

  test("follow an agent that does not pause", async () => {
    const glance = defineTool({
      name: "glance",
      description: "Glances.",
      parameters: z.object({}),
      effect: "none",
      execute: () => "seen",
    });
    const isOver = { value: false };
    const model = scriptedModel(() => (isOver.value ? "Seen." : { toolCalls: [{ name: "glance", arguments: {} }] }));
    const clerk = defineAgent({ name: "clerk", tools: [glance], model, budget: { maxSteps: 10_000 } });
    const stores = memoryStores();
    const runtime = await createRuntime({ agents: [clerk], stores });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent("clerk", { agentId: "desk" });
    await agent.start();
    const turn = agent.executeTurn("Look at it.");
    onTestFinished(async () => {
      isOver.value = true;
      await turn.result;
    });
    const feed = new Feed({ run: "desk" });
    feed.add({ stores, tenant: "default", runtime });
    const server = await serveFeed(feed);
    onTestFinished(() => server.close());
    const page = await browser.newPage({ viewport: laptop });
    await page.goto(`${server.url}&/run/desk?view=chart`);
    const count = async (): Promise<number> =>
      Number.parseInt((await tile(page, "Turn").locator("caption").textContent())?.replaceAll(",", "") ?? "", 10);
    await tile(page, "Turn").locator("caption").waitFor();
    const before = await count();
    await expect.poll(count).toBeGreaterThan(before + 8);
  });

  test("show names of states when zoomed out, and all details when zoomed in", async () => {
    const { page } = await opened({ viewport: laptop });
    const turn = tile(page, "Turn");
    const box = turn.getByRole("group", { name: "Statechart of the turn" });
    const texts = async (): Promise<string> => (await box.locator("text").allTextContents()).join(" ");
    expect(await texts()).not.toMatch(/model\.responded|The tools that the model/);
    await box.focus();
    await page.keyboard.press("+");
    for (const text of ["model.responded", "[runsToolsNext]", "interruptOpenWork", "The tools that the model has"]) {
      expect(await texts()).toContain(text);
    }
    expect((await measured(page, "Turn")).smallest).toBeGreaterThanOrEqual(10);
    const place = async (): Promise<number> => (await box.locator(".texts.active").first().boundingBox())?.x ?? 0;
    const middle = await place();
    await page.keyboard.press("ArrowRight");
    await expect.poll(place).toBeLessThan(middle - 50);
    await screenshot(page, "charts-near");
    await page.keyboard.press("0");
    await expect.poll(texts).not.toContain("model.responded");

    await turn.getByRole("button", { name: "Zoom in" }).click();
    await expect.poll(texts).toContain("model.responded");
    expect(await turn.getByRole("button", { name: "Whole chart" }).getAttribute("aria-pressed")).toBe("false");
    await turn.getByRole("button", { name: "Zoom out" }).click();
    await expect.poll(texts).not.toContain("model.responded");

    // The wheel zooms in at the pointer, and dragging moves the chart.
    const state = turn.locator(".state-name", { hasText: "finishing" });
    const { x = 0, y = 0, width = 0 } = (await state.boundingBox()) ?? {};
    await page.mouse.move(x + width / 2, y + 8);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -100);
    await page.keyboard.up("Control");
    await expect.poll(texts).toContain("model.responded");
    const near = (await state.boundingBox()) ?? { x: 0, width: 0 };
    expect(Math.abs(near.x + near.width / 2 - (x + width / 2))).toBeLessThan(2);
    await page.mouse.down();
    await page.mouse.move(x + width / 2 - 40, y + 8, { steps: 4 });
    await page.mouse.up();
    await expect.poll(async () => ((await state.boundingBox())?.x ?? 0) - near.x).toBeCloseTo(-40, 0);
  });

  test("are the same in an exported file", async () => {
    const { page: live, end, feed } = await opened({ viewport: laptop });
    await end();
    await expect.poll(() => activeIn(live, "Turn")).toEqual(["done"]);
    const folder = mkdtempSync(join(tmpdir(), "troupe-charts-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, "run.html");
    writeFileSync(path, await pageOfRun(feed, "desk"));
    const page = await browser.newPage({ viewport: laptop, colorScheme: "dark" });
    await page.goto(`${pathToFileURL(path).href}#/run/desk?view=chart`);
    await expect.poll(() => activeIn(page, "Turn")).toEqual(["done"]);
    expect(await activeIn(page, "Agent")).toEqual(["ready"]);
    expect(await activeIn(page, "Tool call")).toEqual(["settled"]);
    await screenshot(page, "charts-exported");
    await tile(page, "Turn")
      .getByRole("row")
      .filter({ hasText: "thinking.calling" })
      .last()
      .getByRole("button")
      .click();
    await expect.poll(() => activeIn(page, "Turn")).toEqual(["thinking", "calling"]);
    expect(await activeIn(page, "Agent")).toEqual(["busy", "working"]);
    for (const name of ["Agent", "Turn", "Tool call"]) expect((await measured(page, name)).outside).toEqual([]);
  });
});
