import { createRuntime } from "troupe";
import { describe, expect, onTestFinished, test } from "vitest";
import { Feed, serveFeed } from "../../src/inspector/index.ts";
import { browserProgram, inBothSchemes, openBrowser, showView } from "../support/browser.ts";
import { look, rounds, stubbedDesk, stubs } from "../support/stubbed-desk.ts";

const browser = openBrowser();

describe.skipIf(!browserProgram)("a session with stubs", () => {
  test("is marked in the list of runs, at its agent and in its events", async () => {
    const runtime = await createRuntime({ agents: [stubbedDesk().desk] });
    onTestFinished(() => runtime.shutdown());
    for (const options of [{ agentId: "shop", stubs }, { agentId: "plain" }]) {
      const agent = await runtime.agent("desk", options);
      await agent.start();
      await agent.executeTurn(rounds(look("7"))).result;
    }
    const feed = new Feed();
    feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
    const server = await serveFeed(feed);
    onTestFinished(() => server.close());
    const page = await browser.newPage();
    await page.goto(server.url);
    const row = (id: string) => page.getByRole("row").filter({ has: page.getByRole("link", { name: id }) });
    await row("shop").getByText("stubbed", { exact: true }).waitFor();
    expect(await row("plain").getByText("stubbed").count()).toBe(0);
    expect(await inBothSchemes(page, "stubs-runs")).toEqual([]);
    await row("shop").getByRole("link", { name: "shop" }).first().click();
    const head = page.getByRole("region", { name: "Selected agent" });
    await head.getByText("stubbed", { exact: true }).waitFor();
    await showView(page, "Events");
    const events = page.getByRole("main", { name: "Events" });
    await events.getByText("by stub 1").waitFor();
    expect(await events.getByRole("row").filter({ hasText: "tool started" }).textContent()).toContain("stubbed");
    expect(await inBothSchemes(page, "stubs-events")).toEqual([]);
  });
});
