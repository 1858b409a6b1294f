import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentDefinition,
  createRuntime,
  defineAgent,
  defineTool,
  type LanguageModel,
  memoryStores,
  subagent,
} from "../../src/index.ts";
import { Feed, runtimeActor, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { browserProgram, openBrowser, screenshot, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();

/** An agent that has not begun, and the address of the page over it. */
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
function dictated(): {
  readonly model: LanguageModel;
  readonly write: (text: string) => void;
  readonly end: (text: string) => void;
} {
  const answer = Promise.withResolvers<string>();
  const scripted = scriptedModel(async (_, { index }) => (index === 0 ? "Ready." : await answer.promise));
  let write: ((text: string) => void) | undefined;
  return {
    model: {
      ...scripted,
      generate: (request, options) => {
        write = (text) => options.onDelta?.({ type: "text", text });
        return scripted.generate(request, { ...options, onDelta: undefined });
      },
    },
    write: (text) => write?.(text),
    end: (text) => answer.resolve(text),
  };
}

/** The number of pixels of the conversation below the visible area. */
async function pixelsBelow(page: WatchedPage): Promise<number> {
  return await page.evaluate<number>(`(() => {
    const { scrollHeight, scrollTop, clientHeight } = document.querySelector("[role=log]");
    return scrollHeight - scrollTop - clientHeight;
  })()`);
}

const lines = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, index) => `This is line ${from + index} of the answer.\n`).join("");

describe.skipIf(!browserProgram)("a streamed text", () => {
  test.each(["Messages", "Talk"])("is followed in %s while the reader is scrolled to its end", async (view) => {
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

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({ at: z.string() }),
  effect: "none",
  execute: ({ at }) => `seen ${at}`,
});

describe.skipIf(!browserProgram)("a live team", () => {
  test("shifts nothing on the page while it works", async () => {
    let open = Promise.withResolvers<void>();
    const clerk = defineAgent({
      name: "clerk",
      tools: [look],
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === "tool"
          ? "I have seen it."
          : { toolCalls: [{ name: "look", arguments: { at: "the invoices" } }], delayUntil: open.promise },
      ),
    });
    const { agent, url } = await watched(
      defineAgent({
        name: "lead",
        budget: { maxTokens: 1_000_000, maxSteps: 1_000 },
        tools: [look, subagent(clerk)],
        model: scriptedModel(async ({ messages }) => {
          if (messages.at(-1)?.role === "tool") return "Done.";
          await open.promise;
          return { toolCalls: [{ name: "clerk", arguments: { input: "Look." } }] };
        }),
      }),
    );
    onTestFinished(() => open.resolve());
    const pages = [await opened(url, 390), await opened(url, 1_024), await opened(url, 1_440)];
    for (const page of pages) {
      await page.evaluate(`
        globalThis.shifts = [];
        new PerformanceObserver((list) => {
          for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) shifts.push(value);
        }).observe({ type: "layout-shift" });
      `);
    }
    const see = async (phase: string): Promise<void> => {
      for (const page of pages) await page.locator(`.agent-head .pill.${phase}`).waitFor();
    };
    for (let turn = 0; turn < 8; turn += 1) {
      open = Promise.withResolvers();
      const working = agent.executeTurn("Look at the month.");
      await see("thinking");
      open.resolve();
      open = Promise.withResolvers();
      await see("waiting");
      open.resolve();
      await working.result;
      await see("done");
    }
    for (const [index, page] of pages.entries()) {
      await screenshot(page, `live-team-${index}`);
      const shifts = await page.evaluate<number[]>("shifts");
      expect.soft(shifts.reduce((sum, value) => sum + value, 0)).toBeLessThan(0.1);
    }
  });
});
