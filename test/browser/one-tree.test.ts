import { describe, expect, onTestFinished, test } from "vitest";
import { createRuntime, defineAgent, ModelError, subagent } from "../../src/index.ts";
import { Feed, serveFeed } from "../../src/inspector/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { axe, browserProgram, openBrowser, screenshot, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();
const price = { inputPerMillion: 2, outputPerMillion: 10 };
const names = ["cheap", "dear", "scribe", "broken", "slow"];

/** A model that calls agents once and answers when they are done. */
function calling(agents: readonly string[], usage = { inputTokens: 90, outputTokens: 10 }): ModelScript {
  return ({ messages }) =>
    messages.at(-1)?.role === "tool"
      ? { text: "done", usage }
      : { toolCalls: agents.map((name) => ({ name, arguments: { input: "Read." } })), usage };
}

/**
 * A lead whose slow reader is in the middle of its call. The cheap one has few tokens and a high price, and has used half of its
 * steps; the dear one has a scribe below it, many tokens, and has used a fifth of its steps; the broken one has failed.
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
    await treeOf(page).getByRole("row").filter({ hasText: name }).getByText(state).waitFor({ state: "attached" });
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

/** The names of the readers in the rows of a view. */
async function readersIn(page: WatchedPage, name: string): Promise<readonly string[]> {
  const grid = page.getByRole("table", { name, exact: true });
  await grid.waitFor();
  const rows = await grid.getByRole("row").allTextContents();
  return names.filter((one) => rows.some((row) => new RegExp(`${one}.*~`).test(row)));
}

/** The readers in the tree, and in each view that shows more than one agent. */
async function readersInAllViews(page: WatchedPage) {
  const tree = (await agentsIn(page)).filter((name) => name !== "lead").toSorted();
  await showView(page, "Timeline");
  await page.getByRole("checkbox", { name: "as a table" }).check();
  const table = await readersIn(page, "Timeline");
  await page.getByRole("checkbox", { name: "as a table" }).uncheck();
  await showView(page, "Events");
  const events = await readersIn(page, "Events");
  await showView(page, "Budgets");
  const budgets = await readersIn(page, "Budgets by agent");
  return { tree, table: table.toSorted(), events: events.toSorted(), budgets: budgets.toSorted() };
}

function everywhere(...readers: readonly string[]) {
  const sorted = readers.toSorted();
  return { tree: sorted, table: sorted, events: sorted, budgets: sorted };
}

interface DrawnRow {
  readonly name: string;
  /** The distance from the middle of its bars to the middle of the row, in pixels; `null` if it has no bar. */
  readonly off: number | null;
}

/** The rows of the tree that are completely visible, with the bars drawn at their heights. */
async function drawnRows(page: WatchedPage): Promise<readonly DrawnRow[]> {
  return await page.evaluate<DrawnRow[]>(`(async () => {
    await new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)));
    const canvas = document.querySelector(".timeline-bars canvas");
    const box = canvas.getBoundingClientRect();
    const pen = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvas, 0, 0);
    const isColoured = ([red, green, blue]) => Math.max(red, green, blue) - Math.min(red, green, blue) > 60;
    return [...document.querySelectorAll(".tree-row")].flatMap((row) => {
      const { top, bottom, height } = row.getBoundingClientRect();
      if (top < box.top || bottom > box.bottom) return [];
      const lines = Array.from({ length: Math.round(height) - 1 }, (_, y) => y).filter((y) => {
        const { data } = pen.getImageData(0, Math.round(top - box.top) + y, canvas.width, 1);
        return Array.from({ length: canvas.width }, (_, x) => data.slice(4 * x, 4 * x + 3)).some(isColoured);
      });
      const middle = (lines[0] + lines.at(-1) + 1) / 2;
      const name = row.querySelector(".tree-name b").textContent;
      return [{ name, off: lines.length === 0 ? null : Math.abs(middle - (height - 1) / 2) }];
    });
  })()`);
}

async function expectAligned(page: WatchedPage, expected: readonly string[]): Promise<void> {
  const rows = await drawnRows(page);
  expect(rows.map(({ name }) => name)).toEqual(expected);
  for (const { name, off } of rows)
    expect({ name, isAligned: off !== null && off <= 1 }).toEqual({ name, isAligned: true });
}

