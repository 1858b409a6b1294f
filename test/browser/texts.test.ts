import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { type AgentDefinition, createRuntime, defineAgent, defineTool, type LanguageModel } from "../../src/index.ts";
import { Feed, runtimeActor, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { axe, browserProgram, openBrowser, screenshot, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();

const report = `# The month

It was **good**, and *quiet*. See [the bank](https://bank.example/login?next=/a) or https://news.example/today.
Not [this one](javascript:alert(1)).

1. Sales rose
   - in *March*
2. Costs fell

| Month | Euros |
|---|---:|
| March | 1,200 |

> Nothing else.

\`\`\`ts
const total = 1 * 2 * 3;
\`\`\`

![a chart](https://pictures.example/chart.png)`;

/** Text that is easily lost or changed by rendering. */
const forms = `# Closed #

AT&amp;T <b>not bold</b> \\*no emphasis\\* \`\` a\`b \`\` ~~gone~~ http://localhost:8080/x?y=1. [nowhere]

> first
> second
> \`\`\`
> code

- one
  goes on

7. seven

| a | b |
|---|---|
|   | \`x\` |

${">".repeat(12)} deep`;

/** Longer than the limit for rendering Markdown at once. */
const chapters = Array.from({ length: 400 }, (_, index) => `## Chapter ${index}\n\n${"word ".repeat(30)}**end**`).join(
  "\n\n",
);

/** A ledger of this many lines, with a name in one of the last. */
const ledger = `${Array.from({ length: 400 }, (_, index) => `line ${index} of the ledger`).join("\n")}\npaid to Ottokar\n`;
const invoice = { to: "ACME", lines: [{ what: "paper", euros: 12 }], isPaid: false };
const stored = JSON.stringify(invoice);

/** An agent that reads an invoice and a ledger, and reports. */
function reporter(model: LanguageModel): AgentDefinition {
  const read = defineTool({
    name: "read",
    description: "Reads.",
    parameters: z.object({ what: z.enum(["invoice", "ledger"]) }),
    effect: "none",
    execute: ({ what }) => (what === "ledger" ? ledger : stored),
  });
  return defineAgent({ name: "reporter", tools: [read], model });
}

async function place(model: LanguageModel) {
  const runtime = await createRuntime({ agents: [reporter(model)] });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("reporter", { agentId: "desk" });
  await agent.start();
  const feed = new Feed({ run: "desk" });
  const { stores, tenant } = runtime;
  feed.add({ stores, tenant, runtime, actor: runtimeActor(runtime, "the page") });
  const server = await serveFeed(feed, { mayAct: true });
  onTestFinished(() => server.close());
  return { agent, url: server.url };
}

const scripted = (): LanguageModel =>
  scriptedModel([
    { text: "I look.", toolCalls: [{ name: "read", arguments: { what: "invoice" } }] },
    { toolCalls: [{ name: "read", arguments: { what: "ledger" } }] },
    report,
  ]);

async function opened(url: string, view: string, options: Parameters<typeof browser.newPage>[0] = {}) {
  const page = await browser.newPage(options);
  await page.goto(`${url}&/run/desk?view=${view}`);
  await page.getByRole("treegrid", { name: "Agents" }).waitFor();
  return page;
}

const cardOf = (page: WatchedPage, text: string) =>
  page.getByRole("log").getByRole("article").filter({ hasText: text }).first();

describe.skipIf(!browserProgram)("texts", () => {
  test("in Markdown are rendered, with the real address of a link, or shown as stored", async () => {
    const { agent, url } = await place(scripted());
    await agent.executeTurn("Report.").result;
    const page = await opened(url, "messages");
    const card = cardOf(page, "The month");
    await card.locator(".heading", { hasText: "The month" }).waitFor();
    expect(await card.locator("b", { hasText: "good" }).count()).toBe(1);
    expect(await card.locator("em").allTextContents()).toEqual(["quiet", "March"]);
    expect(await card.locator("ol > li").count()).toBe(2);
    expect(await card.locator("ol ul > li").textContent()).toBe("in March");
    expect(await card.getByRole("cell").allTextContents()).toEqual(["March", "1,200"]);
    expect(await card.locator("blockquote").textContent()).toBe("Nothing else.");
    expect(await card.locator(".code-block .long-text").textContent()).toBe("const total = 1 * 2 * 3;");
    const links = card.getByRole("link");
    expect(await links.allTextContents()).toEqual(["the bank", "https://news.example/today"]);
    expect(await links.first().getAttribute("href")).toBe("https://bank.example/login?next=/a");
    expect(await links.first().getAttribute("rel")).toContain("noopener");
    await card.getByText("https://bank.example/login?next=/a", { exact: true }).waitFor();
    await card.getByText("[this one](javascript:alert(1))").waitFor();
    await card.getByText("image a chart at https://pictures.example/chart.png, not loaded").waitFor();
    for (const width of [390, 1_024, 1_440]) {
      await page.setViewportSize({ width, height: 900 });
      await screenshot(page, `texts-${width}`);
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
    }
    expect((await axe(page)).filter(({ impact }) => impact !== "minor")).toEqual([]);
    await card.getByRole("button", { name: "raw" }).click();
    expect(await card.locator(".long-text").textContent()).toBe(report);
    expect(await card.locator("a, table, .heading").count()).toBe(0);
  });

  test("in Markdown keep every letter, and their form in lists, quotes and tables", async () => {
    const { agent, url } = await place(scriptedModel([forms]));
    await agent.executeTurn("Report.").result;
    const page = await opened(url, "messages");
    const card = cardOf(page, "Closed");
    expect(await card.locator(".heading").textContent()).toBe("Closed");
    await card.getByText("AT&amp;T <b>not bold</b> *no emphasis*").waitFor();
    await card.getByText("[nowhere]").waitFor();
    expect(await card.locator("p > code").first().textContent()).toBe("a`b");
    expect(await card.locator("del").textContent()).toBe("gone");
    expect(await card.getByRole("link").getAttribute("href")).toBe("http://localhost:8080/x?y=1");
    expect(await card.locator("blockquote p").first().textContent()).toBe("first\nsecond");
    expect(await card.locator("blockquote .long-text").first().textContent()).toBe("code");
    expect(await card.locator("ul > li").textContent()).toBe("one\ngoes on");
    expect(await card.locator("ol").getAttribute("start")).toBe("7");
    expect(await card.getByRole("cell").allTextContents()).toEqual(["", "x"]);
    // Quotes deeper than eight levels are text with their markup.
    await card.getByText(">>>> deep", { exact: true }).waitFor();
  });

  test("in Markdown that are long are cut at the end of a block and can be read on", async () => {
    const { agent, url } = await place(scriptedModel([chapters]));
    await agent.executeTurn("Report.").result;
    const page = await opened(url, "messages");
    const card = cardOf(page, "Chapter 0");
    const headings = card.locator(".heading");
    await expect.poll(() => headings.count()).toBeGreaterThan(50);
    const read = await headings.count();
    expect(read).toBeLessThan(200);
    await card.getByRole("button", { name: /more characters/ }).click();
    await expect.poll(() => headings.count()).toBeGreaterThan(read);
    expect(await headings.allTextContents()).toEqual(
      Array.from({ length: await headings.count() }, (_, index) => `Chapter ${index}`),
    );
  });

  test("that are JSON are printed with foldable parts, and copied as they were written", async () => {
    const { agent, url } = await place(scripted());
    await agent.executeTurn("Report.").result;
    const page = await opened(url, "messages");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const card = cardOf(page, "ACME");
    await card.getByRole("button", { name: /lines/ }).click();
    expect(await card.getByText("paper").count()).toBe(0);
    await card.getByRole("button", { name: /lines/ }).click();
    await card.getByText("paper").waitFor();
    await card.getByRole("button", { name: "Copy text" }).click();
    await page.getByText("Text copied").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(stored);
    await card.getByRole("button", { name: "raw" }).click();
    expect(await card.locator(".long-text").textContent()).toBe(stored);
  });

  test("that are long are folded with their size until the user unfolds them or finds something in them", async () => {
    const { agent, url } = await place(scripted());
    await agent.executeTurn("Report.").result;
    const page = await opened(url, "messages");
    const card = cardOf(page, "line 0 of");
    expect(await card.getByText("line 100 of").count()).toBe(0);
    const fold = card.getByRole("button", {
      name: `Show all: ${ledger.length.toLocaleString("en")} characters in 402 lines`,
    });
    await fold.click();
    expect(await card.locator(".long-text").textContent()).toBe(ledger);
    await card.getByRole("button", { name: "Fold" }).click();
    expect(await card.getByText("line 100 of").count()).toBe(0);
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Events" }).click();
    await page.getByRole("searchbox", { name: "Filter events" }).fill("Ottokar");
    await page.getByRole("button", { name: "Search contents" }).click();
    await page.locator(".content-search .hit").click();
    const found = page.getByRole("log").locator("mark", { hasText: "Ottokar" });
    await found.waitFor();
    await screenshot(page, "texts-found");
    const { y = 0 } = (await found.boundingBox()) ?? {};
    expect(y).toBeGreaterThan(0);
    expect(y).toBeLessThan(800);
  });

  test.each(["messages", "talk"])(
    "that are still streamed keep their form while their markup arrives, in %s",
    async (view) => {
      const answer = Promise.withResolvers<string>();
      onTestFinished(() => answer.resolve(""));
      let write: ((text: string) => void) | undefined;
      const model = scriptedModel(async () => await answer.promise);
      const dictated: LanguageModel = {
        ...model,
        generate: (request, options) => {
          write = (text) => options.onDelta?.({ type: "text", text });
          return model.generate(request, { ...options, onDelta: undefined });
        },
      };
      const { agent, url } = await place(dictated);
      const page = await opened(url, view);
      const turn = agent.executeTurn("Report.");
      await page.locator(".agent-head .pill.thinking").waitFor();
      const text = page.getByRole("log").locator(".shown-text > .markdown").last();
      const said = async (part: string, seen: string): Promise<void> => {
        write?.(part);
        await expect.poll(async () => (await text.innerText()).replaceAll(/\n+/g, "\n")).toBe(seen);
      };
      await said("It is **ver", "It is ver");
      expect(await text.locator("b").textContent()).toBe("ver");
      await said("y good*", "It is very good");
      await said("*. See [the bank](htt", "It is very good. See the bank");
      await said("ps://bank.example) now.\n\n| a", "It is very good. See the bank https://bank.example/ now.\na");
      expect(await text.locator("th").count()).toBe(1);
      await said(" | b |\n|--", "It is very good. See the bank https://bank.example/ now.\na\tb");
      await said("-|---|\n| 1", "It is very good. See the bank https://bank.example/ now.\na\tb\n1");
      await said(" | 2 |\n\n-", "It is very good. See the bank https://bank.example/ now.\na\tb\n1\t2");
      await said(" one\n\n``", "It is very good. See the bank https://bank.example/ now.\na\tb\n1\t2\none");
      await said("`js\nlet a", "It is very good. See the bank https://bank.example/ now.\na\tb\n1\t2\none\njs\nlet a");
      await screenshot(page, `texts-written-${view}`);
      write?.(`\n\`\`\`\n${"word ".repeat(5_000)}the end`);
      await page.getByRole("log").getByText("the end").waitFor();
      expect(await text.locator("th").count()).toBe(2);
      answer.resolve("Done.");
      await turn.result;
    },
  );
});
