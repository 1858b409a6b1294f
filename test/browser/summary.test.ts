import { describe, expect, onTestFinished, test } from "vitest";
import { type AgentDefinition, createRuntime, defineAgent, type Runtime, subagent } from "../../src/index.ts";
import { Feed, pageOfRun, runtimeActor, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { browserProgram, inBothSchemes, openBrowser, screenshot, type WatchedPage } from "../support/browser.ts";
import { payTool } from "../support/pay-tool.ts";

const browser = openBrowser();

const price = { inputPerMillion: 2, outputPerMillion: 10, cachedInputPerMillion: 1 };
const usage = { inputTokens: 10_000, outputTokens: 500, cachedInputTokens: 4_000, reasoningTokens: 120 };

/** A lead whose reader answers when released, and which then requests a payment; the reader has no price. */
function team(answer: Promise<void>): AgentDefinition {
  const reader = defineAgent({
    name: "reader",
    model: scriptedModel({ text: "read", usage, delayUntil: answer }, { name: "small-1" }),
  });
  return defineAgent({
    name: "lead",
    price,
    tools: [subagent(reader), payTool],
    model: scriptedModel(
      [
        { toolCalls: [{ name: "reader", arguments: { input: "this" } }], usage },
        { toolCalls: [{ name: "pay", arguments: { to: "ACME", euros: 60 } }], usage },
        { text: "The month is closed.", usage },
      ],
      { name: "large-1" },
    ),
  });
}

interface PageServer {
  readonly runtime: Runtime;
  readonly feed: Feed;
  readonly url: string;
}

async function servePage(definition: AgentDefinition): Promise<PageServer> {
  const runtime = await createRuntime({ agents: [definition] });
  onTestFinished(() => runtime.shutdown());
  const feed = new Feed();
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime, actor: runtimeActor(runtime, "the page") });
  const server = await serveFeed(feed, { mayAct: true });
  onTestFinished(() => server.close());
  return { runtime, feed, url: server.url };
}

const answerOf = (page: WatchedPage, question: string) => page.getByRole("region", { name: question });

/** Faults in either scheme, and the widths at which the page is too wide. */
async function faultsAt(page: WatchedPage, name: string): Promise<readonly unknown[]> {
  const faults: unknown[] = (await inBothSchemes(page, name)).filter(({ impact }) => impact !== "minor");
  for (const width of [390, 1_024, 1_440]) {
    await page.setViewportSize({ width, height: 900 });
    await screenshot(page, `${name}-${width}`);
    const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    if (overflow > 0) faults.push({ width, overflow });
  }
  await page.setViewportSize({ width: 1_280, height: 800 });
  return faults;
}

describe.skipIf(!browserProgram)("the summary of a run", () => {
  test("names what a run waits for, and after its end the reason, the spending and what was slow", async () => {
    const answer = Promise.withResolvers<void>();
    const { runtime, feed, url } = await servePage(team(answer.promise));
    onTestFinished(() => answer.resolve());
    const agent = await runtime.agent("lead", { agentId: "desk" });
    await agent.start();
    const turn = agent.executeTurn("Close the month.");
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByRole("link", { name: "desk" }).first().click();
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Summary" }).click();
    const waits = answerOf(page, "What it waits for").getByRole("link", {
      name: /^reader ~\w+ is thinking: small-1, for/,
    });
    const seconds = async (): Promise<number> => Number(/for ([\d.]+) s/.exec((await waits.textContent()) ?? "")?.[1]);
    await expect.poll(seconds, { timeout: 10_000 }).toBeGreaterThan(2);
    await answerOf(page, "What is slow so far")
      .getByText(/^model call small-1 of reader .* so far/)
      .waitFor();
    await answerOf(page, "Who spent it so far")
      .getByText(/^lead by its own calls: \$/)
      .waitFor();
    expect(await faultsAt(page, "summary-live")).toEqual([]);
    // Opens the call that is in flight.
    await waits.click();
    await page.getByRole("complementary", { name: "Selected bar" }).getByText("small-1").first().waitFor();
    await page.locator(".agent-head").getByRole("heading", { name: "reader" }).waitFor();
    await page.goBack();
    answer.resolve();
    await answerOf(page, "What it waits for")
      .getByText(/^lead is waiting for a person: approval of pay, for/)
      .waitFor();
    const [request] = await runtime.requests();
    await runtime.decide(request?.requestId ?? "", { verdict: "approved", by: "mara" });
    await turn.result;
    const end = answerOf(page, "Why it stopped").getByRole("link", { name: /^lead: turn 1 completed after 3 steps/ });
    await end.waitFor();
    const short = (await page.getByRole("region", { name: "In short" }).textContent()) ?? "";
    expect(short).toContain("Task: Close the month.");
    expect(short).toContain("2 agents (lead, reader) made 2 turns, 4 model calls and 2 tool calls");
    expect(short).toContain("1 approved by mara");
    await answerOf(page, "Who spent it").getByText("1 of 4 calls had no price and count as nothing").waitFor();
    const models = page.getByRole("table", { name: "By model" });
    const cells = async (name: string) => await models.getByRole("row", { name }).getByRole("cell").allTextContents();
    expect(await cells("large-1")).toEqual(["large-1", "$0.0630", "3", "30.0k", "12.0k 40 %", "1.50k", "360"]);
    expect(await cells("small-1")).toEqual(["small-1", "no price", "1", "10.0k", "4.00k 40 %", "500", "120"]);
    expect(await faultsAt(page, "summary-done")).toEqual([]);
    const exported = await pageOfRun(feed, "desk");
    await end.click();
    await page.locator(".pill.done").first().waitFor();
    expect(page.url()).toMatch(/at=\d+/);
    const offline = await browser.newPage();
    await offline.setContent(exported);
    await offline.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Summary" }).click();
    await answerOf(offline, "Why it stopped")
      .getByText(/^lead: turn 1 completed/)
      .waitFor();
    expect(await offline.getByRole("region", { name: "In short" }).textContent()).toContain("Close the month.");
  });
});

