import { createRuntime, defineAgent, type Runtime } from "troupe";
import { scriptedModel } from "troupe/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { Feed, runtimeActor, serveFeed } from "../../src/inspector/index.ts";
import { browserProgram, inBothSchemes, openBrowser, showView, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();

/** The page over an agent with one turn. */
async function place(mayAct: boolean): Promise<{ runtime: Runtime; page: WatchedPage }> {
  const desk = defineAgent({ name: "desk", model: scriptedModel("Noted: the code is 4711.") });
  const runtime = await createRuntime({ agents: [desk] });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("desk", { agentId: "shop" });
  await agent.start();
  await agent.executeTurn("Note the code.").result;
  const feed = new Feed();
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime, actor: runtimeActor(runtime, "the page") });
  const server = await serveFeed(feed, { mayAct });
  onTestFinished(() => server.close());
  const page = await browser.newPage();
  await page.goto(`${server.url}&/run/shop`);
  await page.getByRole("treegrid", { name: "Agents" }).waitFor();
  return { runtime, page };
}

const isStored = async ({ stores, tenant }: Runtime): Promise<boolean> =>
  (await stores.readAgent({ tenant, agentId: "shop" })) !== undefined;

const isGone = (page: WatchedPage) => page.getByRole("alert").filter({ hasText: "This run was deleted." }).waitFor();

/** The views may request the run until the page is notified of its deletion. */
function dropUnanswered(page: WatchedPage): void {
  const others = page.errors.splice(0).filter((text) => !text.includes("404"));
  page.errors.push(...others);
}

describe.skipIf(!browserProgram)("deleting a run on the page", () => {
  test("needs a second press, and leads to a page without the run's content", async () => {
    const { runtime, page } = await place(true);
    await showView(page, "Messages");
    await page.getByText("4711").first().waitFor();
    const open = page.getByRole("button", { name: "Delete …" });
    const dialog = page.getByRole("dialog", { name: "Delete" });
    await open.click();
    await dialog.getByRole("button", { name: "Keep it" }).waitFor();
    expect(await inBothSchemes(page, "deletion-dialog")).toEqual([]);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await open.click();
    // Return presses the button that keeps the run.
    await dialog.locator("button:focus").filter({ hasText: "Keep it" }).waitFor();
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    expect(await isStored(runtime)).toBe(true);
    await open.click();
    await dialog.getByRole("button", { name: "Delete the run" }).click();
    await isGone(page);
    expect(await isStored(runtime)).toBe(false);
    expect(await page.getByText("4711").count()).toBe(0);
    expect(await inBothSchemes(page, "deletion-gone")).toEqual([]);
    await page.getByRole("link", { name: "All runs" }).last().click();
    await page.getByRole("region", { name: "New conversation" }).waitFor();
    expect(await page.getByText("shop").count()).toBe(0);
    dropUnanswered(page);
  });

  test("is not offered on a link that may only watch, which shows that others have deleted it", async () => {
    const { runtime, page } = await place(false);
    await showView(page, "Messages");
    await page.getByText("4711").first().waitFor();
    expect(await page.getByRole("button", { name: "Delete …" }).count()).toBe(0);
    await runtime.delete("shop");
    await isGone(page);
    expect(await page.getByText("4711").count()).toBe(0);
    dropUnanswered(page);
  });
});