describe.skipIf(!browserProgram)("one tree of agents", () => {
  test("has the bars of each agent in its row, also while they grow, or are sorted, collapsed, scrolled or zoomed", async () => {
    const page = await openedLive();
    await expectAligned(page, ["lead", ...names]);
    await choose(page, "Order", "tokens");
    await expectAligned(page, ["lead", "dear", "scribe", "cheap", "broken", "slow"]);
    await screenshot(page, "one-tree");
    await treeOf(page).getByRole("row").filter({ hasText: "dear" }).click();
    await treeOf(page).press("ArrowLeft");
    await expectAligned(page, ["lead", "dear", "cheap", "broken", "slow"]);
    await treeOf(page).press("ArrowRight");
    await page.setViewportSize({ width: 1_280, height: 520 });
    await page.evaluate("new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))");
    // One scroll moves both, wherever the pointer is.
    const bars = (await page.locator(".timeline-bars").boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.mouse.move(bars.x + bars.width / 2, bars.y + bars.height / 2);
    await page.mouse.wheel(0, 1_000);
    await expect.poll(async () => (await drawnRows(page)).at(-1)?.name).toBe("slow");
    for (const { name, off } of await drawnRows(page))
      expect({ name, isAligned: (off ?? 9) <= 1 }).toEqual({ name, isAligned: true });
    await page.keyboard.press("3");
    await expect.poll(() => page.locator(".timeline-bars").count()).toBe(0);
    await page.keyboard.press("2");
    await expect.poll(() => page.locator(".timeline-bars").count()).toBe(1);
    expect(await page.evaluate("document.activeElement.role")).toBe("treegrid");
    await page.keyboard.press("End");
    // A click on a bar selects its row.
    const slow = (await treeOf(page).getByRole("row").filter({ hasText: "slow" }).boundingBox()) ?? { y: 0, height: 0 };
    await page.mouse.click(bars.x + bars.width * 0.7, slow.y + slow.height / 2);
    await page.getByRole("heading", { name: "slow" }).waitFor();
    await page.getByRole("complementary", { name: "Selected bar" }).waitFor();
  });

  test("is usable on a narrow screen", async () => {
    const page = await openedLive({ viewport: { width: 390, height: 800 } });
    expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
    await page.locator(".tree-scroll").scrollIntoViewIfNeeded();
    await expectAligned(page, ["lead", ...names]);
    await screenshot(page, "one-tree-narrow");
    await choose(page, "State", "failed");
    await expectAligned(page, ["lead", "broken"]);
    await showView(page, "Events");
    await screenshot(page, "one-tree-narrow-events");
    expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
  });

  test("a collapsed subtree is hidden in all views, with a notice", async () => {
    const page = await openedLive({ viewport: { width: 1_280, height: 2_000 } });
    await expect.poll(() => readersInAllViews(page)).toEqual(everywhere(...names));
    await treeOf(page).getByRole("row").filter({ hasText: "dear" }).click();
    await treeOf(page).press("ArrowLeft");
    await expect.poll(() => readersInAllViews(page)).toEqual(everywhere("cheap", "dear", "broken", "slow"));
    await page.getByText("5 of 6 agents").first().waitFor();
    for (const view of ["Events", "Budgets"]) {
      await showView(page, view);
      expect(await page.locator(".view .hidden-agents").textContent()).toBe("5 of 6 agents Show all");
    }
    // The accounts form a tree too.
    await page.getByRole("button", { name: "All accounts 9 of 11" }).click();
    const accounts = page.getByRole("treegrid", { name: "Accounts" }).getByRole("row");
    await expect.poll(() => accounts.count()).toBe(9);
    expect(await accounts.filter({ hasText: "scribe" }).count()).toBe(0);
    await page.locator(".view .hidden-agents").getByRole("button", { name: "Show all" }).click();
    await expect.poll(() => accounts.count()).toBe(11);
    await page.getByRole("button", { name: "All accounts 11" }).click();
    await expect.poll(() => readersInAllViews(page)).toEqual(everywhere(...names));
  });

  test("siblings are ordered by their spending, which is shown", async () => {
    const page = await openedLive({ viewport: { width: 1_280, height: 2_000 } });
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

  test("a filter, a state and the critical path apply to all views, with notices for a hidden selection and an empty result", async () => {
    const page = await openedLive({ viewport: { width: 1_280, height: 2_000 } });
    await treeOf(page).getByRole("row").filter({ hasText: "cheap" }).click();
    await page.getByRole("button", { name: "1 failed" }).click();
    await expect.poll(() => readersInAllViews(page)).toEqual(everywhere("broken"));
    await page.getByText("the selected one is hidden").waitFor();
    await choose(page, "State", "");
    await page.getByRole("searchbox", { name: "Filter agents" }).fill("scribe");
    await expect.poll(() => readersInAllViews(page)).toEqual({ ...everywhere("scribe"), tree: ["dear", "scribe"] });
    await page.reload();
    await expect.poll(() => agentsIn(page)).toEqual(["lead", "dear", "scribe"]);
    await page.getByRole("searchbox", { name: "Filter agents" }).fill("nobody");
    await page.getByText("No agent fits.").waitFor();
    await screenshot(page, "one-tree-empty");
    await page.getByRole("button", { name: "Show all agents" }).click();
    await expect.poll(() => agentsIn(page)).toEqual(["lead", ...names]);
    await page.getByRole("checkbox", { name: "critical only" }).check();
    await expect.poll(() => readersInAllViews(page)).toEqual(everywhere("slow"));
    expect((await axe(page)).filter(({ impact }) => impact === "serious" || impact === "critical")).toEqual([]);
  });
});
