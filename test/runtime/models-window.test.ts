import { expect, it } from "vitest";
import { type AgentOptions, defineAgent, type LanguageModel, type ModelRequest } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const contextWindow = 8_192;

const boundPromptTokens = ({ messages }: ModelRequest): number => messages.length * 40_000;

describeRuntimes("a model with a known window", (stage) => {
  /** An agent whose model counts `tokensOfMessage` tokens per message. */
  async function started(tokensOfMessage: number, options: Partial<AgentOptions>) {
    const scripted = scriptedModel(({ messages }) => {
      return { text: "ok", usage: { inputTokens: messages.length * tokensOfMessage, outputTokens: 1 } };
    });
    const countPromptTokens: LanguageModel["countPromptTokens"] = ({ messages }) => messages.length * tokensOfMessage;
    const model = { ...scripted, contextWindow, countPromptTokens, boundPromptTokens };
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", ...options, model })] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const bounds = () => scripted.calls.map(({ maxOutputTokens }) => maxOutputTokens);
    const prompts = () => scripted.calls.map(({ messages }) => messages.map(({ content }) => content));
    return { agent, bounds, prompts };
  }

  it.each<{ what: string; options: Partial<AgentOptions>; sent: number | undefined }>([
    { what: "a limit on tokens", options: { budget: { maxTokens: 1_000_000 } }, sent: 1_892 },
    { what: "its own bound", options: { maxOutputTokens: 4_000 }, sent: 1_892 },
    { what: "a bound that fits", options: { maxOutputTokens: 1_000 }, sent: 1_000 },
    { what: "nothing", options: {}, sent: undefined },
  ])("gets a bound on output of no more than fits, if a bound is sent: by $what", async ({ options, sent }) => {
    const { agent, bounds } = await started(6_000, options);
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed" });
    expect(bounds()).toEqual([sent]);
  });

  it("gets the smallest bound on output if hardly anything fits", async () => {
    const { agent, bounds } = await started(7_900, { maxOutputTokens: 4_000 });
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed" });
    expect(bounds()).toEqual([256]);
  });

  it("is not called if nothing fits: the turn fails as too long, and nothing is billed", async () => {
    const { agent, bounds } = await started(8_000, { budget: { maxTokens: 1_000_000 } });
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "failed", error: { code: "context_too_long" } });
    expect(result.error?.message).toMatch(/8000 tokens.*8192.*not sent/);
    expect(result.spent.own).toMatchObject({ inputTokens: 0, outputTokens: 0 });
    expect(bounds()).toEqual([]);
  });

  it("is called again once the conversation is compacted", async () => {
    const { agent, prompts } = await started(2_700, { maxOutputTokens: 1_000, autoCompact: true });
    await agent.executeTurn("one").result;
    expect(await agent.executeTurn("two").result).toMatchObject({ status: "completed" });
    expect(prompts().at(-1)).toEqual([expect.stringMatching(/^Summary/), "two"]);
  });
});
