import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  askUser,
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

const browser = openBrowser();
const hostile = "<img src=x onerror=alert(1)> \u202Eevil\u0007";
const price = { inputPerMillion: 2, outputPerMillion: 10 };

const pay = defineTool({
  name: "pay_invoice",
  description: "Pays an invoice.",
  parameters: z.object({ to: z.string(), amount: z.number().positive() }),
  effect: "once",
  needsApproval: true,
  execute: ({ to }) => `paid ${to}`,
});

function clerk(): AgentDefinition {
  return defineAgent({
    name: "clerk",
    price,
    tools: [pay],
    model: scriptedModel(({ messages }): ScriptedReply => {
      if (messages.at(-1)?.role === "tool") return { text: `It is done. ${hostile}` };
      return { text: "I will pay it.", toolCalls: [{ name: "pay_invoice", arguments: { to: "ACME", amount: 12 } }] };
    }),
  });
}

/** A lead whose clerk waits for an approval, and whose reader is done. */
function team(): AgentDefinition {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({ at: z.string() }),
    effect: "none",
    execute: ({ at }) => `seen ${at} ${hostile}`,
  });
  const reader = defineAgent({
    name: "reader",
    price,
    tools: [look],
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? "read" : { toolCalls: [{ name: "look", arguments: { at: "__proto__" } }] },
    ),
  });
  return defineAgent({
    name: "lead",
    price,
    budget: { maxTokens: 100_000, maxSteps: 10 },
    tools: [subagent(reader), subagent(clerk())],
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? "all done"
        : {
            toolCalls: [
              { name: "reader", arguments: { input: "this" } },
              { name: "clerk", arguments: { input: "pay ACME" } },
            ],
          },
    ),
  });
}

interface PageServer {
  readonly runtime: Runtime;
  readonly url: string;
  readonly watchUrl: string;
}

/** A runtime whose `desk` waits for a person, and the page over it. */
async function servePage(): Promise<PageServer> {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [team()], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  const turn = agent.executeTurn("Close the month.");
  for await (const event of turn) if (event.type === "request.opened") break;
  const feed = new Feed({ run: "desk" });
  feed.add({ stores, tenant: "default", runtime, actor: runtimeActor(runtime, "the page") });
  const server = await serveFeed(feed, { mayAct: true });
  onTestFinished(() => server.close());
  return { runtime, url: server.url, watchUrl: `${server.origin}/#token=${server.tokens.watch}` };
}

async function opened(url: string, options: Parameters<typeof browser.newPage>[0] = {}): Promise<WatchedPage> {
  const page = await browser.newPage(options);
  await page.goto(url);
  await page.getByRole("treegrid", { name: "Agents" }).waitFor();
  return page;
}

