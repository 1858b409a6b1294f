import { type Budget, createRuntime, defineAgent, type Runtime, type RuntimeOptions } from "troupe";
import { scriptedModel } from "troupe/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { Feed, runtimeActor, serveFeed } from "../../src/inspector/index.ts";
import { browserProgram, inBothSchemes, openBrowser, showView, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();
const usage = { inputTokens: 20, outputTokens: 180 };

interface Asked {
  readonly runtime: Runtime;
  readonly page: WatchedPage;
  readonly result: Promise<{ readonly status: string }>;
}

/** The requests of a turn that waits for more budget. */
async function asked({
  budget,
  accounts,
}: {
  budget?: Budget;
  accounts?: NonNullable<RuntimeOptions["accounts"]>;
}): Promise<Asked> {
  const clerk = defineAgent({
    name: "clerk",
    model: scriptedModel(() => ({ text: "Done.", usage })),
    price: { inputPerMillion: 1_000, outputPerMillion: 1_000 },
    maxOutputTokens: 400,
  });
  const runtime = await createRuntime({ agents: [clerk], ...(accounts ? { accounts } : {}) });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("clerk", { agentId: "desk", ownerId: "ada" });
  await agent.start();
  const turn = agent.executeTurn("Sort the post.", budget ? { budget } : {});
  await turn.settled;
  const feed = new Feed();
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime, actor: runtimeActor(runtime, "the page") });
  const server = await serveFeed(feed, { mayAct: true });
  onTestFinished(() => server.close());
  const page = await browser.newPage({ viewport: { width: 1_440, height: 900 } });
  await page.goto(`${server.url}&/run/desk?view=requests`);
  await page.getByRole("region", { name: "Requests" }).waitFor();
  return { runtime, page, result: turn.result };
}

describe.skipIf(!browserProgram)("a request for more budget", () => {
  test("continues with a typed amount, and the account above the run shows it", async () => {
    const accounts = { owner: { perDay: { maxTokens: 100, askAtLimit: true } }, tenant: { total: { maxCost: 50 } } };
    const { runtime, page, result } = await asked({ accounts });
    await page.getByRole("button", { name: /^Continue with [\d,]+ tokens more …$/ }).waitFor();
    expect(await inBothSchemes(page, "more-budget-request")).toEqual([]);
    await page.getByRole("button", { name: "Another amount …" }).click();
    const amount = page.getByRole("spinbutton", { name: "tokens to add" });
    const send = page.getByRole("button", { name: "Add it and continue" });
    await amount.fill("0.5");
    await send.click();
    expect(await page.evaluate("document.querySelector('input[type=number]').validity.stepMismatch")).toBe(true);
    expect(await runtime.requests({ status: "open" })).toHaveLength(1);
    await amount.fill("900");
    expect(await inBothSchemes(page, "more-budget-amount")).toEqual([]);
    await send.click();
    expect((await result).status).toBe("completed");
    await page.getByText("As decided").waitFor();
    await showView(page, "Budgets");
    const above = page.getByRole("region", { name: "Accounts above the run" });
    await expect.poll(() => above.textContent()).toMatch(/owner ada, per day.*200 of 1.00k tokens.*renews/);
    expect(await above.textContent()).toMatch(/the tenant, in total.*\$0\.2000 of \$50\.00 cost never renews/);
    expect(await inBothSchemes(page, "more-budget-above")).toEqual([]);
  });

  test("asks for dollars at a limit on the cost, and stops the turn", async () => {
    const { page, result } = await asked({ budget: { maxCost: 0.05, askAtLimit: true } });
    await page.getByRole("button", { name: "Another amount …" }).click();
    await page.getByRole("spinbutton", { name: "Dollars to add" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Stop …" }).click();
    await page.getByRole("textbox", { name: "Reason" }).fill("Enough.");
    await page.getByRole("button", { name: "Stop the turn at its limit" }).click();
    expect(await result).toMatchObject({ status: "stopped", stopReason: "cost_limit" });
    await page.getByText(/stopped by the page.*Enough\./).waitFor();
  });
});