describe.skipIf(!browserProgram)("the costs of runs", () => {
  test("are summed up by model, agent and day over the filtered runs, and each row links to its runs", async () => {
    const held = Promise.withResolvers<void>();
    const reader = defineAgent({ name: "reader", model: scriptedModel({ text: "read", usage }, { name: "small-1" }) });
    const lead = defineAgent({
      name: "lead",
      price,
      tools: [subagent(reader)],
      model: scriptedModel(
        async ({ messages }) => {
          const text = JSON.stringify(messages);
          if (text.includes("slowly") && messages.at(-1)?.role === "tool") await held.promise;
          if (text.includes("alone") || messages.at(-1)?.role === "tool") return { text: "done", usage };
          return { toolCalls: [{ name: "reader", arguments: { input: "this" } }], usage };
        },
        { name: "large-1" },
      ),
    });
    const { runtime, url } = await servePage(lead);
    onTestFinished(() => held.resolve());
    for (const [agentId, text] of [
      ["alone", "Work alone."],
      ["both", "Work together."],
    ] as const) {
      const agent = await runtime.agent("lead", { agentId });
      await agent.start();
      await agent.executeTurn(text).result;
    }
    const slow = await runtime.agent("lead", { agentId: "slow" });
    await slow.start();
    const turn = slow.executeTurn("Work slowly.");
    for await (const event of turn) if (event.type === "subagent.ended") break;
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByRole("link", { name: "costs" }).click();
    const costs = page.getByRole("region", { name: "Costs of the runs" });
    await costs.getByText("Of all 3 runs that the filter shows").waitFor();
    const cells = async (table: string, name: string) =>
      await costs.getByRole("table", { name: table }).getByRole("row", { name }).getByRole("cell").allTextContents();
    expect(await cells("By model", "large-1")).toEqual([
      "large-1",
      "$0.0840",
      "3",
      "4",
      "40.0k",
      "16.0k 40 %",
      "2.00k",
      "480",
    ]);
    expect((await cells("By agent", "reader")).slice(0, 4)).toEqual(["reader", "no price", "2", "2"]);
    const day = new Date().toISOString().slice(0, 10);
    expect((await cells("By day", day)).slice(0, 4)).toEqual([day, "≥ $0.0840", "3", "6"]);
    expect(await faultsAt(page, "costs")).toEqual([]);
    const names = page.locator(".run-table tbody code[title]");
    await costs.getByRole("link", { name: "reader" }).click();
    await expect.poll(() => names.allTextContents()).toEqual(["slow", "both"]);
    expect(page.url()).toContain("spent=agent%3Areader");
    // The filter applies to the costs too.
    await page.getByRole("link", { name: "costs" }).click();
    await costs.getByText("Of all 2 runs that the filter shows").waitFor();
    await costs.getByRole("link", { name: day }).click();
    await expect.poll(() => names.allTextContents()).toEqual(["slow", "both", "alone"]);
    await page.getByRole("link", { name: "Show all again" }).click();
    await page.getByRole("combobox", { name: "State" }).selectOption({ label: "Running" });
    await page.getByRole("link", { name: "costs" }).click();
    await costs.getByText("Of all 1 run that the filter shows").waitFor();
  });
});
