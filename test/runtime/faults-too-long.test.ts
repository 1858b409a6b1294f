import * as fc from "fast-check";
import { expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentOptions,
  type CompactionStrategy,
  defineAgent,
  defineTool,
  dropOldest,
  type HistoryCompiler,
  ModelError,
  type ModelRequest,
  reactHistory,
  summarize,
  textOf,
  windowHistory,
} from "../../src/index.ts";
import type { Entry } from "../../src/state/index.ts";
import { type ScriptedReply, scriptedModel } from "../../src/testing/index.ts";
import { amount } from "../support/full.ts";
import { entriesOf, orderFault } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const conversations = amount(60, 15);

const tooLong = new ModelError("this model's maximum context length is 8 tokens", {
  retryable: false,
  status: 400,
  mayHaveBeenSent: false,
  details: { kind: "context_length" },
});

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen ".repeat(20),
});

/** The conversation before the refused turn, and how the agent compacts. */
const conversation = fc.record({
  /** Rounds of tool calls in each turn. */
  turns: fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 5 }),
  /** Rounds of the last turn before the model starts to refuse. */
  rounds: fc.integer({ min: 0, max: 3 }),
  strategy: fc.constantFrom("summarize", "dropOldest", "nothing", "none"),
  history: fc.constantFrom("full", "window", "react"),
  keep: fc.integer({ min: 1, max: 30 }),
  /** Whether summary calls are refused as well. */
  refusesSummaries: fc.boolean(),
});
type Conversation = typeof conversation extends fc.Arbitrary<infer Value> ? Value : never;

const strategies: Readonly<Record<string, CompactionStrategy>> = {
  summarize: summarize(),
  dropOldest: dropOldest(),
  // A custom strategy that reports success but drops no message.
  nothing: {
    name: "nothing",
    compact: async ({ messages }) => ({ through: messages[0]?.id ?? "", summary: "all of it", keepIds: [] }),
  },
};

function optionsOf({ strategy, history, keep }: Conversation): Partial<AgentOptions> {
  const compilers: Record<string, HistoryCompiler> = {
    window: windowHistory(6),
    react: reactHistory({ contextWindowSize: 4 }),
  };
  const compiler = compilers[history];
  const chosen = strategies[strategy];
  return {
    ...(compiler ? { history: compiler } : {}),
    ...(chosen ? { autoCompact: { strategy: chosen, keep } } : {}),
  };
}

describeRuntimes("a prompt that is too long", (stage) => {
  it("F25: refused repeatedly, it ends the turn after at most two compactions with a clear error; the agent stays usable", async () => {
    let number = 0;
    const property = fc.asyncProperty(conversation, async (drawn) => {
      let refuses = false;
      let left = 0;
      const answer = ({ tools }: ModelRequest): ScriptedReply => {
        if (!tools) return refuses && drawn.refusesSummaries ? { error: tooLong } : { text: "what was said" };
        if (left === 0) return refuses ? { error: tooLong } : { text: "done" };
        left -= 1;
        return { toolCalls: [{ name: "look" }, { name: "look" }] };
      };
      const model = scriptedModel(answer);
      const worker = defineAgent({ name: "worker", ...optionsOf(drawn), model, tools: [look] });
      const runtime = await stage().open({ agents: [worker] });
      const agentId = `w-${(number += 1)}`;
      const agent = await runtime.agent("worker", { agentId });
      await agent.start();
      for (const rounds of drawn.turns) {
        left = rounds;
        expect((await agent.executeTurn("go on").result).status).toBe("completed");
      }
      const before = model.calls.length;
      left = drawn.rounds;
      refuses = true;
      const result = await agent.executeTurn("and now").result;
      const entries = await entriesOf(stage().look(), agentId);
      expect(compactionsInVain(entries)).toBeLessThanOrEqual(2);
      const asked = model.calls.slice(before).filter(({ tools }) => tools).length;
      expect(asked).toBeLessThanOrEqual(drawn.rounds + 3);
      expect(result).toMatchObject({ status: "failed", stopReason: "error", error: { retryable: false } });
      expect(["context_length", "context_too_long"]).toContain(result.error?.code);
      expect(result.error?.message).toMatch(/too long for the model.*clear\(\) or resetConversation\(\)/);
      expect(agent.state.status).toBe("failed");
      expect(orderFault(await agent.getMessages())).toBeUndefined();

      refuses = false;
      expect(await agent.executeTurn("once more").result).toMatchObject({ status: "completed", text: "done" });
      await agent.clear();
      expect(await agent.executeTurn("anew").result).toMatchObject({ status: "completed", text: "done" });
      const said = (model.calls.at(-1)?.messages ?? []).map(({ content }) => textOf(content));
      expect(said).toEqual(["anew"]);
      for (const { reserved, activeCount } of await runtime.accounts(agentId)) {
        expect({ tokens: reserved.tokens, activeCount }).toEqual({ tokens: 0, activeCount: 0 });
      }
      await runtime.shutdown();
    });
    await fc.assert(property, { seed: 20_261_121, numRuns: conversations });
  });

  it("F25: in a window that fits a few messages the turn continues with fewer, and stops compacting when that does not help", async () => {
    let number = 0;
    let carriedOn = 0;
    const property = fc.asyncProperty(conversation, fc.integer({ min: 10, max: 400 }), async (drawn, fits) => {
      let left = 0;
      const answer = ({ tools, messages }: ModelRequest): ScriptedReply => {
        const size = messages.reduce((sum, { content }) => sum + textOf(content).length, 0);
        if (size > fits) return { error: tooLong };
        if (!tools || left === 0) return { text: "done" };
        left -= 1;
        return { toolCalls: [{ name: "look" }, { name: "look" }] };
      };
      const model = scriptedModel(answer);
      const worker = defineAgent({ name: "worker", ...optionsOf(drawn), model, tools: [look] });
      const runtime = await stage().open({ agents: [worker] });
      const agentId = `f-${(number += 1)}`;
      const agent = await runtime.agent("worker", { agentId });
      await agent.start();
      for (const rounds of [...drawn.turns, drawn.rounds]) {
        left = rounds;
        const { status, error } = await agent.executeTurn("go on").result;
        expect(["completed", "failed: context_length", "failed: context_too_long"]).toContain(
          error ? `${status}: ${error.code}` : status,
        );
      }
      const entries = await entriesOf(stage().look(), agentId);
      expect(compactionsInVain(entries)).toBeLessThanOrEqual(2);
      const types = entries.map(({ type }) => type).join(" ");
      carriedOn += types.split("context.compacted model.requested model.responded").length - 1;
      expect(orderFault(await agent.getMessages())).toBeUndefined();
      await agent.resetConversation();
      left = 0;
      expect((await agent.executeTurn("anew").result).status).toBe("completed");
      await runtime.shutdown();
    });
    await fc.assert(property, { seed: 20_261_121, numRuns: conversations });
    expect(carriedOn).toBeGreaterThan(conversations / 4);
  });
});

/** The highest number of compactions in one turn between two answers of the model. */
function compactionsInVain(entries: readonly Entry[]): number {
  let most = 0;
  let count = 0;
  for (const { type } of entries) {
    if (type === "turn.started" || type === "model.responded") count = 0;
    if (type === "context.compacted") count += 1;
    most = Math.max(most, count);
  }
  return most;
}
