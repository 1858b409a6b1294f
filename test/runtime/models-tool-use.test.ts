import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, openaiModel } from "../../src/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { completion, wireAnswer, wireServer } from "../support/wire-server.ts";

const refusal = {
  error: {
    message: "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
    type: "invalid_request_error",
    code: "tool_use_failed",
    failed_generation: '<function=look{"x":1}</function>',
  },
};

describeRuntimes("a tool call that the model server cannot parse", (stage) => {
  async function ask(failures: number) {
    const server = await wireServer((socket, { index }) => {
      if (index >= failures) socket.write(wireAnswer(completion("Here.")));
      else socket.write(wireAnswer(JSON.stringify(refusal), "content-type: application/json", 400));
    });
    const model = openaiModel("llama", { baseURL: `http://${server.host}/v1`, apiKey: "none" });
    const look = defineTool({ name: "look", description: "Looks.", parameters: z.object({}), execute: () => "seen" });
    const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model, tools: [look] })] });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    const result = await agent.executeTurn("Look.").result;
    return { agent, result, server };
  }

  it("is reported to the model, costs nothing, and the step continues", async () => {
    const { agent, result, server } = await ask(1);
    expect(result).toMatchObject({
      status: "completed",
      text: "Here.",
      steps: 1,
      usage: { inputTokens: 7, outputTokens: 3 },
    });
    const { messages } = JSON.parse(server.requests[1]?.body ?? "{}") as {
      messages: { role: string; content: string }[];
    };
    expect(messages.at(-1)).toMatchObject({ role: "user", content: expect.stringContaining('<function=look{"x":1}') });
    expect((await agent.getMessages()).map(({ origin }) => origin)).toEqual(["user", "runtime", "model"]);
  });

  it("fails the turn after the attempts of a call are used up", async () => {
    const { result, server } = await ask(10);
    expect(result).toMatchObject({ status: "failed", stopReason: "retry_limit" });
    expect(server.requests).toHaveLength(3);
  });
});
