import { describe, expect, onTestFinished, test } from "vitest";
import { createRuntime, defineAgent, ModelError, subagent } from "../../src/index.ts";
import { Feed, serveFeed } from "../../src/inspector/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { axe, browserProgram, openBrowser, screenshot, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();
const price = { inputPerMillion: 2, outputPerMillion: 10 };
const names = ["cheap", "dear", "scribe", "broken", "slow"];

/** A model that calls agents once, and says something when they are done. */
function calling(agents: readonly string[], usage = { inputTokens: 90, outputTokens: 10 }): ModelScript {
  return ({ messages }) =>
    messages.at(-1)?.role === "tool"
      ? { text: "done", usage }
      : { toolCalls: agents.map((name) => ({ name, arguments: { input: "Read." } })), usage };
}

/**
 * A lead whose slow reader is in the middle of its call. The cheap one has few tokens and a high price, and has used half of its
 * steps; the dear one has a scribe below it, many tokens, and a fifth of its steps; the broken one has failed.
 */
async function openedLive(options: Parameters<typeof browser.newPage>[0] = {}): Promise<WatchedPage> {
  const answer = Promise.withResolvers<void>();
  const refused = new ModelError("401 Wrong key", { retryable: false, mayHaveBeenSent: false });
  const scribe = defineAgent({ name: "scribe", price, model: scriptedModel("Written.") });
  const few = { text: "Read.", usage: { inputTokens: 90, outputTokens: 10 } };
  const cheap = defineAgent({
    name: "cheap",
    price: { inputPerMillion: 2_000, outputPerMillion: 2_000 },
    model: scriptedModel(few),
  });
  const dear = defineAgent({
    name: "dear",
    price,
    tools: [subagent(scribe)],
    model: scriptedModel(calling(["scribe"], { inputTokens: 9_000, outputTokens: 1_000 })),
  });
  const broken = defineAgent({ name: "broken", price, model: scriptedModel({ error: refused }) });
  const slow = defineAgent({
    name: "slow",
    price,
    model: scriptedModel({ text: "At last.", delayUntil: answer.promise }),
  });
  const lead = defineAgent({
    name: "lead",
    price,
    tools: [
      subagent(cheap, { budget: { maxSteps: 2 } }),
      subagent(dear, { budget: { maxSteps: 10 } }),
      subagent(broken),
      subagent(slow),
    ],
    model: scriptedModel(calling(["cheap", "dear", "broken", "slow"])),
  });
  const runtime = await createRuntime({ agents: [lead] });
  onTestFinished(() => runtime.shutdown());
  onTestFinished(() => answer.resolve());
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  agent.executeTurn("Read them.");
  const feed = new Feed({ run: "desk" });
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
  const server = await serveFeed(feed);
  onTestFinished(() => server.close());
  const page = await browser.newPage(options);
  await page.goto(server.url);
  for (const [name, state] of [
    ["dear", "done"],
    ["broken", "401"],
    ["slow", "thinking"],
  ] as const) {
    await treeOf(page).getByRole("row").filter({ hasText: name }).getByText(state).waitFor();
  }
  return page;
}

function treeOf(page: WatchedPage) {
  return page.getByRole("treegrid", { name: "Agents" });
}

async function agentsIn(page: WatchedPage): Promise<readonly string[]> {
  return await page.locator(".tree-name b").allTextContents();
}

async function showView(page: WatchedPage, name: string): Promise<void> {
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name }).click();
}

async function choose(page: WatchedPage, name: "State" | "Order", value: string): Promise<void> {
  await page.getByRole("combobox", { name: `${name} of the agents` }).selectOption(value);
}

/** The readers that are named in the rows of a view. */
async function readersIn(page: WatchedPage, role: "table" | "treegrid", name: string): Promise<readonly string[]> {
  const grid = page.getByRole(role, { name, exact: true });
  await grid.waitFor();
  const rows = await grid.getByRole("row").allTextContents();
  return names.filter((one) => rows.some((row) => new RegExp(`${one}.*~`).test(row)));
}

