import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  createRuntime,
  defineAgent,
  defineTool,
  memoryStores,
  subagent,
} from "../../src/index.ts";
import { Feed, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { browserProgram, inBothSchemes, openBrowser, screenshot } from "../support/browser.ts";

const browser = openBrowser();

function team(): AgentDefinition {
  const price = { inputPerMillion: 2, outputPerMillion: 10 };
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({ at: z.string() }),
    effect: "none",
    execute: ({ at }) => `seen ${at}`,
  });
  const reader = defineAgent({
    name: "reader",
    price,
    tools: [look],
    model: scriptedModel(({ messages }) => {
      const isLong = JSON.stringify(messages).includes("volume");
      const rounds = messages.filter(({ role }) => role === "tool").length;
      return rounds < (isLong ? 2 : 1)
        ? { toolCalls: [{ name: "look", arguments: { at: `${rounds}` } }] }
        : isLong
          ? "I read all of it, twice."
          : "I read a part.";
    }),
  });
  const clerk = defineAgent({ name: "clerk", price, model: scriptedModel("noted") });
  return defineAgent({
    name: "lead",
    price,
    tools: [subagent(reader), subagent(clerk)],
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? "The report is done."
        : {
            toolCalls: [
              {
                name: "reader",
                arguments: { input: JSON.stringify(messages).includes("volume") ? "the volume" : "part" },
              },
              { name: "clerk", arguments: { input: "note it" } },
            ],
          },
    ),
  });
}

async function twoRuns(): Promise<string> {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [team()], stores });
  onTestFinished(() => runtime.shutdown());
  for (const [agentId, text] of [
    ["monday", "Read a part."],
    ["tuesday", "Read the volume."],
  ] as const) {
    const agent = await runtime.agent("lead", { agentId });
    await agent.start();
    await agent.executeTurn(text).result;
  }
  const feed = new Feed();
  feed.add({ stores, tenant: "default", runtime });
  const server = await serveFeed(feed);
  onTestFinished(() => server.close());
  return server.url;
}

/** A clerk who asks what to pay and pays what was approved: both runs use the same tools and equally many tokens. */
async function twoPayments(): Promise<string> {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({ euros: z.number() }),
    effect: "once",
    needsApproval: true,
    execute: ({ euros }) => `${euros} paid`,
  });
  const price = { inputPerMillion: 2, outputPerMillion: 10 };
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "tool" ? "It is paid." : { toolCalls: [{ name: "pay", arguments: { euros: 120 } }] },
  );
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", price, model, tools: [pay] })], stores });
  onTestFinished(() => runtime.shutdown());
  for (const [agentId, euros] of [
    ["monday", 60],
    ["tuesday", 120],
  ] as const) {
    const agent = await runtime.agent("clerk", { agentId });
    await agent.start();
    const turn = agent.executeTurn("Pay ACME.");
    for await (const event of turn) {
      if (event.type !== "request.opened") continue;
      const { requestId } = event;
      await runtime.decide(requestId, { verdict: "edited", by: "Ada", arguments: { euros } });
    }
    await turn.result;
  }
  const feed = new Feed();
  feed.add({ stores, tenant: "default", runtime });
  const server = await serveFeed(feed);
  onTestFinished(() => server.close());
  return server.url;
}

describe.skipIf(!browserProgram)("the comparison of two runs", () => {
  test("distinguishes runs that used the same tools with other arguments and results", async () => {
    const url = await twoPayments();
    const page = await browser.newPage();
    await page.goto(`${url}&/compare/monday/tuesday`);
    const calls = page.locator(".compared-calls .differs");
    await expect.poll(() => calls.allTextContents()).toEqual(['{"euros":60}', "60 paid", '{"euros":120}', "120 paid"]);
    expect(await page.getByText("did the same").count()).toBe(0);
    await screenshot(page, "page-compare-payments");
    await page.goto(`${url}&/compare/monday/monday`);
    await page.getByText("Both runs did the same").waitFor();
  });

  test("opens from the list and shows differences first, in both colour schemes", async () => {
    const url = await twoRuns();
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByRole("link", { name: "Compare monday with another run" }).click();
    await page.getByText("Choose two runs above.").waitFor();
    await page.getByRole("combobox", { name: "Second run" }).selectOption("tuesday");
    await expect.poll(() => page.url()).toContain("#/compare/monday/tuesday");
    await page.getByRole("table", { name: "Both runs" }).waitFor();
    const names = page.locator(".compared-agent h2");
    await expect.poll(() => names.count()).toBe(2);
    expect((await names.allTextContents()).join()).toMatch(/lead.*reader/);
    await page.getByText("1 agent did the same in both runs: clerk").waitFor();
    await page.getByText("I read all of it, twice.").first().waitFor();
    await page.getByText("no such step").waitFor();
    await page.getByRole("button", { name: "1.1: prompts and answers" }).first().click();
    await page.getByText("Read a part.").first().waitFor();
    await screenshot(page, "page-compare-whole", { isWhole: true });
    const faults = await inBothSchemes(page, "page-compare");
    expect(faults.filter(({ impact }) => impact === "serious" || impact === "critical")).toEqual([]);
    await page.getByRole("button", { name: "Swap" }).click();
    await expect.poll(() => page.url()).toContain("#/compare/tuesday/monday");
    await page.getByRole("table", { name: "Both runs" }).getByRole("link", { name: "monday" }).click();
    await page.getByRole("treegrid", { name: "Agents" }).waitFor();
    await page.getByRole("link", { name: "Compare", exact: true }).click();
    await expect.poll(() => page.url()).toContain("#/compare/monday/");
  });
});
