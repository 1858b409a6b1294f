import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, type ModelResponse } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});
const ignored = { code: "unsupported", message: "temperature is ignored" };

describeRuntimes("warnings and sources of answers", (stage) => {
  const started = async (...[script]: Parameters<typeof scriptedModel>) => {
    const runtime = await stage().open({
      agents: [defineAgent({ name: "desk", model: scriptedModel(script), tools: [look] })],
    });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    return agent;
  };
  const warnings = async () =>
    (await entriesOfType(stage().look(), "a", "warning")).map(({ turnId, code, message }) => [turnId, code, message]);

  it("a warning of each call is a warning of the agent once in a turn", async () => {
    const agent = await started(({ messages }) => ({
      warnings: [ignored, { ...ignored, message: `message ${messages.length > 1 ? 2 : 1}` }],
      ...(messages.at(-1)?.role === "tool" ? { text: "done" } : { toolCalls: [{ name: "look" }] }),
    }));
    await agent.executeTurn("go").result;
    expect(await warnings()).toEqual([
      ["a#1", "model:unsupported", "temperature is ignored"],
      ["a#1", "model:unsupported", "message 1"],
      ["a#1", "model:unsupported", "message 2"],
    ]);
  });

  it("a model's warnings are limited, and do not pass for those of the runtime", async () => {
    const many = Array.from({ length: 50 }, (_, index) => ({ code: "compaction_failed", message: `number ${index}` }));
    const agent = await started(({ messages }) => ({
      warnings: many.map(({ code, message }) => ({ code, message: `${messages.length} ${message}` })),
      ...(messages.at(-1)?.role === "tool" ? { text: "done" } : { toolCalls: [{ name: "look" }] }),
    }));
    await agent.executeTurn("go").result;
    const told = await warnings();
    expect(told).toHaveLength(20);
    expect(new Set(told.map(([, code]) => code))).toEqual(new Set(["model:compaction_failed"]));
  });

  it("sources are stored with the message, and not sent to a model", async () => {
    const sources = [
      { type: "url", url: "https://a.example", title: "A" },
      { type: "document", id: "2", mediaType: "application/pdf" },
    ] as const;
    const model = scriptedModel(() => ({ text: "done", sources }));
    const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model })] });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    await agent.executeTurn("go").result;
    const answer = (await agent.getMessages()).at(-1);
    expect(answer).toMatchObject({ role: "assistant", content: "done", sources });
  });

  it.each([
    ["no lists", { warnings: "careful", sources: { type: "url" } }],
    ["items of a wrong form", { warnings: [null, 5, { code: 7 }, {}], sources: [null, "x", { type: "page" }] }],
    [
      "a source with a very long address",
      { sources: [{ type: "url", url: `https://a.example/${"x".repeat(10_000)}` }] },
    ],
  ])("%s are left out of the answer", async (_what, extras) => {
    const agent = await started({ text: "done", ...(extras as Partial<ModelResponse>) } as never);
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "completed", text: "done" });
    expect(await warnings()).toEqual([]);
    expect((await agent.getMessages()).at(-1)).not.toHaveProperty("sources");
  });
});
