import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, elideResults, type ModelRequest, textOf } from "../../src/index.ts";
import { type ScriptedReply, scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const page = (at: number) => `page ${at} `.repeat(20);
const read = defineTool({
  name: "read",
  description: "Reads a page.",
  parameters: z.object({ at: z.number() }),
  effect: "none",
  execute: ({ at }) => page(at),
});

const results = ({ messages }: ModelRequest) =>
  messages.flatMap((message) => (message.role === "tool" ? textOf(message.content) : []));
const isElided = (text: string) => text.includes("no longer shown");

describeRuntimes("results that are no longer shown", (stage) => {
  it("come back when the model loads them, until the end of the turn", async () => {
    const prompts: ModelRequest[] = [];
    const answer = (request: ModelRequest): ScriptedReply => {
      prompts.push(request);
      if (prompts.length <= 4) return { toolCalls: [{ name: "read", arguments: { at: prompts.length } }] };
      if (prompts.length !== 5) return { text: "done" };
      const [first = ""] = results(request);
      const callId = /by its id (\S+)\.\]/.exec(first)?.[1];
      return { toolCalls: [{ name: "load_tool_results", arguments: { callIds: [callId ?? ""] } }] };
    };
    const history = elideResults({ keepRounds: 1, overCharacters: 50 });
    const clerk = defineAgent({ name: "clerk", model: scriptedModel(answer), tools: [read], history });
    const runtime = await stage().open({ agents: [clerk] });
    const agent = await runtime.agent("clerk", { agentId: "desk" });
    await agent.start();
    expect((await agent.executeTurn("Read on.").result).text).toBe("done");
    // Two rounds are shown, then the older one of them goes.
    expect(prompts.map((request) => results(request).map(isElided))).toEqual([
      [],
      [false],
      [false, false],
      [true, false, false],
      [true, true, false, false],
      [false, true, true, false, false],
    ]);
    expect(results(prompts[5] ?? { messages: [] })[0]).toBe(page(1));
    expect(prompts[0]?.tools?.map(({ name }) => name)).toEqual(["read", "list_tool_calls", "load_tool_results"]);

    await agent.executeTurn("And?").result;
    expect(isElided(results(prompts[6] ?? { messages: [] })[0] ?? "")).toBe(true);
    // The store has them all.
    const stored = (await agent.getMessages()).flatMap(({ role, content }) => (role === "tool" ? textOf(content) : []));
    expect(stored.some(isElided)).toBe(false);
  });
});
