import { createRuntime, defineAgent } from "troupe";
import { scriptedModel } from "troupe/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { Feed, serveFeed } from "../../src/inspector/index.ts";
import { browserProgram, inBothSchemes, openBrowser, screenshot } from "../support/browser.ts";

const browser = openBrowser();

describe.skipIf(!browserProgram)("the table of schedules", () => {
  test("has the times, the next run and links to the last runs, and none without schedules", async () => {
    const runtime = await createRuntime({ agents: [defineAgent({ name: "desk", model: scriptedModel("done") })] });
    onTestFinished(() => runtime.shutdown());
    const feed = new Feed();
    feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
    const server = await serveFeed(feed);
    onTestFinished(() => server.close());
    const page = await browser.newPage();
    await page.goto(`${server.url}&/queues`);
    await page.getByRole("heading", { name: "Processes" }).waitFor();
    const heading = page.getByRole("heading", { name: "Schedules" });
    await expect.poll(() => heading.count()).toBe(0);

    await runtime.schedule("report", { agent: "desk", input: "May", cron: "0 9 * * *", timezone: "Europe/Berlin" });
    await runtime.schedule("tick", { agent: "desk", input: "Look.", every: "15m", agentId: "bot" });
    await runtime.schedules.runNow("tick");
    await runtime.schedules.pause("tick");
    await page.reload();
    await heading.waitFor();
    const table = page.getByRole("table", { name: "Schedules" });
    const report = table.getByRole("row").filter({ hasText: "report" });
    expect(await report.textContent()).toContain("0 9 * * * (Europe/Berlin)");
    const tick = table.getByRole("row").filter({ hasText: "tick" });
    expect(await tick.textContent()).toMatch(/desk.*every 900 s.*paused/);
    expect(await inBothSchemes(page, "schedules")).toEqual([]);
    await page.setViewportSize({ width: 390, height: 800 });
    await screenshot(page, "schedules-narrow");
    expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
    await tick.getByRole("link").click();
    await page.getByRole("region", { name: "Selected agent" }).getByRole("heading", { name: "desk" }).waitFor();
    expect(page.url()).toContain("/run/bot");
  });
});
