import { afterEach, expect, it, vi } from "vitest";
import { defineAgent, openaiModel, type OpenaiModelOptions } from "../../src/index.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { describeRuntimes } from "../support/runtimes.ts";

describeRuntimes("a call that was not sent or was refused", (stage) => {
  let server: ModelServer | undefined;

  afterEach(async () => {
    vi.unstubAllEnvs();
    await server?.stop();
    server = undefined;
  });

  async function turns(options: OpenaiModelOptions, count: number) {
    vi.stubEnv("OPENAI_API_KEY", "");
    const model = openaiModel("m", options);
    const price = { inputPerMillion: 1, outputPerMillion: 2 };
    const runtime = await stage().open({
      agents: [defineAgent({ name: "worker", model, price, maxModelAttempts: 1 })],
    });
    // Smaller than two reservations of 4,096 tokens.
    const agent = await runtime.agent("worker", { agentId: "worker-1", budget: { maxCost: 0.01, maxTokens: 8_000 } });
    await agent.start();
    const results = [];
    for (let turn = 0; turn < count; turn += 1) results.push(await agent.executeTurn("go").result);
    return results;
  }

  it.each<readonly [string, OpenaiModelOptions, RegExp]>([
    ["no key", {}, /not sent.*OPENAI_API_KEY/],
    ["a key that is not allowed in a header", { apiKey: "ключ" }, /not sent.*apiKey/],
    ["no URL", { apiKey: "k", baseURL: "localhost:1" }, /not sent.*baseURL/],
    ["no server", { apiKey: "k", baseURL: "http://127.0.0.1:1/v1" }, /not sent.*baseURL/],
    ["no host", { apiKey: "k", baseURL: "http://nowhere.invalid/v1" }, /not sent.*baseURL/],
  ])("costs nothing, regardless of the number of tries: %s", async (_what, options, words) => {
    for (const result of await turns(options, 4)) {
      expect(result).toMatchObject({ status: "failed", error: { code: "model_error" } });
      expect(result.error?.message).toMatch(words);
      expect(result.spent.tree).toMatchObject({ inputTokens: 0, outputTokens: 0, cost: 0 });
    }
  });

  it.each([401, 403])("costs nothing and is not repeated: %i", async (status) => {
    server = await startModelServer(() => ({ status }));
    const results = await turns({ apiKey: "wrong", baseURL: server.baseURL }, 4);
    expect(results.map(({ spent }) => spent.tree.cost)).toEqual([0, 0, 0, 0]);
    expect(server.requests).toHaveLength(4);
  });
});
