import { expect, it } from "vitest";
import { createRuntime, defineAgent, subagent } from "../../src/index.ts";
import { type BudgetFrame, createInspector, serveInspector } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { listenTo } from "./visitors.ts";

const usage = { inputTokens: 100, outputTokens: 20 };

/** A lead with limits for life and turn, and a child with its own. */
async function spendingTeam(reached?: () => Promise<void>) {
  const child = defineAgent({
    name: "reader",
    model: scriptedModel(async () => {
      await reached?.();
      return { text: "read", usage };
    }),
    price: { inputPerMillion: 1, outputPerMillion: 5 },
  });
  const lead = defineAgent({
    name: "lead",
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? { text: "done", usage }
        : { toolCalls: [{ name: "reader", arguments: { input: "x" } }], usage },
    ),
    price: { inputPerMillion: 1, outputPerMillion: 5 },
    maxOutputTokens: 300,
    tools: [subagent(child, { budget: { maxTokens: 5_000 } })],
    budget: { maxTokens: 20_000, maxSteps: 4 },
  });
  const inspector = createInspector();
  const runtime = await createRuntime({ agents: [lead], onInspect: inspector.onInspect });
  const stop = inspector.watch(runtime);
  const agent = await runtime.agent("lead", { agentId: "desk", budget: { maxCost: 1 } });
  await agent.start();
  return { inspector, runtime, agent, stop };
}

const rowOf = (frames: readonly BudgetFrame[], agentId: string, account: string, limit: string) =>
  frames
    .find(({ sessionId }) => sessionId === agentId)
    ?.rows.find((row) => row.account === account && row.limit === limit);

it("M7: the accounts of each watched agent are told, with what is used, reserved and unconfirmed of each limit", async () => {
  const seen: BudgetFrame[][] = [];
  const team = await spendingTeam(async () => void seen.push(team.inspector.budgets.frames()));
  await team.agent.executeTurn("go").result;
  const childId = (await team.runtime.list()).find(({ parentAgentId }) => parentAgentId === "desk")?.agentId ?? "";
  // While the child's call was out, it was reserved on every account above.
  const during = seen[0] ?? [];
  expect(rowOf(during, childId, "whole life", "maxTokens")).toMatchObject({ used: 0, max: 5_000, unconfirmed: 0 });
  expect(rowOf(during, childId, "whole life", "maxTokens")?.reserved).toBeGreaterThan(0);
  expect(rowOf(during, "desk", "turn 1", "maxTokens")?.reserved).toBeGreaterThan(0);
  const after = team.inspector.budgets.frames();
  expect(rowOf(after, "desk", "turn 1", "maxTokens")).toMatchObject({ used: 360, reserved: 0, max: 20_000 });
  expect(rowOf(after, "desk", "turn 1", "maxSteps")).toMatchObject({ used: 2, max: 4 });
  expect(rowOf(after, "desk", "whole life", "maxCostMicros")).toMatchObject({ used: 600, max: 1_000_000 });
  expect(rowOf(after, childId, "whole life", "maxTokens")).toMatchObject({ used: 120, max: 5_000 });
  team.stop();
  await team.agent.executeTurn("again").result;
  expect(team.inspector.budgets.frames()).toEqual(after);
  await team.runtime.shutdown();
});

it("only a client that asks for budgets gets their frames, late ones as they stand", async () => {
  const { inspector, runtime, agent } = await spendingTeam();
  const server = await serveInspector(inspector);
  const plain = await listenTo(server.socketUrl);
  const asking = await listenTo(`${server.socketUrl}&budgets=1`);
  await agent.executeTurn("go").result;
  await asking.until((text) => text.includes('"troupe.budgets"') && text.includes('"turn 1"'));
  const late = await listenTo(`${server.socketUrl}&budgets=1`);
  const frame = await late.until((text) => text.includes('"troupe.budgets"') && text.includes('"sessionId":"desk"'));
  expect(rowOf([JSON.parse(frame) as BudgetFrame], "desk", "turn 1", "maxTokens")).toMatchObject({ used: 360 });
  await plain.until((text) => text.includes('"turn.ended"'));
  expect(plain.texts.filter((text) => text.includes("troupe."))).toEqual([]);
  await runtime.shutdown();
  await server.close();
});

it("no contents are in them: names and models of whoever spends stay out", async () => {
  const { inspector, runtime, agent } = await spendingTeam();
  await agent.executeTurn("secret-canary").result;
  const text = JSON.stringify(inspector.budgets.frames());
  expect(text).not.toMatch(/canary|scripted|reader"/);
  await runtime.shutdown();
});
