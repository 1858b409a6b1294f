import { describe, expect, onTestFinished, test } from "vitest";
import {
  type AgentDefinition,
  createRuntime,
  defineAgent,
  ModelError,
  type Runtime,
  subagent,
} from "../../src/index.ts";
import { Feed, serveFeed } from "../../src/inspector/index.ts";
import { type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";
import { axe, browserProgram, openBrowser, screenshot, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();
const price = { inputPerMillion: 2, outputPerMillion: 10 };

function child(name: string, answer: ScriptedAnswer): AgentDefinition {
  return defineAgent({ name, price, model: scriptedModel(() => answer) });
}

/** A lead that waits for an expensive and a cheap reader, which are done, and for one whose model is refused for a minute. */
async function waitingLead(): Promise<string> {
  const refused = new ModelError("429 Too many requests", {
    retryable: true,
    mayHaveBeenSent: false,
    retryAfterMs: 60_000,
  });
  const readers = [
    child("dear", { text: "Read all of it.", usage: { inputTokens: 9_000, outputTokens: 1_000 } }),
    child("cheap", { text: "Read a line.", usage: { inputTokens: 90, outputTokens: 10 } }),
    child("refused", { error: refused }),
  ];
  const model = scriptedModel({
    toolCalls: readers.map(({ name }) => ({ name, arguments: { input: `the ${name} one` } })),
    usage: { inputTokens: 900, outputTokens: 100 },
  });
  const lead = defineAgent({ name: "lead", price, model, tools: readers.map((one) => subagent(one)) });
  const runtime = await createRuntime({ agents: [lead] });
  onTestFinished(() => runtime.shutdown());
  const bothDone = Promise.withResolvers<void>();
  let left = 2;
  runtime.subscribe(({ type }) => {
    if (type === "turn.completed") left -= 1;
    if (left === 0) bothDone.resolve();
  });
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  await agent.executeTurn("Read them.").id;
  await bothDone.promise;
  return await served(runtime);
}

/** The page over a run of a finished agent. */
async function ended(definition: AgentDefinition): Promise<string> {
  const runtime = await createRuntime({ agents: [definition] });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent(definition.name, { agentId: "desk" });
  await agent.start();
  await agent.executeTurn("Read them.").result;
  return await served(runtime);
}

async function served(runtime: Runtime): Promise<string> {
  const feed = new Feed({ run: "desk" });
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
  const server = await serveFeed(feed);
  onTestFinished(() => server.close());
  return server.url;
}

/** Points at a share of the width of an agent's row. */
async function pointAt(
  page: WatchedPage,
  agent: string,
  share: number,
): Promise<{ readonly x: number; readonly y: number }> {
  const label = await page.locator(".tree-row", { hasText: agent }).boundingBox();
  const canvas = await page.locator(".timeline-bars canvas").boundingBox();
  if (!label || !canvas) throw new Error("the timeline is not shown");
  const point = { x: canvas.x + canvas.width * share, y: label.y + label.height / 2 };
  await page.mouse.move(point.x, point.y);
  return point;
}

async function opened(): Promise<WatchedPage> {
  const url = await waitingLead();
  const page = await browser.newPage();
  await page.goto(url);
  await page.getByRole("treegrid", { name: "Agents" }).getByText("retrying").waitFor();
  return page;
}

describe.skipIf(!browserProgram)("the bars of the timeline", () => {
  test.each(["tokens", "cost"])("are as wide as their own %s: a wait has no width", async (measure) => {
    const page = await opened();
    await page.getByRole("button", { name: measure, exact: true }).click();
    const tip = page.locator(".tip");
    await pointAt(page, "dear", 0.9);
    await tip.getByText("10.0k tokens").waitFor();
    // A hundredth of the expensive one's cost.
    await pointAt(page, "cheap", 0.005);
    await tip.getByText("100 tokens").waitFor();
    for (const [agent, share] of [
      ["cheap", 0.5],
      ["lead", 0.5],
      ["refused", 0.5],
    ] as const) {
      await pointAt(page, agent, share);
      await expect.poll(() => tip.count()).toBe(0);
    }
    await pointAt(page, "lead", 0.05);
    await tip.getByText("1.00k tokens").waitFor();
    await screenshot(page, `page-timeline-${measure}`);
  });

  test("show a call's details on a click, and open it on a double click", async () => {
    const page = await opened();
    await page.getByRole("button", { name: "tokens", exact: true }).click();
    const { x, y } = await pointAt(page, "dear", 0.5);
    await page.mouse.click(x, y);
    const aside = page.getByRole("complementary", { name: "Selected bar" });
    for (const text of [
      "the dear one",
      "Read all of it.",
      "10.0k",
      "$0.0280",
      "attempt 1",
      "exact, checked by its hash",
    ]) {
      await aside.getByText(text).first().waitFor();
    }
    await page.getByRole("heading", { name: "dear" }).waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Live", exact: true, pressed: true }).count()).toBe(1);
    expect((await axe(page)).filter(({ impact }) => impact === "serious" || impact === "critical")).toEqual([]);
    await screenshot(page, "page-span-model");
    // The row is now narrower.
    const again = await pointAt(page, "dear", 0.5);
    await page.mouse.dblclick(again.x, again.y);
    await expect.poll(() => page.getByRole("button", { name: "Live", exact: true, pressed: false }).count()).toBe(1);
    await aside.getByRole("button", { name: "Close" }).click();
    await expect.poll(() => aside.count()).toBe(0);
  });

  test("show why a call waits for its next attempt, and until when", async () => {
    const page = await opened();
    await screenshot(page, "page-retry");
    const { x, y } = await pointAt(page, "refused", 0.9);
    await page
      .locator(".tip")
      .getByText(/^429 · retry in/)
      .waitFor();
    await page.mouse.click(x, y);
    const aside = page.getByRole("complementary", { name: "Selected bar" });
    await aside.getByText("429 Too many requests").first().waitFor();
    await aside.getByText("the refused one").first().waitFor();
    await screenshot(page, "page-span-retry");
    await page.setViewportSize({ width: 390, height: 800 });
    expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
  });

  test("list the attempts of a step that took several", async () => {
    const refused = new ModelError("429 Too many requests", {
      retryable: true,
      mayHaveBeenSent: false,
      retryAfterMs: 1,
    });
    const model = scriptedModel((_request, { index }) => (index === 0 ? { error: refused } : "Read at last."));
    const url = await ended(defineAgent({ name: "lead", price, model }));
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByRole("button", { name: "tokens", exact: true }).click();
    const { x, y } = await pointAt(page, "lead", 0.5);
    await page.mouse.click(x, y);
    const attempts = page.getByRole("list", { name: "Attempts" }).getByRole("listitem");
    await expect.poll(() => attempts.count()).toBe(2);
    const [first, second] = await attempts.allTextContents();
    expect(first).toMatch(/^attempt 1: scripted: 429 after \d+ ms$/);
    expect(second).toMatch(/^attempt 2: answered after \d+ ms$/);
  });

  test("that failed stand out: counted in the header, a click filters the tree, E moves to the next one", async () => {
    const broken = new ModelError("401 Wrong key", { retryable: false, mayHaveBeenSent: false });
    const readers = [child("broken", { error: broken }), child("fine", "Read.")];
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? "done"
        : { toolCalls: readers.map(({ name }) => ({ name, arguments: { input: "this" } })) },
    );
    const lead = defineAgent({ name: "lead", price, model, tools: readers.map((one) => subagent(one)) });
    const url = await ended(lead);
    const page = await browser.newPage();
    await page.goto(url);
    const tree = page.getByRole("treegrid", { name: "Agents" });
    await tree.getByText("fine").waitFor();
    await screenshot(page, "page-failures");
    await page.keyboard.press("e");
    await page.getByRole("heading", { name: "broken" }).waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Live", exact: true, pressed: false }).count()).toBe(1);
    await page.keyboard.press("l");
    await page.getByRole("button", { name: "1 failed" }).click();
    await expect.poll(() => tree.getByText("fine").count()).toBe(0);
    await tree.getByText("broken").first().waitFor();
  });
});
