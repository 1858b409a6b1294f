// Two agents hand over to each other for many turns: the conversation grows by what was said, and the budgets hold.
import { expect, it } from "vitest";
import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool, textOf, type TurnResult } from "../../src/index.ts";
import { type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { amount } from "../support/full.ts";
import { describeRuntimes } from "../support/runtimes.ts";

type Members = Readonly<Record<"sales" | "support", AgentDefinition>> & { readonly model: ScriptedModel };

/** Two agents with one tool. A task of "n" means that n agents hand it over before one answers. */
function members(): Members {
  const all = new Map<string, AgentDefinition>();
  const handOver = defineTool({
    name: "hand_over",
    description: "Hands over.",
    parameters: z.object({ to: z.enum(["sales", "support"]), left: z.int() }),
    endsTurn: true,
    execute: async ({ to, left }, run) =>
      run.await(
        await run.spawn(all.get(to), `left: ${left}`, { key: to, history: "conversation", budget: { maxSteps: 2 } }),
      ),
  });
  const model = scriptedModel(({ messages }, { call }) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return `Refused: ${textOf(last.content)}`;
    const [, left = "0"] = /^left: (\d+)$/.exec(textOf(last?.content ?? "")) ?? [];
    if (left === "0") return `answer ${messages.length}`;
    const to = call?.agentName === "sales" ? "support" : "sales";
    return { toolCalls: [{ name: "hand_over", arguments: { to, left: Number(left) - 1 } }] };
  });
  for (const name of ["sales", "support"]) all.set(name, defineAgent({ name, tools: [handOver], model }));
  const [sales, support] = [all.get("sales"), all.get("support")] as [AgentDefinition, AgentDefinition];
  return { sales, support, model };
}

const tokensOf = ({ spent: { tree } }: TurnResult): number => tree.inputTokens + tree.outputTokens;

describeRuntimes(
  "a swarm",
  (stage) => {
    it("grows by one input and one answer for each turn, however often it hands over", async () => {
      const { sales, support, model } = members();
      const runtime = await stage().open({ agents: [sales, support] });
      const agent = await runtime.agent("sales", { agentId: "a" });
      await agent.start();
      const turns = amount(200, 50);
      for (let turn = 1; turn <= turns; turn += 1) {
        const result = await agent.executeTurn(`left: ${1 + (turn % 2)}`).result;
        expect(result).toMatchObject({ status: "completed", steps: 1 });
        expect(result.text).toMatch(/^answer \d+$/);
      }
      // The last agent sees each earlier turn as one input and one answer, then this turn's input and what each agent was told.
      const seen = model.calls.at(-1)?.messages.map(({ role }) => role) ?? [];
      const handovers = 1 + (turns % 2);
      expect(seen).toHaveLength(2 * (turns - 1) + 1 + handovers);
      const own = await agent.getMessages();
      expect(own).toHaveLength(4 * turns);
      const { byModel } = (await agent.turn(`a#${turns}`).result).spent;
      expect(Object.values(byModel).reduce((sum, { calls }) => sum + calls, 0)).toBe(1 + handovers);
    });

    it("ends at the depth of the tree with a result that the last agent reads, and at the budget of the first", async () => {
      const { sales, support } = members();
      const runtime = await stage().open({ agents: [sales, support] });
      const agent = await runtime.agent("sales", { agentId: "a" });
      await agent.start();
      const { status, text } = await agent.executeTurn("left: 9").result;
      expect([status, text]).toEqual(["completed", expect.stringMatching(/^Refused: .*depth 4.*allows 3/)]);
      expect(await runtime.list()).toHaveLength(4);
      const unlimited = await agent.executeTurn("left: 2").result;
      for (const share of [0.2, 0.5, 0.9]) {
        const maxTokens = Math.floor(tokensOf(unlimited) * share);
        const limited = await agent.executeTurn("left: 2", { budget: { maxTokens } }).result;
        expect(tokensOf(limited)).toBeLessThanOrEqual(maxTokens);
        expect(limited.text).not.toMatch(/^answer/);
      }
    });
  },
  ["memory", "sqlite"],
);
