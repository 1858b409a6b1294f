import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, type RunContext } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const canary = "canary-7f3a";

/** A tool that gets the secret and leaks it in one way. */
function leaking(name: string, execute: (apiKey: string, run: RunContext) => unknown) {
  return defineTool({
    name,
    description: "Leaks.",
    parameters: z.object({}),
    secrets: { apiKey: () => canary },
    execute: ({ apiKey }, run) => execute(apiKey, run),
    reconcile: async ({ apiKey }) => ({ done: true, result: `took effect with ${apiKey}` }),
  });
}

const tools = [
  leaking("gives", (apiKey) => ({ used: apiKey })),
  leaking("gives_much", (apiKey) => `${"x".repeat(20_000)}${apiKey.repeat(3_000)}`),
  leaking("gives_nothing_readable", (apiKey) => ({ [apiKey]: 1n })),
  leaking("throws", (apiKey) => {
    throw new Error(`refused ${apiKey}`);
  }),
  leaking("rejects_with_text", (apiKey) => Promise.reject(`refused ${apiKey}`)),
  leaking("tells", async (apiKey, run) => {
    run.progress({ [apiKey]: apiKey });
    await run.saveArtifact({ name: `for ${apiKey}`, contentType: "text/plain", content: apiKey });
    const { content } = await run.generate({ messages: [{ role: "user", content: `Is ${apiKey} good?` }] });
    return content;
  }),
  defineTool({
    name: "has_none",
    description: "Cannot be had.",
    parameters: z.object({}),
    secrets: { apiKey: () => Promise.reject(new Error(`no ${canary}`)) },
    execute: () => "ran",
  }),
];

describeRuntimes("a tool's secret reaches only the tool (S13)", (stage) => {
  it("and is not in events, journal, messages, artifacts, trace or prompts, however the tool leaks it", async () => {
    const round = { toolCalls: tools.map(({ name }) => ({ name })) };
    const model = scriptedModel(({ messages }, { index }) => {
      if (index === 0) return round;
      return messages.some(({ role }) => role === "tool") ? "The end." : "It is.";
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model, tools })] });
    const seen: unknown[] = [];
    runtime.subscribe((event) => {
      seen.push(event);
    });
    const agent = await runtime.agent("clerk", { agentId: "clerk-1" });
    await agent.start();
    const result = await agent.executeTurn("go").result;
    expect(result.status).toBe("completed");
    const artifacts = await agent.getArtifacts();
    expect(artifacts.map(({ name }) => name)).toContain("for [secret:apiKey]");
    seen.push(result, model.calls, await agent.getMessages(), await agent.getTrace(), await agent.getState());
    for (const { artifactId } of artifacts) seen.push(await agent.getArtifact(artifactId));
    seen.push(await entriesOf(runtime.stores, "clerk-1"));
    const texts = seen.map((value) => JSON.stringify(value));
    expect(texts.filter((text) => text.includes("canary")).map((text) => text.slice(0, 500))).toEqual([]);
    expect(texts.join("\n")).toContain("[secret:apiKey]");
    expect(texts.join("\n")).toContain('its secret \\"apiKey\\" could not be resolved');
  });
});
