import { describe, expect, onTestFinished, test } from "vitest";
import {
  type Agent,
  type AgentDefinition,
  createRuntime,
  defineAgent,
  type LanguageModel,
  memoryStores,
} from "../../src/index.ts";
import { Feed, runtimeActor, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { browserProgram, openBrowser, screenshot, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();

/** An agent that has begun nothing yet, and the address of the page over it. */
async function watched(definition: AgentDefinition): Promise<{ readonly agent: Agent; readonly url: string }> {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [definition], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent(definition.name, { agentId: "desk" });
  await agent.start();
  const feed = new Feed({ run: "desk" });
  feed.add({ stores, tenant: "default", runtime, actor: runtimeActor(runtime, "the page") });
  const server = await serveFeed(feed, { mayAct: true });
  onTestFinished(() => server.close());
  return { agent, url: server.url };
}

async function opened(url: string, width = 1_280): Promise<WatchedPage> {
  const page = await browser.newPage({ viewport: { width, height: 800 } });
  await page.goto(url);
  await page.getByRole("treegrid", { name: "Agents" }).waitFor();
  return page;
}

/** A model whose second answer is written by the test. */
function dictated(): { readonly model: LanguageModel; write(text: string): void; end(text: string): void } {
  const answer = Promise.withResolvers<string>();
  const scripted = scriptedModel(async (_, { index }) => (index === 0 ? "Ready." : await answer.promise));
  let write = (_: string): void => undefined;
  return {
    model: {
      ...scripted,
      generate: (request, options) => {
        write = (text) => options.onDelta?.({ type: "text", text });
        return scripted.generate(request, { ...options, onDelta: undefined });
      },
    },
    write: (text) => write(text),
    end: (text) => answer.resolve(text),
  };
}

/** How many pixels of the conversation lie below what is in sight. */
async function pixelsBelow(page: WatchedPage): Promise<number> {
  return await page.evaluate<number>(`(() => {
    const { scrollHeight, scrollTop, clientHeight } = document.querySelector("[role=log]");
    return scrollHeight - scrollTop - clientHeight;
  })()`);
}

const lines = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, index) => `This is line ${from + index} of the answer.\n`).join("");

describe.skipIf(!browserProgram)("a text that is being written", () => {
  test.each(["Messages", "Talk"])("is followed in %s while the reader is at its end", async (view) => {
    const { model, write, end } = dictated();
    onTestFinished(() => end(""));
    const { agent, url } = await watched(defineAgent({ name: "clerk", model }));
    await agent.executeTurn("Are you there?").result;
    const page = await opened(url);
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: view }).click();
    const list = page.getByRole("log", { name: "Conversation" });
    await list.getByText("Ready.").waitFor();
    const turn = agent.executeTurn("Write it all down.");
    await page.locator(".agent-head .pill.thinking").waitFor();
    for (let line = 1; line <= 60; line += 1) {
      write(lines(line, line));
      if (line % 10 === 0) await list.getByText(`line ${line} of`).waitFor();
    }
    await expect.poll(() => pixelsBelow(page)).toBeLessThan(2);
    await screenshot(page, `followed-${view.toLowerCase()}`);
    await list.hover();
    await page.mouse.wheel(0, -400);
    await expect.poll(() => pixelsBelow(page)).toBeGreaterThan(300);
    const below = await pixelsBelow(page);
    write(lines(61, 80));
    await list.getByText("line 80 of").waitFor();
    expect(await pixelsBelow(page)).toBeGreaterThan(below + 300);
    await page.mouse.wheel(0, 10_000);
    await expect.poll(() => pixelsBelow(page)).toBeLessThan(2);
    write(lines(81, 90));
    await list.getByText("line 90 of").waitFor();
    await expect.poll(() => pixelsBelow(page)).toBeLessThan(2);
    end(`${lines(1, 90)}This is the end.`);
    await turn.result;
    await list.getByText("This is the end.").waitFor();
    await expect.poll(() => pixelsBelow(page)).toBeLessThan(2);
  });
});
