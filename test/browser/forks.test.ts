import { describe, expect, onTestFinished, test } from "vitest";
import { type AgentDefinition, createRuntime, memoryStores, type Runtime, type Stores } from "../../src/index.ts";
import { Feed, runtimeActor, serveFeed } from "../../src/inspector/index.ts";
import { browserProgram, inBothSchemes, openBrowser, type WatchedPage } from "../support/browser.ts";
import { type Shop, shopOf } from "../inspector/fork-shop.ts";

const browser = openBrowser();

interface Served {
  readonly runtime: Runtime;
  readonly stores: Stores;
  readonly url: string;
  readonly watchUrl: string;
}

/** A run of the shop, shown by a process with these definitions. */
async function served(shop: Shop, now: AgentDefinition = shop.desk): Promise<Served> {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [shop.desk], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("desk", { agentId: "shop" });
  await agent.start();
  await agent.executeTurn("Refund order 17.").result;
  const shown = now === shop.desk ? runtime : await createRuntime({ agents: [now], stores, recovers: "own" });
  const feed = new Feed();
  feed.add({ stores, tenant: "default", runtime: shown, actor: runtimeActor(shown, "mara") });
  const { url, watchUrl, close } = await serveFeed(feed, { mayAct: true });
  onTestFinished(close);
  return { runtime, stores, url, watchUrl };
}

async function opened(url: string, place: string): Promise<WatchedPage> {
  const page = await browser.newPage();
  await page.goto(`${url}&${place}`);
  return page;
}

const theForm = (page: WatchedPage) => page.getByRole("region", { name: "Forks and replay" });

async function sent(page: WatchedPage): Promise<string> {
  await page.getByRole("button", { name: "Run the fork" }).click();
  await page.getByRole("table", { name: "Since the fork" }).waitFor();
  return decodeURIComponent(page.url().split("/").at(-1) ?? "");
}

