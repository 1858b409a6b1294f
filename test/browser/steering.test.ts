import { createRuntime, defineAgent, defineTool, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { Feed, runtimeActor, serveFeed } from "../../src/inspector/index.ts";
import { browserProgram, inBothSchemes, openBrowser } from "../support/browser.ts";

const browser = openBrowser();

describe.skipIf(!browserProgram)("writing to an agent that works", () => {
  test("names the step that sees the text, or the turn that waits with it", async () => {
    const work = Promise.withResolvers<string>();
    const last = Promise.withResolvers<void>();
    const measure = defineTool({
      name: "measure",
      description: "Measures the walls.",
      parameters: z.object({}),
      effect: "none",
      execute: () => work.promise,
    });
    const model = scriptedModel([
      { toolCalls: [{ name: "measure" }] },
      { text: "Only the north wall: 4 m.", delayUntil: last.promise },
      "The south wall: 5 m.",
    ]);
    const runtime = await createRuntime({
      agents: [defineAgent({ name: "clerk", model, tools: [measure], budget: { maxSteps: 2 } })],
    });
    onTestFinished(() => runtime.shutdown());
    onTestFinished(() => {
      work.resolve("4 m");
      last.resolve();
    });
    const agent = await runtime.agent("clerk", { agentId: "desk" });
    await agent.start();
    const turn = agent.executeTurn("Measure the walls.");
    turn.result.catch(() => undefined);
    for await (const event of turn) if (event.type === "tool.started") break;
    const feed = new Feed();
    feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime, actor: runtimeActor(runtime, "the page") });
    const server = await serveFeed(feed, { mayAct: true });
    onTestFinished(() => server.close());
    const page = await browser.newPage();
    await page.goto(`${server.url}&/run/desk?view=talk`);
    const write = page.getByRole("textbox", { name: "Write to clerk" });
    await write.fill("Only the north wall.");
    await page.getByRole("button", { name: "Send" }).click();
    const note = page.getByRole("status").filter({ hasText: /Delivered|Queued/ });
    await note.filter({ hasText: "Delivered: the model sees it in step 2." }).waitFor();
    expect(await write.inputValue()).toBe("");
    expect(await inBothSchemes(page, "steering-delivered")).toEqual([]);
    work.resolve("4 m");
    const log = page.getByRole("log", { name: "Conversation" });
    await log.getByText("Only the north wall.").waitFor();
    // The last step that the budget allows has begun: the text opens another turn.
    await expect.poll(() => model.calls.length).toBe(2);
    expect(model.calls[1]?.messages.map(({ content }) => textOf(content)).at(-1)).toBe("Only the north wall.");
    await write.fill("And the south wall?");
    await page.getByRole("button", { name: "Send" }).click();
    await note.filter({ hasText: "Queued as turn 2." }).waitFor();
    expect(await inBothSchemes(page, "steering-queued")).toEqual([]);
    last.resolve();
    await log.getByText("The south wall: 5 m.").waitFor();
  });
});
