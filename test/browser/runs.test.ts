import { describe, expect, onTestFinished, test } from "vitest";
import { type AgentDefinition, createRuntime, defineAgent, type Runtime, subagent } from "../../src/index.ts";
import { Feed, runtimeActor, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { browserProgram, inBothSchemes, openBrowser } from "../support/browser.ts";

const browser = openBrowser();

const price = { inputPerMillion: 2, outputPerMillion: 10 };

/** A lead with a price whose helper has none; the lead of a run whose task contains "break down" fails. */
function team(release: Promise<void>): AgentDefinition {
  const helper = defineAgent({ name: "helper", model: scriptedModel("helped") });
  return defineAgent({
    name: "lead",
    price,
    tools: [subagent(helper)],
    budget: { maxSteps: 4 },
    model: scriptedModel(async ({ messages }) => {
      const text = JSON.stringify(messages);
      if (text.includes("slowly")) await release;
      if (text.includes("break down")) throw new Error("The model broke down.");
      return messages.at(-1)?.role === "tool"
        ? "done"
        : { toolCalls: [{ name: "helper", arguments: { input: "help" } }] };
    }),
  });
}

async function served(runtime: Runtime): Promise<string> {
  const feed = new Feed();
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime, actor: runtimeActor(runtime, "the page") });
  const server = await serveFeed(feed, { mayAct: true });
  onTestFinished(() => server.close());
  return server.url;
}

describe.skipIf(!browserProgram)("the list of runs", () => {
  test("shows the task, the agents, failures, the cost and the budget of each run", async () => {
    const held = Promise.withResolvers<void>();
    const runtime = await createRuntime({ agents: [team(held.promise)] });
    onTestFinished(() => runtime.shutdown());
    onTestFinished(() => held.resolve());
    for (const [agentId, text] of [
      ["plain", "Write the report of May."],
      ["broken", "Please break down."],
    ] as const) {
      const agent = await runtime.agent("lead", { agentId });
      await agent.start();
      await agent.executeTurn(text).result.catch(() => undefined);
    }
    const slow = await runtime.agent("lead", { agentId: "slow" });
    await slow.start();
    const turn = slow.executeTurn("Write slowly.");
    turn.result.catch(() => undefined);
    for await (const event of turn) if (event.type === "turn.started") break;
    const page = await browser.newPage();
    await page.goto(await served(runtime));
    const row = (id: string) => page.getByRole("row").filter({ has: page.getByRole("link", { name: id }) });
    await row("plain").getByText("Write the report of May.").waitFor();
    const plain = (await row("plain").textContent()) ?? "";
    expect(plain).toContain("2 of 4 steps");
    expect(plain).toMatch(/≥ \$0\.\d+/);
    await row("broken").getByText("1 failed").waitFor();
    await row("slow").getByText("so far").waitFor();
    expect(await page.getByRole("status", { name: "Sums" }).textContent()).toMatch(/^3 runs · 1 failed · 4 agents · /);
    expect((await inBothSchemes(page, "page-runs")).filter(({ impact }) => impact === "serious")).toEqual([]);
    const state = page.getByRole("combobox", { name: "State" });
    for (const [words, ids] of [
      ["Failed", ["broken"]],
      ["Running", ["slow"]],
      ["Completed", ["plain"]],
    ] as const) {
      await state.selectOption({ label: words });
      const names = page.locator(".run-table tbody code[title]");
      await expect.poll(() => names.allTextContents()).toEqual(ids);
    }
    await state.selectOption({ label: "All states" });
    for (const width of [390, 1_024]) {
      await page.setViewportSize({ width, height: 800 });
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
      const cut = await page.evaluate(
        "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.runs'))",
      );
      expect({ width, cut }).toEqual({ width, cut: 0 });
    }
  });

  test("names three commands to try while the list is empty", async () => {
    const runtime = await createRuntime({ agents: [team(Promise.resolve())] });
    onTestFinished(() => runtime.shutdown());
    const page = await browser.newPage();
    await page.goto(await served(runtime));
    await page.getByRole("region", { name: "First steps" }).getByText("npx troupe chat ./my-agent.ts").waitFor();
    expect(await page.getByRole("region", { name: "First steps" }).getByRole("listitem").count()).toBe(3);
  });

  test("disables actions when the runtime is shut down", async () => {
    const runtime = await createRuntime({ agents: [team(Promise.resolve())] });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent("lead", { agentId: "plain" });
    await agent.start();
    await agent.executeTurn("Write the report of May.").result;
    const page = await browser.newPage();
    await page.goto(await served(runtime));
    await page.getByRole("region", { name: "New conversation" }).waitFor();
    await runtime.shutdown();
    await page.getByRole("region", { name: "New conversation" }).waitFor({ state: "detached" });
    await page.getByRole("link", { name: "plain" }).first().click();
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Talk" }).click();
    await page
      .getByText("You can talk only on the page of the process that runs the agents, while it works.")
      .waitFor();
    expect(await page.getByRole("button", { name: /Pause|Send/ }).count()).toBe(0);
  });
});
