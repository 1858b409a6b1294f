import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { type AgentDefinition, createRuntime, defineAgent, type Runtime, subagent } from "../../src/index.ts";
import { Feed, pageOfRun, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import {
  axe,
  browserProgram,
  openBrowser,
  type PageOptions,
  screenshot,
  type WatchedPage,
} from "../support/browser.ts";

const browser = openBrowser();
const price = { inputPerMillion: 10, outputPerMillion: 50 };
const usage = { inputTokens: 500, outputTokens: 100 };

/** A lead that starts three readers one after the other; the last reader's or the lead's own last answer is held back. */
function team(maxTokens: number, held: Promise<void>): AgentDefinition {
  let asked = 0;
  const reader = defineAgent({
    name: "reader",
    price,
    maxOutputTokens: 300,
    model: scriptedModel(() => {
      asked += 1;
      return { text: "read", usage, ...(asked === 3 ? { delayUntil: held } : {}) };
    }),
  });
  return defineAgent({
    name: "lead",
    price,
    maxOutputTokens: 300,
    budget: { maxTokens, maxSteps: 8 },
    tools: [subagent(reader, { budget: { maxCost: 0.2 } })],
    model: scriptedModel(({ messages }) => {
      const done = messages.filter(({ role }) => role === "tool").length;
      if (done === 3) return { text: "done", usage };
      return { toolCalls: [{ name: "reader", arguments: { input: `part ${done}` } }], usage };
    }),
  });
}

interface Shown {
  readonly page: WatchedPage;
  readonly runtime: Runtime;
  readonly feed: Feed;
  readonly release: () => void;
  readonly result: Promise<unknown>;
}

/** The budgets of a run in progress, until it is released. */
async function opened(maxTokens: number, options: PageOptions = {}): Promise<Shown> {
  const held = Promise.withResolvers<void>();
  const runtime = await createRuntime({ agents: [team(maxTokens, held.promise)] });
  onTestFinished(() => runtime.shutdown());
  onTestFinished(() => held.resolve());
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  const { result } = agent.executeTurn("Read all parts.");
  result.catch(() => undefined);
  const feed = new Feed({ run: "desk" });
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
  const server = await serveFeed(feed);
  onTestFinished(() => server.close());
  const page = await browser.newPage(options);
  await page.goto(`${server.url}&/run/desk?view=budgets`);
  await budgetRows(page).first().waitFor();
  return { page, runtime, feed, release: () => held.resolve(), result };
}

function budgetRows(page: WatchedPage) {
  return page.getByRole("table", { name: "Budgets by agent" }).getByRole("row");
}

function tryLimit(page: WatchedPage) {
  return page.getByRole("region", { name: "Try another limit" });
}

describe.skipIf(!browserProgram)("the budgets of agents", () => {
  test("has one row per agent, with two bars, the binding limit and its forecast", async () => {
    const { page, release, result } = await opened(6_000, { viewport: { width: 1_440, height: 900 } });
    await expect.poll(() => budgetRows(page).count()).toBe(4);
    const lead = budgetRows(page).first().getByRole("cell");
    await expect.poll(() => lead.nth(1).getByRole("meter").count()).toBe(2);
    await expect.poll(() => lead.nth(1).textContent()).toMatch(/3 of 8 steps.*3\.00k \+ \d+ of 6\.00k tokens/);
    await expect
      .poll(() => lead.nth(2).textContent())
      .toMatch(/^tokens \d+ %est\. \d+:\d\d:\d\d [AP]M, in [\d.]+ m?s$/);
    expect(await page.locator(".forecast").first().getAttribute("title")).toContain(
      "An estimate: what is left of the limit",
    );
    // The reader is bound by the rest of the lead's budget.
    const last = budgetRows(page).last().getByRole("cell");
    await expect.poll(() => last.nth(1).textContent()).toMatch(/^1 of 10 steps3\.00k \+ \d+ of 6\.00k tokens$/);
    await expect.poll(() => last.nth(2).textContent()).toMatch(/^tokens of lead \d+ %/);
    // A finished agent gets no forecast.
    expect(await budgetRows(page).nth(1).locator(".forecast").count()).toBe(0);
    await screenshot(page, "budgets-agents");
    release();
    await result;
    await expect.poll(() => page.locator(".forecast").count()).toBe(0);
    await page.getByRole("button", { name: "All accounts" }).click();
    await expect.poll(() => page.getByRole("treegrid", { name: "Accounts" }).getByRole("row").count()).toBe(7);
  });

  test("names the account that refused, the requested amount and the missing amount", async () => {
    const { page, release } = await opened(2_500, { viewport: { width: 1_440, height: 900 } });
    release();
    const row = budgetRows(page).filter({ hasText: "wanted" });
    await expect
      .poll(() => row.first().getByRole("cell").last().textContent())
      .toMatch(/^tokens of lead, turn 1\d+ wanted, 100 left, \d+ over$/);
    const text = (await row.first().getByRole("cell").last().locator(".figures").textContent()) ?? "";
    const [wanted = 0, left = 0, over = 0] = [...text.matchAll(/\d+/g)].map(([amount]) => Number(amount));
    expect(wanted - left).toBe(over);
    await screenshot(page, "budgets-refused");
    const end = await page.locator(".scrub-count").textContent();
    await row.first().getByTitle("Goes to the moment").click();
    await expect.poll(() => page.locator(".scrub-count").textContent()).not.toBe(end);
  });

  test("updates a time limit with the clock", async () => {
    const held = Promise.withResolvers<void>();
    const clerk = defineAgent({
      name: "clerk",
      budget: { maxSeconds: 600 },
      model: scriptedModel({ text: "Seen.", delayUntil: held.promise }),
    });
    const runtime = await createRuntime({ agents: [clerk] });
    onTestFinished(() => runtime.shutdown());
    onTestFinished(() => held.resolve());
    const agent = await runtime.agent("clerk", { agentId: "desk" });
    await agent.start();
    agent.executeTurn("Look.").result.catch(() => undefined);
    const feed = new Feed({ run: "desk" });
    feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
    const server = await serveFeed(feed);
    onTestFinished(() => server.close());
    const page = await browser.newPage();
    await page.goto(`${server.url}&/run/desk?view=budgets`);
    const cells = budgetRows(page).first().getByRole("cell");
    const worked = async () =>
      Number(/([\d.]+) s of 10 min working time/.exec((await cells.nth(1).textContent()) ?? "")?.[1] ?? 0);
    await expect.poll(worked).toBeGreaterThan(1);
    // The limit itself, not an estimate.
    await page.getByRole("combobox", { name: "Limit" }).waitFor();
    const panel = tryLimit(page);
    await page.getByRole("combobox", { name: "Limit", exact: true }).selectOption({ label: "working time" });
    await panel.getByRole("spinbutton").fill("1.5");
    await panel.getByRole("spinbutton").press("Enter");
    // Its working time begins with the turn, slightly after the start of the run.
    await expect
      .poll(() => panel.getByRole("status").textContent())
      .toMatch(/cut off: clerk, turn 1, step 1, at (1\.[5-9]|[2-9]\.)\d+ s/);
  });
});

describe.skipIf(!browserProgram)("another limit", () => {
  test("can be dragged, typed or moved by keys, and shows where the run would have ended, with a marker and a link", async () => {
    const { page, release, result, feed } = await opened(20_000, { viewport: { width: 1_440, height: 900 } });
    await expect.poll(() => budgetRows(page).count()).toBe(4);
    const panel = tryLimit(page);
    const said = panel.getByRole("status");
    const typed = panel.getByRole("spinbutton");
    await expect.poll(() => typed.inputValue()).toBe("20000");
    await typed.fill("1300");
    await typed.press("Enter");
    // While the last reader is still working.
    await expect
      .poll(() => said.textContent())
      .toMatch(
        /^With 1\.30k tokens the first call to be refused would have been that of lead, turn 1, step 2, at [\d.]+ s: \d+ needed, 100 left on lead, turn 1, \d+ too few\./,
      );
    await page.locator(".scrubber .supposed-mark").waitFor();
    await screenshot(page, "budgets-try");
    await said.getByRole("button", { name: "Go to the moment" }).click();
    await page.getByText("You look at").waitFor();
    await expect.poll(() => budgetRows(page).first().textContent()).toMatch(/2 of 8 steps/);
    // At an earlier time the limit is still applied to the whole run.
    const slider = panel.getByRole("slider");
    const before = Number(await typed.inputValue());
    await slider.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await expect.poll(async () => Number(await typed.inputValue())).toBeGreaterThan(before);
    const box = await slider.boundingBox();
    if (!box) throw new Error("the slider is not shown");
    await page.mouse.move(box.x + 4, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 4, box.y + box.height / 2, { steps: 5 });
    await page.mouse.up();
    await expect
      .poll(() => said.textContent())
      .toMatch(/all of the run so far would have fitted: at most [\d.]+k were used/);
    expect(await page.locator(".supposed-mark").count()).toBe(0);
    await typed.fill("1300");
    await typed.press("Enter");
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Timeline" }).click();
    await page.locator(".timeline-bars .supposed-mark").waitFor();
    await screenshot(page, "budgets-try-timeline");
    release();
    await result;
    const path = join(newFolder(), "run.html");
    writeFileSync(path, await pageOfRun(feed, "desk"));
    await triedInFile(path);
  });

  test("that is higher than the one that ended the run shows that the journal ends there", async () => {
    const { page, release } = await opened(2_500);
    release();
    await page.locator(".run-state, .pill.stopped").first().waitFor();
    const panel = tryLimit(page);
    await panel.getByRole("spinbutton").fill("9000");
    await panel.getByRole("spinbutton").press("Enter");
    await expect
      .poll(() => panel.getByRole("status").textContent())
      .toMatch(
        /it would have continued after .*, where the real limit of 2\.50k tokens ended it\. The journal does not show how\./,
      );
    await panel.getByRole("button", { name: "Back to it" }).click();
    await expect.poll(() => panel.getByRole("status").count()).toBe(0);
  });

  test.each([
    [390, "light"],
    [1_024, "dark"],
  ] as const)("can be tried on a page %i pixels wide in %s colours", async (width, colorScheme) => {
    const { page } = await opened(20_000, { viewport: { width, height: 900 }, colorScheme });
    await expect.poll(() => budgetRows(page).count()).toBe(4);
    const panel = tryLimit(page);
    await panel.getByRole("spinbutton").fill("1300");
    // The clock goes on while the user types.
    const clock = page.locator(".scrub-time");
    const time = await clock.textContent();
    await expect.poll(() => clock.textContent()).not.toBe(time);
    expect(await panel.getByRole("spinbutton").inputValue()).toBe("1300");
    await panel.getByRole("spinbutton").press("Enter");
    await panel.getByRole("button", { name: "Go to the moment" }).waitFor();
    await screenshot(page, `budgets-${width}-${colorScheme}`);
    const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    expect(overflow).toBeLessThanOrEqual(0);
    expect((await axe(page)).map(({ id }) => id)).toEqual([]);
  });
});

async function triedInFile(path: string): Promise<void> {
  const page = await browser.newPage();
  await page.goto(`${pathToFileURL(path).href}#/run/desk?view=budgets`);
  const panel = tryLimit(page);
  await panel.getByRole("spinbutton").fill("1300");
  await panel.getByRole("spinbutton").press("Enter");
  await expect
    .poll(() => panel.getByRole("status").textContent())
    .toContain("the first call to be refused would have been that of lead");
  await page.locator(".scrubber .supposed-mark").waitFor();
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-budgets-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
