import { describe, expect, onTestFinished, test } from "vitest";
import { browserProgram, openBrowser, screenshot, type WatchedPage } from "../support/browser.ts";
import { largeRun, pageWith, servePages } from "../support/large-run.ts";

const browser = openBrowser();
/** Next to other work a machine needs many times as long. */
const slack = 20;

/** Repeats an action and returns how long each took until the next frame was shown. */
async function slowest(page: WatchedPage, act: string, times = 40): Promise<number> {
  const taken = await page.evaluate<number[]>(`(async () => {
    const frame = () => new Promise((shown) => requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => shown();
      channel.port2.postMessage(0);
    }));
    const act = ${act};
    const taken = [];
    for (let turn = 0; turn < ${times}; turn += 1) {
      const before = performance.now();
      act(turn);
      await frame();
      taken.push(performance.now() - before);
    }
    return taken;
  })()`);
  return taken.toSorted((one, other) => one - other)[Math.floor(times * 0.95)] ?? 0;
}

const scrub = `(turn) => document.querySelector(".track").dispatchEvent(
  new KeyboardEvent("keydown", { key: turn % 2 === 0 ? "Home" : "PageDown", bubbles: true }))`;
const scroll = `(turn) => { document.querySelector(".view .virtual").scrollTop -= 700 + turn; }`;
/** The longest task since the page was opened. */
const longest = `Math.max(0, ...window.longTasks.splice(0))`;
const watchTasks = `window.longTasks = []; new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) window.longTasks.push(duration);
}).observe({ type: "longtask", buffered: true });`;
const filter = `(turn) => {
  const field = document.querySelector(".view input[type=search]");
  field.value = "look reader settled ~1f".slice(0, turn % 20);
  field.dispatchEvent(new Event("input", { bubbles: true }));
}`;

/** Labels stay next to their bars after scrolling, and the map leads to any agent. */
async function looksAtTimeline(page: WatchedPage, address: string): Promise<void> {
  await page.goto(address);
  const canvas = page.locator(".timeline-bars canvas");
  await canvas.waitFor();
  await page.evaluate(`document.querySelector(".tree-scroll").scrollTop = 12345`);
  // 12,345 is in row 514 of 24 pixels; three rows below is reader 516.
  const label = page.locator(".tree-row", { hasText: "~000204" });
  await label.waitFor();
  const [row, drawn] = [await label.boundingBox(), await canvas.boundingBox()];
  if (!row || !drawn) throw new Error("the timeline is not shown");
  const selected = page.locator(".tree-row.selected", { hasText: "~000204" });
  // The position of its bars depends on how long its steps took.
  for (const part of [0.62, 0.3, 0.45, 0.75, 0.9, 0.15]) {
    await page.mouse.click(drawn.x + drawn.width * part, row.y + row.height / 2);
    await page.evaluate(`new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))`);
    if (await selected.isVisible()) break;
  }
  await selected.waitFor();
  await screenshot(page, "page-large-timeline");
  const map = page.locator(".map-box");
  const { width, height } = (await map.boundingBox()) ?? { width: 0, height: 0 };
  await map.click({ position: { x: width / 2, y: height / 2 } });
  await page.locator(".tree-row", { hasText: "~0003e7" }).waitFor();
}

describe.skipIf(!browserProgram)("a run of 2,001 agents and 120,000 events", () => {
  test("is ready soon, stays small and scrolls smoothly", async () => {
    const { data, entries, agents } = await largeRun();
    expect(agents).toBe(2_001);
    expect(entries).toBeGreaterThan(120_000);
    const server = await servePages({ "/": pageWith(data) });
    onTestFinished(() => server.close());
    const page = await browser.newPage({ viewport: { width: 1_400, height: 860 } });
    await page.addInitScript(watchTasks);
    const before = performance.now();
    await page.goto(`${server.origin}/#/run/large?view=events`);
    await page.getByText(`/ ${entries.toLocaleString("en")}`).waitFor();
    const ready = performance.now() - before;
    const task = await page.evaluate<number>(longest);
    const scrubbed = await slowest(page, scrub);
    await page.getByRole("button", { name: "Live", exact: true }).click();
    const figures = {
      ready,
      task,
      scrub: scrubbed,
      scroll: await slowest(page, scroll),
      filter: await slowest(page, filter, 20),
    };
    const aims = { ready: 2_000, task: 100, scrub: 50, scroll: 32, filter: 50 };
    for (const [name, aim] of Object.entries(aims)) {
      expect(figures[name as keyof typeof figures], name).toBeLessThan(aim * slack);
    }
    expect(await page.evaluate(`document.querySelectorAll("*").length`)).toBeLessThan(3_000);
    const client = await page.context().newCDPSession(page);
    await client.send("HeapProfiler.collectGarbage");
    const { usedSize } = await client.send("Runtime.getHeapUsage");
    expect(usedSize / 1_000_000).toBeLessThan(120);
    await screenshot(page, "page-large-events");
    await looksAtTimeline(page, `${server.origin}/#/run/large?view=timeline`);
  });
});