/** The readers in the tree, and in each view that is about more than one agent. */
async function readersInAllViews(page: WatchedPage) {
  const tree = (await agentsIn(page)).filter((name) => name !== "lead").toSorted();
  await showView(page, "Timeline");
  await page.getByRole("checkbox", { name: "as a table" }).check();
  const table = await readersIn(page, "table", "Timeline");
  await page.getByRole("checkbox", { name: "as a table" }).uncheck();
  await showView(page, "Events");
  const events = await readersIn(page, "table", "Events");
  await showView(page, "Budgets");
  const budgets = await readersIn(page, "treegrid", "Accounts");
  return { tree, table: table.toSorted(), events: events.toSorted(), budgets: budgets.toSorted() };
}

function everywhere(...readers: readonly string[]) {
  const sorted = readers.toSorted();
  return { tree: sorted, table: sorted, events: sorted, budgets: sorted };
}

describe.skipIf(!browserProgram)("one tree of agents", () => {
  test("a collapsed subtree is hidden in all views, and they say so", async () => {
    const page = await openedLive();
    expect(await readersInAllViews(page)).toEqual(everywhere(...names));
    await treeOf(page).getByRole("row").filter({ hasText: "dear" }).click();
    await treeOf(page).press("ArrowLeft");
    expect(await readersInAllViews(page)).toEqual(everywhere("cheap", "dear", "broken", "slow"));
    await page.getByText("5 of 6 agents").first().waitFor();
    await showView(page, "Events");
    await page.locator(".view .hidden-agents").getByRole("button", { name: "Show all" }).click();
    expect(await readersInAllViews(page)).toEqual(everywhere(...names));
  });

  test("siblings are ordered by what they have spent, and a figure says so", async () => {
    const page = await openedLive();
    expect(await agentsIn(page)).toEqual(["lead", ...names]);
    const rows = treeOf(page).getByRole("row");
    await choose(page, "Order", "tokens");
    await expect.poll(() => agentsIn(page)).toEqual(["lead", "dear", "scribe", "cheap", "broken", "slow"]);
    await rows.filter({ hasText: "dear" }).getByText("20.0k").waitFor();
    await choose(page, "Order", "cost");
    await expect.poll(() => agentsIn(page)).toEqual(["lead", "cheap", "dear", "scribe", "broken", "slow"]);
    await rows.filter({ hasText: "cheap" }).getByText("$0.2000").waitFor();
    await choose(page, "Order", "limit");
    await expect.poll(() => agentsIn(page)).toEqual(["lead", "cheap", "dear", "scribe", "broken", "slow"]);
    await rows.filter({ hasText: "cheap" }).getByText("50 %").waitFor();
    await rows.filter({ hasText: "dear" }).getByText("20 %").waitFor();
    await choose(page, "Order", "duration");
    await expect.poll(async () => (await agentsIn(page))[1]).toBe("slow");
    await expect.poll(() => page.url()).toContain("order=duration");
    await page.reload();
    await expect.poll(async () => (await agentsIn(page))[1]).toBe("slow");
  });

  test("a filter, a state and the critical path reach all views; the hidden choice is said, and no result says what to do", async () => {
    const page = await openedLive();
    await treeOf(page).getByRole("row").filter({ hasText: "cheap" }).click();
    await page.getByRole("button", { name: "1 failed" }).click();
    expect(await readersInAllViews(page)).toEqual(everywhere("broken"));
    await page.getByText("the selected one is hidden").waitFor();
    await choose(page, "State", "");
    await page.getByRole("searchbox", { name: "Filter agents" }).fill("scribe");
    expect(await readersInAllViews(page)).toMatchObject({
      tree: ["dear", "scribe"],
      table: ["scribe"],
      events: ["scribe"],
    });
    await page.reload();
    await expect.poll(() => agentsIn(page)).toEqual(["lead", "dear", "scribe"]);
    await page.getByRole("searchbox", { name: "Filter agents" }).fill("nobody");
    await page.getByText("No agent fits.").waitFor();
    await screenshot(page, "one-tree-empty");
    await page.getByRole("button", { name: "Show all agents" }).click();
    await expect.poll(() => agentsIn(page)).toEqual(["lead", ...names]);
    await page.getByRole("checkbox", { name: "critical only" }).check();
    expect(await readersInAllViews(page)).toEqual(everywhere("slow"));
    expect((await axe(page)).filter(({ impact }) => impact === "serious" || impact === "critical")).toEqual([]);
  });
});
