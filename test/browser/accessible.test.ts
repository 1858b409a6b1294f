import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  createRuntime,
  defineAgent,
  defineTool,
  memoryStores,
  type Runtime,
  subagent,
} from "../../src/index.ts";
import { Feed, runtimeActor, serveFeed } from "../../src/inspector/index.ts";
import { type ScriptedReply, scriptedModel } from "../../src/testing/index.ts";
import {
  browserProgram,
  colourRules,
  faultsOf,
  openBrowser,
  screenshot,
  showView,
  type WatchedPage,
} from "../support/browser.ts";
import { payTool } from "../support/pay-tool.ts";
import { rows } from "../support/full.ts";

const browser = openBrowser();

const payments = ["ACME", "Bolt"].map((to) => ({ name: "pay", arguments: { to, euros: 60 } }));

/** A lead with a budget whose clerk asks for two approvals, after a call that failed. */
function team(): AgentDefinition {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({ at: z.string() }),
    effect: "none",
    execute: () => {
      throw new Error("the run is missing");
    },
  });
  const clerk = defineAgent({
    name: "clerk",
    tools: [look, payTool],
    model: scriptedModel([
      { toolCalls: [{ name: "look", arguments: { at: "the invoices" } }] },
      { text: "I will pay them.", toolCalls: payments },
      "Both are paid.",
    ]),
  });
  return defineAgent({
    name: "lead",
    budget: { maxTokens: 100_000, maxSteps: 10 },
    tools: [subagent(clerk)],
    model: scriptedModel(({ messages }): ScriptedReply | string =>
      messages.at(-1)?.role === "tool"
        ? "The month is closed."
        : { toolCalls: [{ name: "clerk", arguments: { input: "Pay the invoices." } }] },
    ),
  });
}

interface PageServer {
  readonly runtime: Runtime;
  readonly url: string;
}

/** The page over a run with two calls that wait for a person. */
async function servePage(): Promise<PageServer> {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [team()], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  const turn = agent.executeTurn("Close the month.");
  let open = 0;
  for await (const event of turn) {
    if (event.type === "request.opened") open += 1;
    if (open === payments.length) break;
  }
  const feed = new Feed({ run: "desk" });
  feed.add({ stores, tenant: "default", runtime, actor: runtimeActor(runtime, "the page") });
  const server = await serveFeed(feed, { mayAct: true });
  onTestFinished(() => server.close());
  return { runtime, url: server.url };
}

async function opened(url: string, options: Parameters<typeof browser.newPage>[0] = {}): Promise<WatchedPage> {
  const page = await browser.newPage(options);
  await page.goto(url);
  await page.getByRole("treegrid", { name: "Agents" }).waitFor();
  return page;
}

