import { describe, expect, onTestFinished, test } from "vitest";
import { type AgentDefinition, createRuntime, defineAgent, memoryStores, type Runtime } from "../../src/index.ts";
import { Feed, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { browserProgram, openBrowser, screenshot, showView, type WatchedPage } from "../support/browser.ts";
import { payTool } from "../support/pay-tool.ts";

const browser = openBrowser();

/** The page over a run whose turn has begun and continues until the returned promise is resolved. */
async function openedAt(
  definition: AgentDefinition,
): Promise<{ readonly page: WatchedPage; readonly runtime: Runtime }> {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [definition], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent(definition.name, { agentId: "desk" });
  await agent.start();
  agent.executeTurn("Look at it.");
  const feed = new Feed({ run: "desk" });
  feed.add({ stores, tenant: "default", runtime });
  const server = await serveFeed(feed);
  onTestFinished(() => server.close());
  const page = await browser.newPage();
  await page.goto(server.url);
  await page.getByRole("treegrid", { name: "Agents" }).waitFor();
  return { page, runtime };
}

/** The seconds in the text of an element. */
async function secondsIn(page: WatchedPage, selector: string): Promise<number> {
  const text = (await page.locator(selector).first().textContent()) ?? "";
  return Number(/([\d.]+) s\b/.exec(text)?.[1] ?? 0);
}

/** The positions of the first and the last coloured pixel in the first row of the timeline, as shares of the width. */
async function barIn(page: WatchedPage): Promise<readonly [number, number]> {
  return await page.evaluate<[number, number]>(`(() => {
    const canvas = document.querySelector(".timeline-bars canvas");
    const y = Math.round(canvas.height * 20 / canvas.clientHeight);
    const { data } = canvas.getContext("2d").getImageData(0, y, canvas.width, 1);
    const isColoured = (x) => {
      const [red, green, blue] = data.slice(4 * x, 4 * x + 3);
      return Math.max(red, green, blue) - Math.min(red, green, blue) > 60;
    };
    const points = Array.from({ length: canvas.width }, (_, x) => x).filter(isColoured);
    return [(points[0] ?? 0) / canvas.width, (points.at(-1) ?? 0) / canvas.width];
  })()`);
}

describe.skipIf(!browserProgram)("calls in flight", () => {
  test("a model call grows in every view with the clock", async () => {
    const answer = Promise.withResolvers<void>();
    const { page } = await openedAt(
      defineAgent({
        name: "clerk",
        budget: { maxSeconds: 600 },
        model: scriptedModel({ text: "Seen.", delayUntil: answer.promise }),
      }),
    );
    onTestFinished(() => answer.resolve());
    await expect.poll(() => secondsIn(page, ".scrub-time"), { timeout: 10_000 }).toBeGreaterThan(1.5);
    const [from, to] = await barIn(page);
    expect(from).toBeLessThan(0.2);
    expect(to).toBeGreaterThan(0.95);
    await page.getByRole("checkbox", { name: "as a table" }).check();
    const row = page.getByRole("table", { name: "Timeline" }).getByRole("row").filter({ hasText: "model call" });
    await expect.poll(() => row.textContent()).toMatch(/[2-9]\.\d+ s so far/);
    await page.getByRole("checkbox", { name: "as a table" }).uncheck();
    await showView(page, "Chart");
    await expect.poll(() => secondsIn(page, ".chart-state .figures")).toBeGreaterThan(1.5);
    await showView(page, "Budgets");
    await expect.poll(() => secondsIn(page, '.limit-list li:has-text("working time") .figures')).toBeGreaterThan(1.5);
    await screenshot(page, "in-flight-budgets");
    await showView(page, "Timeline");
    const before = await secondsIn(page, ".scrub-time");
    await page.keyboard.press("[");
    const pinned = await secondsIn(page, ".scrub-time");
    expect(pinned).toBeLessThan(before);
    await page.keyboard.press("l");
    expect(await secondsIn(page, ".scrub-time")).toBeGreaterThanOrEqual(before);
    answer.resolve();
    await page.locator(".pill.done").first().waitFor();
    const end = await secondsIn(page, ".scrub-time");
    await page.locator('[title="Theme: system"]').click();
    expect(await secondsIn(page, ".scrub-time")).toBe(end);
  });

  test("a wait for a person grows until it takes half of the axis, and then shows a counter", async () => {
    const { page } = await openedAt(
      defineAgent({
        name: "clerk",
        tools: [payTool],
        model: scriptedModel([{ toolCalls: [{ name: "pay", arguments: { to: "ACME", euros: 60 } }] }, "Paid."]),
      }),
    );
    await page.locator(".agent-head .pill.asking").waitFor();
    await expect.poll(() => secondsIn(page, ".scrub-time"), { timeout: 10_000 }).toBeGreaterThan(2);
    const [from, to] = await barIn(page);
    expect({ isLong: to - from > 0.8, isToTheEnd: to > 0.95 }).toEqual({ isLong: true, isToTheEnd: true });
    await screenshot(page, "in-flight-person");
  });
});
