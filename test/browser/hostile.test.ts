import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, type LanguageModel, memoryStores } from "../../src/index.ts";
import { Feed, pageOfRun, runtimeActor, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { browserProgram, openBrowser, screenshot, type WatchedPage } from "../support/browser.ts";
import { servePages } from "../support/large-run.ts";

const browser = openBrowser();

const markup = `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script><svg onload="window.hacked=3">`;
const link = `[press](javascript:window.hacked=4) {{constructor.constructor("window.hacked=5")()}}`;
const hidden = "\u202Egnp.exe \u2066x\u2069 \u0007\u001B[31mred";
/** Markdown that would run, load or mislead. */
const links =
  "[a](javascript:window.hacked=6) [b](data:text/html,<script>window.hacked=7</script>) [c](//evil.example) <javascript:window.hacked=8> " +
  "![d](https://evil.example/pixel.png) ![e](data:image/svg+xml,<svg/onload=window.hacked=9>) [https://bank.example](https://evil.example/\u202E) " +
  '[f](https://evil.example/" onmouseover="window.hacked=10) [g]( https://\u0430pple.example "t")';
const hostile = `${markup} ${link} ${links} ${hidden} __proto__ constructor`;
const deep = `${'{"at":'.repeat(100_000)}1${"}".repeat(100_000)}`;
const polluting = `{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}},"at":"x"}`;
const long = `${hostile}${"wide text <b>x</b> ".repeat(270_000)}the end of five megabytes`;

/** A model whose texts and calls are those of an attacker. */
function hostileModel(): LanguageModel {
  const asked = [
    JSON.stringify({ at: hostile, ["<b>key</b>\u202E"]: [hostile] }),
    polluting,
    JSON.stringify({ at: "y" }),
    deep,
  ];
  return {
    name: markup.slice(0, 60),
    provider: "test",
    countPromptTokens: () => 1,
    async generate({ messages }) {
      const step = messages.filter(({ role }) => role === "assistant").length;
      const wanted = asked[step];
      const toolCalls = wanted === undefined ? [] : [{ id: `c${step}`, name: "look", arguments: wanted }];
      return {
        content: wanted === undefined ? long : hostile,
        toolCalls,
        usage: { inputTokens: 1, outputTokens: 1 },
        finishReason: wanted === undefined ? ("stop" as const) : ("tool_calls" as const),
        model: hostile,
      };
    },
  };
}

interface PageServer {
  readonly feed: Feed;
  readonly url: string;
}

async function servePage(): Promise<PageServer> {
  const look = defineTool({
    name: "look",
    description: hostile,
    parameters: z.looseObject({ at: z.string() }),
    effect: "none",
    execute: () => hostile,
  });
  const ask = defineTool({
    name: "ask",
    description: "Asks.",
    parameters: z.object({}),
    needsApproval: true,
    execute: () => "x",
  });
  const desk = defineAgent({ name: "lead", tools: [look, ask], instructions: hostile, model: hostileModel() });
  const runtime = await createRuntime({ agents: [desk], stores: memoryStores() });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  const { text } = await agent.executeTurn(hostile).result;
  expect(text.length).toBeGreaterThan(5_000_000);
  const other = await runtime.agent("lead", { agentId: "other" });
  await other.start();
  await other.executeTurn(`Something else. ${hostile}`).result;
  const feed = new Feed({ run: "desk" });
  feed.add({ stores: runtime.stores, tenant: "default", runtime, actor: runtimeActor(runtime, hostile) });
  const server = await serveFeed(feed, { mayAct: true });
  onTestFinished(() => server.close());
  return { feed, url: server.url };
}

async function expectHarmless(page: WatchedPage, where: string): Promise<void> {
  const found = await page.evaluate(`({
    hacked: window.hacked,
    polluted: ({}).polluted,
    strange: [...document.querySelectorAll("img, iframe, object, embed, a[href^='javascript'], script:not([src])")].length,
    handlers: [...document.querySelectorAll("*")].filter((one) => one.getAttributeNames().some((name) => name.startsWith("on"))).length,
    loads: document.querySelectorAll("[src^='http'], link[href^='http']").length - document.querySelectorAll("head [src], head link").length > 0,
    targets: [...document.querySelectorAll("a[target]")].every((one) => /^https?:$/.test(one.protocol) && /noopener/.test(one.rel)),
    raw: /[\\u202A-\\u202E\\u2066-\\u2069\\u0007\\u001B]/.test(document.body.textContent),
  })`);
  expect({ where, ...(found as object) }).toEqual({
    where,
    strange: 0,
    handlers: 0,
    loads: false,
    targets: true,
    raw: false,
  });
}

describe.skipIf(!browserProgram)("hostile texts on the page", () => {
  test("markup, scripts, __proto__, bidi, control characters, 5 MB and 100,000 levels are shown as text in each view", async () => {
    const { url } = await servePage();
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByRole("treegrid", { name: "Agents" }).waitFor();
    for (const name of ["Timeline", "Chart", "Messages", "Events", "Budgets", "Requests", "Talk"]) {
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name }).click();
      await expect.poll(() => page.url()).toContain(`view=${name.toLowerCase()}`);
      await page.getByRole("treegrid", { name: "Agents" }).getByText("lead").click();
      if (name === "Messages") await page.getByText(`<img src=x onerror="window.hacked=1">`).first().waitFor();
      await expectHarmless(page, name);
    }
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Messages" }).click();
    await page.getByText("⟨U+202E⟩").first().waitFor();
    await page.evaluate(`for (const one of document.querySelectorAll(".view details")) one.open = true`);
    await expectHarmless(page, "opened messages");
    await screenshot(page, "page-hostile");
    // The page still works.
    await page.keyboard.press("5");
    await page.getByRole("table", { name: "Events" }).waitFor();
    await page.reload();
    await page.getByRole("table", { name: "Events" }).waitFor();
    await expectHarmless(page, "after a reload");
    await page.getByRole("link", { name: "troupe" }).click();
    await page.getByRole("link", { name: "Compare other with another run" }).click();
    await page.getByRole("combobox", { name: "Second run" }).selectOption("desk");
    await page
      .getByRole("button", { name: /prompts and answers/ })
      .first()
      .click();
    await page.getByText(`<img src=x onerror="window.hacked=1">`).first().waitFor();
    await expectHarmless(page, "the comparison");
  });

  test("Markdown links lead to their shown addresses, and megabytes of unclosed markup do not block the page", async () => {
    const marks = [">", "> ", "[", "![", "*a ", "`a``b", "- ", "[a](", "|a", "**a_b~~"].map((mark) =>
      mark.repeat(Math.ceil(1_000_000 / mark.length)),
    );
    const model = scriptedModel([...marks, links].map((text) => text));
    const runtime = await createRuntime({ agents: [defineAgent({ name: "lead", model })], stores: memoryStores() });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent("lead", { agentId: "desk" });
    await agent.start();
    for (const _ of [...marks, links]) await agent.executeTurn("Go on.").result;
    const feed = new Feed({ run: "desk" });
    feed.add({ stores: runtime.stores, tenant: "default", runtime });
    const server = await serveFeed(feed);
    onTestFinished(() => server.close());
    const page = await browser.newPage();
    await page.goto(`${server.url}&/run/desk?view=messages`);
    const said = page.getByRole("article").filter({ hasText: "image d at" });
    await said.waitFor();
    const addresses = await page.evaluate("[...document.querySelectorAll('.markdown a')].map(({ href }) => href)");
    expect(addresses).toEqual([
      "https://evil.example/%E2%80%AE",
      "https://evil.example/",
      "https://xn--pple-43d.example/",
    ]);
    await said.getByText("https://evil.example/%E2%80%AE", { exact: true }).waitFor();
    await said.getByText("https://xn--pple-43d.example/", { exact: true }).waitFor();
    await expectHarmless(page, "Markdown");
    expect(await page.getByRole("article").count()).toBe(22);
    await screenshot(page, "page-hostile-markdown");
    await page.keyboard.press("5");
    await page.getByRole("table", { name: "Events" }).waitFor();
  });

  test("are shown as text in an exported page, which blocks all other resources", async () => {
    const { feed } = await servePage();
    const server = await servePages({ "/": await pageOfRun(feed, "desk") });
    onTestFinished(() => server.close());
    const page = await browser.newPage();
    await page.goto(server.origin);
    await page.getByRole("treegrid", { name: "Agents" }).waitFor();
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Messages" }).click();
    await page.getByText(`<img src=x onerror="window.hacked=1">`).first().waitFor();
    expect(await page.locator("script:not([src])").count()).toBe(2);
    await page.evaluate(`for (const one of document.querySelectorAll("script:not([src])")) one.remove()`);
    await expectHarmless(page, "an exported page");
    // The policy of the file itself: it blocks scripts and requests that a text might contain.
    const refused = await page.evaluate(`new Promise((resolve) => {
      document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => resolve(effectiveDirective));
      fetch("/").catch(() => undefined);
    })`);
    expect(refused).toBe("connect-src");
    // The browser logs what it blocked; a closed page logs nothing more.
    await page.close();
    await page.context().close();
    page.errors.length = 0;
  });

  test("the feed returns each of them as it is stored", async () => {
    const { origin, hash } = new URL((await servePage()).url);
    const headers = { authorization: `Bearer ${hash.slice("#token=".length)}` };
    const asked = async (path: string): Promise<Response> => await fetch(`${origin}${path}`, { headers });
    const { items } = (await (await asked("/api/runs/desk/agents/desk/messages")).json()) as {
      items: { message: { content: string }; isCut: boolean }[];
    };
    // A message of megabytes is cut, and marked as cut.
    const { message, isCut } = items.at(-1) ?? { message: { content: "" }, isCut: false };
    expect([isCut, message.content.length > 100_000, message.content.startsWith(hostile)]).toEqual([true, true, true]);
    const call = (await (await asked(`/api/runs/desk/calls/${encodeURIComponent("desk#1:4:0")}`)).json()) as {
      asked: string;
    };
    expect(call.asked.length).toBeGreaterThan(100_000);
    for (const path of ["/prompts", "/machines", "/transitions"]) {
      expect((await asked(`/api/runs/desk/agents/desk${path}`)).status).toBe(200);
    }
    expect((await asked("/api/runs/desk/export")).status).toBe(200);
    for (const text of [hostile.slice(0, 500), "__proto__", deep.slice(0, 300)]) {
      expect((await asked(`/api/runs/desk/search?text=${encodeURIComponent(text)}`)).status).toBe(200);
    }
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});
