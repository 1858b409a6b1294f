import { describe, expect, onTestFinished, test } from "vitest";
import { createRuntime, defineAgent, ModelError, subagent } from "../../src/index.ts";
import { Feed, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { browserProgram, openBrowser, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();
const price = { inputPerMillion: 2, outputPerMillion: 10 };

/** A lead whose first attempt breaks off after 50 tokens, with a helper without a price; its last answer is held back. */
async function live(): Promise<string> {
  const held = Promise.withResolvers<void>();
  const cut = new ModelError("The connection broke", {
    retryable: true,
    mayHaveBeenSent: true,
    partialOutputTokens: 50,
    retryAfterMs: 1,
  });
  const helper = defineAgent({
    name: "helper",
    model: scriptedModel({ text: "helped", usage: { inputTokens: 400, outputTokens: 100 } }),
  });
  const lead = defineAgent({
    name: "lead",
    price,
    budget: { maxSteps: 8, maxTreeSteps: 30 },
    tools: [subagent(helper)],
    model: scriptedModel(({ messages }, { index }) => {
      if (index === 0) return { error: cut };
      if (messages.at(-1)?.role === "tool") return { text: "done", delayUntil: held.promise };
      const usage = { inputTokens: 1_000, outputTokens: 200 };
      return { toolCalls: [{ name: "helper", arguments: { input: "help" } }], usage };
    }),
  });
  const runtime = await createRuntime({ agents: [lead] });
  onTestFinished(() => runtime.shutdown());
  onTestFinished(() => held.resolve());
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  const turn = agent.executeTurn("Do it.");
  turn.result.catch(() => undefined);
  for await (const event of turn) if (event.type === "step.started" && event.step === 2) break;
  const feed = new Feed({ run: "desk" });
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
  const server = await serveFeed(feed);
  onTestFinished(() => server.close());
  return server.url;
}

async function selectedText(page: WatchedPage, selector: string): Promise<string> {
  return ((await page.locator(selector).first().textContent()) ?? "").trim();
}

describe.skipIf(!browserProgram)("one amount", () => {
  test("of a run has one value and one wording in the header, the accounts, the list of runs and a comparison", async () => {
    const url = await live();
    const page = await browser.newPage({ viewport: { width: 1_600, height: 900 } });
    await page.goto(`${url}&/run/desk?view=budgets`);
    await page.getByRole("button", { name: "All accounts" }).click();
    const first = page.getByRole("treegrid", { name: "Accounts" }).getByRole("row").first();
    await first.waitFor();
    const header = async () => await page.locator(".run-figures dd").allTextContents();
    const [, tokens = "", cost = ""] = await header();
    expect(cost).toMatch(/^≥ \$0\.00\d+$/);
    const cells = await first.getByRole("gridcell").allTextContents();
    expect(cells.slice(2, 3)).toEqual([tokens]);
    expect(cells[4]).toBe(cost);
    // The limit is shown in its own unit, next to the steps of all agents.
    expect([cells[1], cells[5]]).toEqual(["2 of 8 steps", "3"]);
    await page.getByRole("link", { name: "troupe" }).click();
    await page.locator(".run-table tbody tr").waitFor();
    const row = await page.locator(".run-table tbody td").allTextContents();
    expect(row).toEqual(expect.arrayContaining([tokens, cost]));
    expect(await selectedText(page, ".run-sums")).toContain(`${tokens} tokens · ${cost}`);
    await page.goto(`${url}&/compare/desk/desk`);
    const totals = page.getByRole("table", { name: "Both runs" }).getByRole("row").nth(1).getByRole("cell");
    await expect.poll(() => totals.allTextContents()).toEqual(expect.arrayContaining([tokens, cost]));
  });
});