describe.skipIf(!browserProgram)("the page", () => {
  test.each(["light", "dark"] as const)("shows each view without accessibility faults, %s", async (colorScheme) => {
    const { url } = await servePage();
    const page = await opened(url, { colorScheme });
    expect(page.url()).not.toContain("token");
    const marks = {
      Summary: () => page.getByRole("region", { name: "What it waits for" }).getByText("approval of pay_invoice"),
      Timeline: () => page.getByText("waits for subagents").first(),
      Chart: () => page.getByRole("region", { name: "Transitions of the turn" }),
      Messages: () => page.getByText("Close the month.").first(),
      Events: () => page.getByRole("table", { name: "Events" }).getByText("subagent spawned").first(),
      Budgets: () => page.getByText("The journal adds up to what is stored."),
      Requests: () => page.getByRole("button", { name: "Approve …", exact: true }),
      Talk: () => page.getByRole("textbox", { name: "Write to lead" }),
    };
    for (const [name, mark] of Object.entries(marks)) {
      await showView(page, name);
      await mark().waitFor();
      await screenshot(page, `page-${name.toLowerCase()}-${colorScheme}`);
      const faults = await faultsOf(page, colorScheme === "dark" ? colourRules : undefined);
      expect({ name, faults }).toEqual({ name, faults: [] });
    }
  });

  test("fits screens of other widths, with a one-line header and runs in progress", async () => {
    const { url } = await servePage();
    const page = await opened(url);
    for (const width of [768, 1_120, 1_600]) {
      await page.setViewportSize({ width, height: 800 });
      const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      const { height = 0 } = (await page.locator("header.top").boundingBox()) ?? {};
      expect({ width, overflow, isOneLine: height < 50 }).toEqual({ width, overflow: 0, isOneLine: true });
    }
    await page.getByRole("link", { name: "troupe" }).click();
    await page.getByText("so far").waitFor();
  });

  test("fits a narrow screen", async () => {
    const { url } = await servePage();
    const page = await opened(url, { viewport: { width: 360, height: 740 } });
    for (const name of ["Timeline", "Chart", "Messages", "Events", "Budgets", "Requests", "Talk"]) {
      await showView(page, name);
      const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      expect({ name, overflow }).toEqual({ name, overflow: 0 });
      await screenshot(page, `page-${name.toLowerCase()}-narrow`);
    }
  });

  test("moves all views to an earlier time, and stays there", async () => {
    const { url, runtime } = await servePage();
    const page = await opened(url);
    const count = page.locator(".scrub-count");
    const whole = (await count.textContent()) ?? "";
    await page.keyboard.press("[");
    await page.keyboard.press("[");
    await expect.poll(() => count.textContent()).not.toBe(whole);
    await expect.poll(() => page.url()).toContain("at=");
    await page.getByRole("slider", { name: "Moment of the run" }).press("Home");
    await page.getByText("No agent has begun at this moment.").waitFor();
    const band = page.getByRole("status").filter({ hasText: /You look at 0\.000 s of \d/ });
    await band.getByRole("button", { name: "To the newest (L)" }).click();
    await expect.poll(() => band.count()).toBe(0);
    await page.getByRole("slider", { name: "Moment of the run" }).press("Home");
    await band.waitFor();
    await page.keyboard.press("]");
    await page.getByRole("treegrid", { name: "Agents" }).getByText("lead").waitFor();
    const [open] = await runtime.requests();
    await runtime.decide(open?.requestId ?? "", { verdict: "rejected", by: "somebody" });
    expect(await count.textContent()).toMatch(/^1 \//);
    await expect.poll(() => page.url()).toContain("at=1.1");
    await page.reload();
    await expect.poll(() => count.textContent()).toMatch(/^1 \//);
    expect(page.url()).toContain("at=1.1");
    await page.keyboard.press("l");
    await page.locator(".pill.done").first().waitFor();
  });

  test("approves after a confirmation, and the run continues", async () => {
    const { url } = await servePage();
    const page = await opened(url);
    await showView(page, "Requests");
    await page.getByRole("button", { name: "Approve …", exact: true }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Edit and approve …" }).click();
    await page.getByRole("button", { name: "Edit as JSON" }).click();
    const field = page.getByRole("textbox", { name: "Arguments as JSON" });
    await field.fill("{");
    await page.getByText("This is not valid JSON yet.").waitFor();
    await field.fill('{"to":"ACME","amount":-1}');
    await page.getByRole("button", { name: "Run pay_invoice with the edited arguments" }).click();
    await page.getByRole("alert").getByText("amount", { exact: true }).waitFor();
    // The browser logs the answer 400.
    page.errors.length = 0;
    await field.fill('{"to":"ACME","amount":11}');
    await page.getByRole("button", { name: "Run pay_invoice with the edited arguments" }).click();
    await page.getByText("approved with other arguments by the page").waitFor();
    const decided = page.getByRole("group", { name: "Arguments as decided" });
    expect(await decided.textContent()).toContain("11");
    expect(await page.getByRole("group", { name: "Arguments", exact: true }).textContent()).toContain("not run");
    await screenshot(page, "page-edited");
    await page.locator(".pill.done").first().waitFor();
    expect(await page.getByRole("button", { name: "Approve …", exact: true }).count()).toBe(0);
  });

  test("names the client whose decision came first", async () => {
    const { url, runtime } = await servePage();
    const page = await opened(url);
    await showView(page, "Requests");
    await page.getByRole("button", { name: "Approve …", exact: true }).click();
    const [open] = await runtime.requests();
    // Another client decides while the page's decision is on its way, and the page receives that decision first.
    await page.route("**/decision", async (route) => {
      await runtime.decide(open?.requestId ?? "", { verdict: "rejected", by: "Ada" });
      await page.getByText("rejected by Ada").waitFor();
      await route.continue();
    });
    await page.getByRole("button", { name: "Run pay_invoice with these arguments" }).click();
    const alert = page.getByRole("alert").filter({ hasText: "Ada was faster: rejected. Your decision was not taken." });
    await alert.waitFor();
    // The browser logs the refused call.
    page.errors.length = 0;
    await page.locator(".agent-head .pill.done").waitFor();
    // The notice is still there after all later updates, also in another view and back.
    await showView(page, "Events");
    await showView(page, "Requests");
    expect(await alert.count()).toBe(1);
    expect(await page.locator(".note.bad").filter({ hasText: "rejected by Ada" }).count()).toBe(1);
    await screenshot(page, "page-faster");
    await page.getByRole("button", { name: "OK" }).click();
    expect(await alert.count()).toBe(0);
    await page.getByRole("heading", { name: "1 request decided or closed" }).waitFor();
  });

  test("names another client that decides while a person is about to", async () => {
    const { url, runtime } = await servePage();
    const page = await opened(url);
    await showView(page, "Requests");
    await page.getByRole("button", { name: "Reject …" }).click();
    await page.getByRole("textbox", { name: "Reason, for the model" }).fill("Too much.");
    const [open] = await runtime.requests();
    await runtime.decide(open?.requestId ?? "", { verdict: "approved", by: "Ada" });
    await page.getByRole("alert").getByText("Ada was faster: approved.").waitFor();
    expect(await page.getByRole("button", { name: "Reject pay_invoice" }).count()).toBe(0);
    await page.getByRole("button", { name: "OK" }).click();
    await expect.poll(() => page.getByRole("alert").count()).toBe(0);
  });

  test("shows the answer to a question", async () => {
    const stores = memoryStores();
    const question = { name: "ask_user", arguments: { question: "Tea or coffee?", options: ["tea", "coffee"] } };
    const waiter = defineAgent({
      name: "waiter",
      tools: [askUser()],
      model: scriptedModel([{ toolCalls: [question] }, "It comes."]),
    });
    const runtime = await createRuntime({ agents: [waiter], stores });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent("waiter", { agentId: "table" });
    await agent.start();
    agent.executeTurn("A drink, please.");
    const feed = new Feed({ run: "table" });
    feed.add({ stores, tenant: "default", runtime, actor: runtimeActor(runtime, "the page") });
    const server = await serveFeed(feed, { mayAct: true });
    onTestFinished(() => server.close());
    const page = await opened(server.url);
    await showView(page, "Requests");
    await page.getByRole("button", { name: "Answer …" }).click();
    await page.getByRole("textbox", { name: "Answer" }).fill("Tea, with milk.");
    await page.getByRole("button", { name: "Send the answer" }).click();
    await page.getByRole("group", { name: "Answer" }).getByText("Tea, with milk.").waitFor();
    await page.getByText("answered by the page").waitFor();
    expect(await page.getByRole("button", { name: /^(Answer|Send)/ }).count()).toBe(0);
  });

  test("is read-only with the view token", async () => {
    const { watchUrl } = await servePage();
    const page = await opened(watchUrl);
    await showView(page, "Requests");
    await page.getByText("This link may only watch.").first().waitFor();
    expect(await page.getByRole("button", { name: /Approve|Pause|Abort/ }).count()).toBe(0);
  });

  test("copies a view-only link to the current location", async () => {
    const { url } = await servePage();
    const page = await opened(url);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await showView(page, "Events");
    await page.getByRole("button", { name: "Copy a view-only link" }).click();
    await page.getByText("View-only link copied").waitFor();
    const link = await page.evaluate<string>("navigator.clipboard.readText()");
    const other = await browser.newPage();
    await other.goto(link);
    await other.getByRole("table", { name: "Events" }).waitFor();
    expect(await other.getByRole("button", { name: /Approve|Pause|Abort|view-only/ }).count()).toBe(0);
  });

  test("can be used with the keyboard only", async () => {
    const { url } = await servePage();
    const page = await opened(url);
    await page.keyboard.press("/");
    await page.keyboard.type("reader");
    await expect.poll(() => page.getByRole("row").count()).toBe(2);
    await page.keyboard.press("Tab");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "reader" }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("5");
    await page.getByRole("table", { name: "Events" }).waitFor();
  });

  test("continues after its cursor after cuts, without gaps or duplicates", async () => {
    const { url, runtime } = await servePage();
    const page = await browser.newPage();
    let cuts = 0;
    await page.routeWebSocket(/\/feed$/, (socket) => {
      const server = socket.connectToServer();
      let messages = 0;
      server.onMessage((message) => {
        socket.send(message);
        messages += 1;
        if (messages < 2 || cuts >= 3) return;
        cuts += 1;
        void socket.close({ code: 1001, reason: "cut by the test" });
      });
    });
    await page.goto(url);
    await page.getByRole("treegrid", { name: "Agents" }).waitFor();
    const [open] = await runtime.requests();
    await runtime.decide(open?.requestId ?? "", { verdict: "approved", by: "somebody" });
    await page.locator(".pill.done").first().waitFor();
    expect(cuts).toBeGreaterThan(1);
    const [, whole] = /\/ (\d+)/.exec((await page.locator(".scrub-count").textContent()) ?? "") ?? [];
    const fresh = await opened(url);
    await fresh.locator(".pill.done").first().waitFor();
    expect(await fresh.locator(".scrub-count").textContent()).toContain(`/ ${whole}`);
  });

  test("shows hostile texts as texts", async () => {
    const { url, runtime } = await servePage();
    const [open] = await runtime.requests();
    await runtime.decide(open?.requestId ?? "", { verdict: "approved", by: "somebody" });
    const page = await opened(url);
    await page.getByRole("treegrid", { name: "Agents" }).getByText("clerk").click();
    await showView(page, "Messages");
    await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
    expect(await page.locator(".hidden-letter").allTextContents()).toEqual(["⟨U+202E⟩", "⟨U+0007⟩"]);
    expect(await page.locator("img").count()).toBe(0);
  });

  test("opens a conversation: a turn is written, answered and approved", async () => {
    const { url } = await servePage();
    const page = await opened(url);
    await page.getByRole("link", { name: "troupe" }).click();
    await page.getByRole("combobox", { name: "Agent", exact: true }).selectOption("clerk");
    await page.getByRole("textbox", { name: "Write to a new clerk" }).fill("Pay ACME, please.");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("button", { name: "Approve …", exact: true }).click();
    await page.getByRole("button", { name: "Run pay_invoice with these arguments" }).click();
    await page.getByText("It is done.").first().waitFor();
    expect(page.url()).toContain("view=talk");
    // The draft is kept while another view is open. At an earlier time the conversation is the one up to then.
    const next = page.getByRole("textbox", { name: "Write to clerk" });
    await next.fill("And Bolt?");
    await showView(page, "Messages");
    await showView(page, "Talk");
    expect(await next.inputValue()).toBe("And Bolt?");
    const conversation = page.getByRole("log", { name: "Conversation" });
    await conversation.getByText("It is done.").first().waitFor();
    await page.getByRole("slider", { name: "Moment of the run" }).press("Home");
    await page.getByText("You look at the past; requests").waitFor();
    await expect.poll(() => conversation.getByText("It is done.").count()).toBe(0);
    await page.keyboard.press("l");
    await conversation.getByText("It is done.").first().waitFor();
  });
});
