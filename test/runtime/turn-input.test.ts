import { expect, it } from "vitest";
import { defineAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

const pixel = "data:image/png;base64,iVBORw0KGgo=";

describeRuntimes("a turn's input", (stage) => {
  async function desk(script: Parameters<typeof scriptedModel>[0]) {
    const model = scriptedModel(script);
    const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model })] });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    return { model, runtime, agent };
  }

  it("text and images reach the model unchanged, even after a restart", async () => {
    const { model, runtime, agent } = await desk("seen");
    const input = [
      { type: "text" as const, text: "what is this?" },
      { type: "image" as const, url: pixel },
      { type: "image" as const, url: "https://example.org/cat.jpg" },
    ];
    await agent.executeTurn(input).result;
    expect(model.calls[0]?.messages[0]?.content).toEqual(input);
    await runtime.shutdown();
    const later = scriptedModel("again");
    const second = await stage().open({ agents: [defineAgent({ name: "desk", model: later })] });
    const again = await second.find("a");
    await again.start();
    await again.executeTurn("and?").result;
    expect(later.calls[0]?.messages[0]?.content).toEqual(input);
  });

  it.each([
    [[], "the list of content parts is empty"],
    [[{ type: "image", url: "cat.jpg" }], 'content part 0: invalid image URL "cat.jpg"'],
    [
      [
        { type: "text", text: "x" },
        { type: "image", url: "file:///etc/passwd" },
      ],
      "content part 1",
    ],
    [[{ type: "image", url: "data:text/html;base64,PGI+" }], "must be a base64-encoded image"],
    [[{ type: "video", url: "https://x.org" }], "executeTurn() expects a text, a list of content parts"],
    [7, "executeTurn() expects a text, a list of content parts"],
  ])("refuses %j and opens no turn", async (input, words) => {
    const { agent, runtime } = await desk("never");
    await expect(agent.executeTurn(input as never).result).rejects.toThrow(words);
    expect((await runtime.list())[0]).toMatchObject({ openTurnId: null, nextTurnNumber: 1 });
  });

  it("S12: an already aborted signal prevents the first step", async () => {
    const { agent, model } = await desk("never");
    const result = await agent.executeTurn("go", { signal: AbortSignal.abort(new Error("changed my mind")) }).result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "user_requested", steps: 0 });
    expect(result.signal?.message).toBe("changed my mind");
    expect(model.calls).toHaveLength(0);
    expect((await agent.executeTurn(null).result).status).toBe("completed");
  });

  it("S12: a signal that aborts mid-turn keeps the work done, and does not affect the next turn", async () => {
    const gate = createGate<string>();
    const { agent } = await desk(async (_request, { index, signal }) =>
      index === 0 ? await gate.pass(signal) : "next",
    );
    const controller = new AbortController();
    const turn = agent.executeTurn("go", { signal: controller.signal });
    await gate.reached();
    controller.abort(new Error("enough"));
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested", steps: 1 });
    expect(await agent.executeTurn("more").result).toMatchObject({ status: "completed", text: "next" });
  });
});
