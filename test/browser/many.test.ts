import { describe, expect, onTestFinished, test } from "vitest";
import { type AgentDefinition, createRuntime, defineAgent, memoryStores, subagent } from "../../src/index.ts";
import { Feed, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { browserProgram, openBrowser, screenshot } from "../support/browser.ts";

const browser = openBrowser();

async function served(definition: AgentDefinition, agentIds: readonly string[]): Promise<string> {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [definition], stores });
  onTestFinished(() => runtime.shutdown());
  for (const agentId of agentIds) {
    const agent = await runtime.agent(definition.name, { agentId });
    await agent.start();
    await agent.executeTurn(`The work of ${agentId}.`).result;
  }
  const feed = new Feed();
  feed.add({ stores, tenant: "default", runtime });
  const server = await serveFeed(feed);
  onTestFinished(() => server.close());
  return server.url;
}

/** A lead with 30 readers, each of which answers with the task that it was given. */
function crowd(): AgentDefinition {
  const reader = defineAgent({
    name: "reader",
    model: scriptedModel(({ messages }) => JSON.stringify(messages.at(-1)?.content)),
  });
  return defineAgent({
    name: "lead",
    tools: [subagent(reader)],
    model: scriptedModel(({ messages }) => {
      if (messages.at(-1)?.role === "tool") return "done";
      const input = JSON.stringify(messages.at(-1)?.content);
      return { toolCalls: Array.from({ length: 30 }, () => ({ name: "reader", arguments: { input } })) };
    }),
  });
}

describe.skipIf(!browserProgram)("long lists", () => {
  test("loaded runs stay when the list is read again", async () => {
    const clerk = defineAgent({ name: "clerk", model: scriptedModel("noted") });
    const url = await served(
      clerk,
      Array.from({ length: 55 }, (_, index) => `day-${index}`),
    );
    const page = await browser.newPage();
    await page.goto(url);
    const rows = page.locator(".run-table tbody tr");
    await expect.poll(() => rows.count()).toBe(50);
    await page.getByRole("button", { name: "More runs" }).click();
    await expect.poll(() => rows.count()).toBe(55);
    await page.waitForResponse((response) => response.url().includes("/api/runs?"));
    // The second page is requested after the first one was shown.
    await page.waitForResponse((response) => response.url().includes("/api/runs?"));
    expect(await rows.count()).toBe(55);
  });

  test("agents that differ are compared 25 at a time, also on a narrow screen", async () => {
    const url = await served(crowd(), ["monday", "tuesday"]);
    const page = await browser.newPage({ viewport: { width: 360, height: 780 } });
    await page.goto(url);
    await page.getByRole("link", { name: "Compare", exact: true }).click();
    await page.getByRole("combobox", { name: "First run" }).selectOption("monday");
    await page.getByRole("combobox", { name: "Second run" }).selectOption("tuesday");
    const agents = page.locator(".compared-agent");
    await expect.poll(() => agents.count()).toBe(25);
    await screenshot(page, "page-compare-narrow");
    expect(await page.evaluate(`document.querySelector(".compare").scrollWidth`)).toBe(360);
    await page.getByRole("button", { name: "Show 25 more" }).click();
    await expect.poll(() => agents.count()).toBe(31);
  });
});