/** Each visually different state of the page, in an order in which a user can reach them. */
const states: readonly (readonly [name: string, show: (page: WatchedPage) => Promise<void>])[] = [
  ["timeline", (page) => page.getByText("waits for subagents").first().waitFor()],
  [
    "timeline-table",
    async (page) => {
      await page.getByRole("checkbox", { name: "as a table" }).check();
      await page.getByRole("table", { name: "Timeline" }).getByText("model call").first().waitFor();
    },
  ],
  [
    "timeline-bar",
    async (page) => {
      await page.getByRole("checkbox", { name: "as a table" }).uncheck();
      const label = await page.locator(".tree-row", { hasText: "clerk" }).boundingBox();
      const canvas = await page.locator(".timeline-bars canvas").boundingBox();
      if (!label || !canvas) throw new Error("the timeline is not shown");
      await page.mouse.click(canvas.x + canvas.width * 0.8, label.y + label.height / 3);
      await page.getByRole("complementary", { name: "Selected bar" }).waitFor();
    },
  ],
  [
    "summary",
    async (page) => {
      await showView(page, "Summary");
      await page.getByRole("region", { name: "What it waits for" }).getByText("approval of pay").waitFor();
    },
  ],
  [
    "chart",
    async (page) => {
      await showView(page, "Timeline");
      await page
        .getByRole("complementary", { name: "Selected bar" })
        .getByRole("button", { name: "Close", exact: true })
        .click();
      await showView(page, "Chart");
      await page.getByRole("region", { name: "Transitions of the turn" }).waitFor();
    },
  ],
  [
    "messages",
    async (page) => {
      await page.getByRole("treegrid", { name: "Agents" }).getByText("clerk").first().click();
      await showView(page, "Messages");
      await page.getByRole("log").getByText("I will pay them.").waitFor();
    },
  ],
  [
    "messages-call",
    async (page) => {
      await page.getByRole("log").getByRole("button", { name: "call", exact: true }).first().click();
      await page.getByRole("complementary", { name: "Tool call" }).getByText("Result").waitFor();
    },
  ],
  [
    "prompts",
    async (page) => {
      await page.getByRole("button", { name: "Close", exact: true }).last().click();
      await page.getByRole("button", { name: "Prompts as sent" }).click();
      await page.getByText("exact", { exact: true }).waitFor();
    },
  ],
  [
    "events",
    async (page) => {
      await page.getByRole("button", { name: "Conversation" }).click();
      await showView(page, "Events");
      await page.getByRole("table", { name: "Events" }).getByText("subagent spawned").first().waitFor();
    },
  ],
  [
    "events-entry",
    async (page) => {
      await page.getByRole("table", { name: "Events" }).getByText("subagent spawned").first().click();
      await page.getByRole("complementary", { name: "Event" }).waitFor();
    },
  ],
  [
    "budgets",
    async (page) => {
      await page
        .getByRole("complementary", { name: "Event" })
        .getByRole("button", { name: "Close", exact: true })
        .first()
        .click();
      await showView(page, "Budgets");
      await page.getByRole("img", { name: "Tokens used and reserved over time" }).waitFor();
    },
  ],
  [
    "requests",
    async (page) => {
      await showView(page, "Requests");
      await page.getByRole("button", { name: "Approve …", exact: true }).first().waitFor();
    },
  ],
  [
    "requests-edit",
    async (page) => {
      await page.getByRole("button", { name: "Edit and approve …" }).first().click();
      await page.getByRole("textbox", { name: "euros" }).waitFor();
    },
  ],
  [
    "talk",
    async (page) => {
      await showView(page, "Talk");
      await page.getByRole("textbox", { name: "Write to lead" }).waitFor();
    },
  ],
  [
    "forks",
    async (page) => {
      await showView(page, "Forks");
      await page.getByRole("button", { name: "Run the fork" }).waitFor();
    },
  ],
  [
    "keys",
    async (page) => {
      await page.getByRole("button", { name: "Keys" }).click();
      await page.getByRole("dialog", { name: "Keys" }).waitFor();
    },
  ],
  [
    "compare",
    async (page) => {
      await page.keyboard.press("Escape");
      await page.getByRole("banner").getByRole("link", { name: "Compare" }).click();
      await page.getByRole("main").waitFor();
    },
  ],
  [
    "runs",
    async (page) => {
      await page.getByRole("link", { name: "troupe" }).click();
      await page.getByText("so far").waitFor();
    },
  ],
  [
    "costs",
    async (page) => {
      await page.getByRole("link", { name: "costs" }).click();
      await page.getByRole("table", { name: "By day" }).waitFor();
    },
  ],
  [
    "workers",
    async (page) => {
      await page.getByRole("banner").getByRole("link", { name: "Workers" }).click();
      await page.getByRole("heading", { name: "Processes" }).waitFor();
    },
  ],
];

const widths = [390, 768, 1_024, 1_440];

describe.skipIf(!browserProgram)("accessibility", () => {
  test.each(["light", "dark"] as const)("no view has accessibility faults at any width, %s", async (colorScheme) => {
    const { url } = await servePage();
    const page = await opened(url, { colorScheme });
    for (const [index, [name, show]] of states.entries()) {
      await show(page);
      // The quick run checks the views at alternating widths, the full run at each width.
      for (const width of rows(widths, (_, place) => place === index % widths.length)) {
        await page.setViewportSize({ width, height: 800 });
        await screenshot(page, `accessible-${name}-${width}-${colorScheme}`);
        const faults = await faultsOf(page, colorScheme === "dark" ? colourRules : undefined);
        expect.soft(faults, `${name} at ${width} pixels`).toEqual([]);
      }
    }
  });

  test("a request is approved with three keys, the focus moves to the next one, and a held key confirms nothing", async () => {
    const { url, runtime } = await servePage();
    const page = await opened(url);
    const focused = page.locator(":focus");
    await page.keyboard.press("a");
    await expect.poll(() => focused.textContent()).toBe("Approve …");
    // Pressed repeatedly, as by a key that is held down.
    await page.keyboard.down("Enter");
    await page.keyboard.down("Enter");
    await page.keyboard.down("Enter");
    await page.keyboard.up("Enter");
    await expect.poll(() => focused.textContent()).toBe("Run pay with these arguments");
    await page.keyboard.press("Escape");
    await expect.poll(() => focused.textContent()).toBe("Approve …");
    expect(await page.getByRole("button", { name: "Cancel" }).count()).toBe(0);
    expect(await runtime.requests()).toHaveLength(2);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    await page.getByText("1 request decided or closed").waitFor();
    await expect.poll(() => focused.textContent()).toBe("Approve …");
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("a");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await expect.poll(() => focused.inputValue()).toContain("Bolt");
    await page.keyboard.press("Escape");
    await expect.poll(() => focused.textContent()).toBe("Edit and approve …");
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    await page.getByText("2 requests decided or closed").waitFor();
    await expect.poll(() => focused.getAttribute("aria-label")).toBe("Requests");
    await page.keyboard.press("a");
    await page.getByText("Nothing waits for a decision").waitFor();
  });
});
