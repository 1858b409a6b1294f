import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool } from "../../src/index.ts";
import { Feed, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { browserProgram, openBrowser } from "../support/browser.ts";

const browser = openBrowser();

/** A reporter whose archive does not answer; the run continues while the page is open, as its last answer is held back. */
async function reporter(): Promise<string> {
  const look = defineTool({
    name: "look_up",
    description: "Looks into the archive.",
    parameters: z.object({ at: z.string() }),
    effect: "none",
    execute: () => {
      throw new Error("ECONNREFUSED 10.0.4.17:9200: the index 'cranes' is not reachable");
    },
  });
  const held = Promise.withResolvers<void>();
  const model = scriptedModel(async ({ messages }) => {
    if (messages.at(-1)?.role !== "tool") return { toolCalls: [{ name: "look_up", arguments: { at: "cranes" } }] };
    await held.promise;
    return "The archive did not answer.";
  });
  const runtime = await createRuntime({ agents: [defineAgent({ name: "reporter", tools: [look], model })] });
  onTestFinished(() => runtime.shutdown());
  onTestFinished(() => held.resolve());
  const agent = await runtime.agent("reporter", { agentId: "desk" });
  await agent.start();
  const turn = agent.executeTurn("Find the cranes.");
  turn.result.catch(() => undefined);
  for await (const event of turn) if (event.type === "tool.failed" || event.type === "tool.completed") break;
  const feed = new Feed({ run: "desk" });
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
  const server = await serveFeed(feed);
  onTestFinished(() => server.close());
  return server.url;
}

describe.skipIf(!browserProgram)("events", () => {
  test("are found by any text that their row shows, as the filter is typed", async () => {
    const page = await browser.newPage();
    await page.goto(`${await reporter()}&/run/desk?view=events`);
    const rows = page.getByRole("table", { name: "Events" }).getByRole("row");
    const filter = page.getByRole("searchbox", { name: "Filter events" });
    await filter.pressSequentially("econnrefused cranes");
    await expect.poll(() => rows.count()).toBe(1);
    expect(await rows.first().textContent()).toContain("ECONNREFUSED 10.0.4.17:9200");
    await filter.fill("tokens in");
    await expect.poll(() => rows.allTextContents()).toEqual([expect.stringContaining("model responded")]);
  });

  test("are found once in their contents, ignoring surrounding blanks", async () => {
    const page = await browser.newPage();
    await page.goto(`${await reporter()}&/run/desk?view=events`);
    await page.getByRole("searchbox", { name: "Filter events" }).fill("ECONNREFUSED");
    await page.getByRole("button", { name: "Search contents" }).click();
    await page.getByText("1 hit in contents").waitFor();
    const hit = page.locator(".content-search .hit");
    expect(await hit.textContent()).toContain("Error: ECONNREFUSED 10.0.4.17:9200: the index");
  });
});