describe.skipIf(!browserProgram)("forks in the inspector", () => {
  test("forks from a step with changes, and shows both runs side by side", async () => {
    const shop = shopOf();
    const { url, runtime } = await served(shop);
    const page = await opened(url, "/run/shop?view=messages");
    await page.getByRole("button", { name: "Prompts as sent" }).click();
    await page.getByRole("button", { name: /^step 2/ }).click();
    await page.getByRole("button", { name: "Fork from here" }).click();
    const form = theForm(page);
    await expect.poll(() => form.getByLabel("Point of the fork").inputValue()).toBe("1:2");
    expect(await form.getByLabel("Instructions").inputValue()).toBe("You serve the shop.");
    expect(await form.getByLabel("Prompt").inputValue()).toBe("Refund order 17.");
    const result = form.getByLabel("Result of look");
    expect(await result.inputValue()).toBe('{"state":"broken"}');

    await result.fill('{"state":');
    await form.getByRole("alert").getByText("The result was JSON, and the changed text is not").waitFor();
    expect(await form.getByRole("button", { name: "Run the fork" }).isDisabled()).toBe(true);
    await result.fill('{"state":"fine"}');
    await form.getByLabel("Instructions").fill("You are brief.");
    await form.getByLabel("Prompt").fill("Refund order 17, please.");
    await form.getByLabel("Model of the root agent").selectOption("second-model");
    await form.getByLabel("Message to add here").fill("Be quick.");
    await form.getByLabel("Steps").fill("7");
    const forkId = await sent(page);

    await page.getByText("is a fork of").waitFor();
    const since = page.getByRole("table", { name: "Since the fork" }).getByRole("row");
    await expect
      .poll(async () => (await since.nth(2).getByRole("cell").allTextContents()).slice(0, 2))
      .toEqual(["2", "1"]);
    expect((await since.nth(1).getByRole("cell").allTextContents()).slice(0, 2)).toEqual(["2", "1"]);
    await page.locator(".compared-steps .differs").getByText("second-model").first().waitFor();
    expect(shop.paid).toEqual(["17"]);
    const told = JSON.stringify((await (await runtime.find(forkId)).getMessages()).at(-1)?.content);
    for (const text of ["second-model", "fine", "You are brief.", "please", "Be quick."]) expect(told).toContain(text);
    expect(await inBothSchemes(page, "forks-compare")).toEqual([]);
  });

  test("shows origins and forks of forks, also in the list of runs", async () => {
    const { url, watchUrl } = await served(shopOf());
    const one = await sent(await opened(url, "/run/shop?view=forks&fork=1:3"));
    const deep = await sent(await opened(url, `/run/${one}?view=forks&fork=1:2`));
    const page = await opened(watchUrl, `/run/${deep}?view=forks`);
    const family = theForm(page).locator(".family").first();
    await family.getByText("this run").waitFor();
    expect(await family.locator(".family .family").getByRole("link").first().getAttribute("aria-current")).toBe("page");
    expect(await family.locator(".family-row").count()).toBe(3);
    const head = page.locator(".agent-head");
    await head.getByText("before turn 1, step 2").waitFor();
    await head.getByRole("link", { name: `Compare ${deep} with its origin` }).waitFor();
    await theForm(page).getByText("This link may only watch.").first().waitFor();
    expect(await theForm(page).getByRole("button").count()).toBe(0);
    expect(await inBothSchemes(page, "forks-family")).toEqual([]);
    await page.getByRole("link", { name: "troupe" }).click();
    await page.getByRole("link", { name: "1 fork" }).first().waitFor();
    expect(await page.locator(".run-table .fork-origin").count()).toBe(2);
    await page.getByRole("link", { name: "1 fork" }).last().click();
    await expect.poll(() => page.url()).toContain("/run/shop");
  });

  test("shows a deleted origin as no longer stored", async () => {
    const { url, stores } = await served(shopOf());
    const page = await opened(url, "/run/shop?view=forks&fork=1:3");
    const forkId = await sent(page);
    const elsewhere = memoryStores();
    const tree = await stores.exportTree("default", forkId);
    if (tree) await elsewhere.importTree(tree, forkId, { replaces: "absent" });
    const feed = new Feed();
    feed.add({ stores: elsewhere, tenant: "default" });
    const copy = await serveFeed(feed, { mayAct: true });
    onTestFinished(() => copy.close());
    const other = await opened(copy.url, `/run/${forkId}?view=forks`);
    await theForm(other).getByText("which is no longer stored").waitFor();
    await theForm(other).getByText("Only the process that runs agents has their definitions").first().waitFor();
    await theForm(other).getByText(`npx troupe replay ${forkId} --agents FILE`).waitFor();
  });

  test("can be used by keys alone, and shows why a fork was refused", async () => {
    const { url } = await served(shopOf());
    const page = await opened(url, "/run/shop?view=summary");
    await page.getByRole("main").waitFor();
    await page.keyboard.press("9");
    const form = theForm(page);
    await form.getByLabel("Point of the fork").selectOption("1");
    await form.getByRole("button", { name: "Run the fork" }).focus();
    await page.keyboard.press("Enter");
    await form.getByRole("alert").getByText("so the fork needs an input").waitFor();
    page.errors.splice(0);
    await form.getByLabel("Input of the next turn").focus();
    await page.keyboard.type("And now in French.");
    await form.getByLabel("Dollars").focus();
    await page.keyboard.type("-3");
    await form.getByRole("button", { name: "Run the fork" }).focus();
    await page.keyboard.press("Enter");
    expect(await form.getByLabel("Dollars").and(page.locator(":invalid")).count()).toBe(1);
    await form.getByLabel("Dollars").fill("");
    await form.getByRole("button", { name: "Run the fork" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("table", { name: "Since the fork" }).waitFor();
  });

  test("keeps unsent changes while other views are shown, and shows hostile texts as texts", async () => {
    const evil = '<img src=x onerror="document.title=1">\u202e';
    const { url } = await served(shopOf(evil));
    const page = await opened(url, "/run/shop?view=forks&fork=1:2");
    const form = theForm(page);
    expect(await form.getByLabel("Instructions").inputValue()).toBe(evil);
    await form.getByLabel("Prompt").fill(`${evil} changed`);
    await page.getByRole("link", { name: "Timeline" }).click();
    await page.getByRole("link", { name: "Forks" }).click();
    expect(await form.getByLabel("Prompt").inputValue()).toBe(`${evil} changed`);
    await form.getByRole("button", { name: "Undo all changes" }).click();
    expect(await form.getByLabel("Prompt").inputValue()).toBe("Refund order 17.");
    const other = await opened(url, `/run/shop?view=forks&fork=${encodeURIComponent(evil)}`);
    await theForm(other).getByText("no such point").waitFor({ state: "attached" });
    for (const one of [page, other]) expect(await one.title()).not.toBe("1");
  });

  test("a bar of the timeline leads to the form, too", async () => {
    const { url } = await served(shopOf());
    const page = await opened(url, "/run/shop?view=timeline");
    await page.getByRole("checkbox", { name: "as a table" }).check();
    await page.getByRole("table").getByRole("button").nth(2).click();
    await page
      .getByRole("complementary", { name: "Selected bar" })
      .getByRole("button", { name: "Fork from here" })
      .click();
    await expect.poll(() => page.url()).toMatch(/view=forks.*&fork=1%3A\d/);
  });

  test("a replay finds the run equal", async () => {
    const { url } = await served(shopOf());
    const page = await opened(url, "/run/shop?view=forks");
    await page.getByRole("button", { name: "Replay" }).click();
    await page.getByRole("status").getByText("Equal: 3 model requests and 2 tool calls").waitFor();
  });

  test("a replay marks the first divergence on the timeline", async () => {
    const { url } = await served(shopOf(), shopOf("You serve the shop, and you are brief.").desk);
    const page = await opened(url, "/run/shop?view=forks&fork=1:2");
    await page.getByRole("button", { name: "Replay" }).click();
    await page.getByText("First divergence: desk, turn 1, step 1").waitFor();
    const diff = page.getByLabel("Difference");
    expect(await diff.locator(".removed").textContent()).toContain("You serve the shop.");
    expect(await diff.locator(".added").textContent()).toContain("you are brief");
    expect(await inBothSchemes(page, "forks-replay")).toEqual([]);
    await page.getByRole("button", { name: "Show on the timeline" }).click();
    await expect.poll(() => page.getByRole("img", { name: "First divergence of the replay" }).count()).toBe(2);
  });
});
