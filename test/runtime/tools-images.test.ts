import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, toolResult } from "../../src/index.ts";
import { promptByteBound } from "../../src/model/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, eventsOfTurn } from "../support/turn-probes.ts";

const url = `data:image/png;base64,${Buffer.alloc(30_000, 7).toString("base64")}`;

describeRuntimes("images in tool results", (stage) => {
  async function shot(options: { queue?: string; text?: string; isError?: boolean } = {}) {
    const { queue, text = "The page:", isError } = options;
    const tool = defineTool({
      name: "shot",
      description: "A screenshot.",
      parameters: z.object({}),
      effect: "none",
      maxOutputCharacters: 1_000,
      ...(queue === undefined ? {} : { queue }),
      execute: () =>
        toolResult({
          content: [
            { type: "text", text },
            { type: "image", url },
          ],
          isError,
        }),
    });
    const model = scriptedModel([calling("shot"), "the end"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model, tools: [tool] })] });
    const agent = await runtime.agent("clerk", { agentId: "c" });
    await agent.start();
    const turn = agent.executeTurn("go");
    const events = eventsOfTurn(turn);
    const result = await turn.result;
    const request = model.calls[1];
    return { agent, result, request, message: request?.messages.at(-1), events: await events };
  }

  it.each([undefined, "browser"])("reach the model with the result (queue %s)", async (queue) => {
    const { result, message, request } = await shot(queue === undefined ? {} : { queue });
    expect(result).toMatchObject({ status: "completed", errors: [] });
    expect(message).toMatchObject({
      role: "tool",
      content: [
        { type: "text", text: "The page:\n[image 1]" },
        { type: "image", url },
      ],
    });
    // The reservation uses the image's own bound, not the length of its base64.
    expect(request && promptByteBound(request)).toBeLessThan(4_000);
  });

  it("are kept with a cut text", async () => {
    const { agent, message } = await shot({ text: "a".repeat(5_000) });
    expect(message?.content).toEqual([
      { type: "text", text: expect.stringMatching(/characters were cut here/) },
      { type: "image", url },
    ]);
    expect((await agent.getArtifacts()).map(({ name, size }) => [name, size])).toEqual([["shot output", 5_010]]);
  });

  it("of a failed call also reach the model", async () => {
    const { message, events } = await shot({ isError: true });
    expect(message).toMatchObject({ isError: true, content: [{ type: "text" }, { type: "image" }] });
    expect(events.filter(({ type }) => type === "tool.failed")).toHaveLength(1);
  });
});
