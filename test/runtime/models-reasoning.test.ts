import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, type LanguageModel, openaiModel } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { type ModelServer, type ServerAnswer, startModelServer } from "../support/model-server.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

describeRuntimes("reasoning in a conversation", (stage) => {
  const servers: ModelServer[] = [];

  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.stop()));
  });

  async function serve(...answers: readonly ServerAnswer[]): Promise<ModelServer> {
    const server = await startModelServer((_body, { index }) => answers[index] ?? { status: 418 });
    servers.push(server);
    return server;
  }

  /** One turn of the same agent, with this model. */
  async function turnWith(model: LanguageModel): Promise<string> {
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", tools: [look], model })] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const { text } = await agent.executeTurn("go").result;
    await runtime.shutdown();
    return text;
  }

  it("is sent only to the model that wrote it: not to another name, not to another provider", async () => {
    const server = await serve(
      { toolCalls: [{ id: "a", name: "look" }], reasoning: "signed by mini" },
      "one",
      { text: "two", reasoning: "signed by big" },
      "three",
      "four",
    );
    const { baseURL } = server;
    const served = (name: string, provider?: string) => openaiModel(name, { apiKey: "k", baseURL, provider });
    expect(await turnWith(served("mini"))).toBe("one");
    expect(await turnWith(served("big"))).toBe("two");
    expect(await turnWith(served("mini", "azure"))).toBe("three");
    expect(await turnWith(served("mini"))).toBe("four");
    const sent = server.requests.map(({ body }) => JSON.stringify(body.messages).match(/signed by \w+/g) ?? []);
    expect(sent).toEqual([[], ["signed by mini"], [], [], ["signed by mini"]]);
  });

  it("stays in the messages with the name of the model that wrote it", async () => {
    const model = scriptedModel({ text: "hi", reasoning: "hm" }, { name: "thinker", provider: "here" });
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model })] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    await agent.executeTurn("go").result;
    expect((await agent.getMessages()).at(-1)).toMatchObject({
      reasoning: { reasoning_content: "hm" },
      reasoningBy: { provider: "here", model: "thinker" },
    });
  });

  it("the cache writes of all calls of a turn are in its usage", async () => {
    const usage = { cacheWriteTokens: 7, cachedInputTokens: 3 };
    const model = scriptedModel([
      { ...Object(calling("look")), usage },
      { text: "done", usage },
    ]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", tools: [look], model })] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const result = await agent.executeTurn("go").result;
    expect(result.usage).toMatchObject({ cacheWriteTokens: 14, cachedInputTokens: 6 });
    const spent = { cacheWriteTokens: 14, cachedInputTokens: 6 };
    expect(result.spent).toMatchObject({ own: spent, tree: spent, byModel: { [model.name]: spent } });
  });
});
