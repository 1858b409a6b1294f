// The example pages with `useChat` of the AI SDK and with the client of AG-UI: approval, a reload in the middle of a stream, two tabs.
import { createRuntime, defineAgent, type Runtime } from "troupe";
import { describe, expect, it, onTestFinished } from "vitest";
import { deskRuntime, serveChat } from "../../examples/browser/serve.ts";
import { axe, browserProgram, openBrowser, type WatchedPage } from "../support/browser.ts";
import { slowSpeaker } from "../support/slow-speaker.ts";

const browser = openBrowser();

async function served(runtime: Runtime): Promise<string> {
  const server = await serveChat(runtime);
  onTestFinished(async () => {
    await server.close();
    await runtime.shutdown();
  });
  return (await server.listen()).url;
}

function partsOf(page: Pick<WatchedPage, "getByRole" | "getByLabel">) {
  return {
    status: page.getByRole("status"),
    conversation: page.getByRole("list", { name: "Conversation" }).getByRole("listitem"),
    send: async (text: string): Promise<void> => {
      await page.getByLabel("Message").fill(text);
      await page.getByRole("button", { name: "Send" }).click();
    },
  };
}

describe.skipIf(!browserProgram).each(["use-chat", "http-agent"])("the page /%s", (path) => {
  it("asks, approves after a reload, and keeps the conversation", async () => {
    const url = await served(await deskRuntime());
    const page = await browser.newPage();
    await page.goto(`${url}/${path}`);
    const { status, conversation, send } = partsOf(page);
    await status.getByText("ready").waitFor();
    await send("Hello.");
    await page.getByText("You said: Hello.").waitFor();
    await status.getByText("ready").waitFor();
    await send("Order paper.");
    await page.getByRole("button", { name: "Approve" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Approve" }).waitFor();
    expect(await axe(page)).toEqual([]);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("It is done.").waitFor();
    await status.getByText("ready").waitFor();
    expect(await page.getByRole("button", { name: "Approve" }).count()).toBe(0);
    await page.reload();
    await page.getByText("It is done.").waitFor();
    const texts = await conversation.allTextContents();
    expect(texts.slice(0, 3)).toEqual(["user: Hello.", "assistant: You said: Hello.", "user: Order paper."]);
    expect(texts.at(-1)).toContain("It is done.");
  });

  it("continues a stream after a reload and in a second tab", async () => {
    const [goOn, said] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { model } = slowSpeaker({ said: said.resolve, goOn: goOn.promise, whole: goOn.promise });
    const agents = [defineAgent({ name: "desk", model })];
    const url = await served(await createRuntime({ agents, streaming: "always" }));
    const page = await browser.newPage();
    await page.goto(`${url}/${path}`);
    const { status, send } = partsOf(page);
    await status.getByText("ready").waitFor();
    await send("Speak.");
    await said.promise;
    await page.getByText("The first half,").waitFor();
    await page.reload();
    await page.getByText("The first half,").waitFor();
    const tab = await page.context().newPage();
    await tab.goto(`${url}/${path}`);
    await tab.getByText("The first half,").waitFor();
    goOn.resolve();
    for (const one of [page, tab]) {
      const parts = partsOf(one);
      await one.getByText("and the second.").waitFor();
      await parts.status.getByText("ready").waitFor();
      expect(await parts.conversation.allTextContents()).toEqual([
        "user: Speak.",
        "assistant: The first half, and the second.",
      ]);
    }
  });
});
