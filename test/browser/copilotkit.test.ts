// The example page with CopilotKit, where `npm run check:copilotkit` has installed it: approval, a reload in the middle of a stream.
import { createRuntime, defineAgent, type Runtime } from "troupe";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { bundled, deskRuntime, serveChat } from "../../examples/browser/serve.ts";
import { installedCopilotKit } from "../../scripts/check-copilotkit.ts";
import { browserProgram, openBrowser, type WatchedPage } from "../support/browser.ts";
import { slowSpeaker } from "../support/slow-speaker.ts";

const browser = openBrowser();
const folder = installedCopilotKit();

/** Opens the page, and accepts only what CopilotKit logs about agents without its runtime. */
async function inPage(url: string, test: (page: WatchedPage) => Promise<void>): Promise<void> {
  const page = await browser.newPage();
  try {
    await page.goto(url);
    await test(page);
  } finally {
    const others = page.errors.filter((text) => !text.includes("`selfManagedAgents` is part of"));
    page.errors.splice(0, page.errors.length, ...others);
  }
}

async function served(runtime: Runtime): Promise<string> {
  const server = await serveChat(runtime, folder);
  onTestFinished(async () => {
    await server.close();
    await runtime.shutdown();
  });
  return `${(await server.listen()).url}/copilotkit`;
}

async function send(page: WatchedPage, text: string): Promise<void> {
  await page.getByRole("textbox").fill(text);
  await page.getByRole("textbox").press("Enter");
}

describe.skipIf(browserProgram === undefined || folder === undefined)("the page /copilotkit", () => {
  // The script has 24 MB, and no request of a browser waits for it.
  beforeAll(() => bundled("copilotkit", folder), 300_000);

  it("asks, approves after a reload, and keeps the conversation", async () => {
    const url = await served(await deskRuntime());
    await inPage(url, async (page) => {
      await send(page, "Hello.");
      await page.getByText("You said: Hello.").waitFor();
      await send(page, "Order paper.");
      await page.getByRole("button", { name: "Approve" }).waitFor();
      await page.reload();
      await page.getByText("You said: Hello.").waitFor();
      await page.getByRole("button", { name: "Approve" }).click();
      await page.getByText("It is done.").waitFor();
      expect(await page.getByRole("button", { name: "Approve" }).count()).toBe(0);
      await page.reload();
      await page.getByText("It is done.").waitFor();
      expect(await page.getByText("It is done.").count()).toBe(1);
      await send(page, "Thanks.");
      await page.getByText("You said: Thanks.").waitFor();
    });
  });

  it("rejects a call", async () => {
    const url = await served(await deskRuntime());
    await inPage(url, async (page) => {
      await send(page, "Order paper.");
      await page.getByRole("button", { name: "Reject" }).click();
      await page.getByText("It is done.").waitFor();
      expect(await page.getByRole("button", { name: "Reject" }).count()).toBe(0);
    });
  });

  it("continues a stream after a reload and in a second tab", async () => {
    const [goOn, said] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { model } = slowSpeaker({ said: said.resolve, goOn: goOn.promise, whole: goOn.promise });
    const agents = [defineAgent({ name: "desk", model })];
    const url = await served(await createRuntime({ agents, streaming: "always" }));
    await inPage(url, async (page) => {
      await send(page, "Speak.");
      await said.promise;
      await page.getByText("The first half,").waitFor();
      await page.reload();
      await page.getByText("The first half,").waitFor();
      const tab = await page.context().newPage();
      await tab.goto(url);
      await tab.getByText("The first half,").waitFor();
      goOn.resolve();
      for (const one of [page, tab]) {
        await one.getByText("and the second.").waitFor();
        expect(await one.getByText("Speak.", { exact: true }).count()).toBe(1);
      }
    });
  });
});
