// A user's program that names the type of every value it receives compiles with public names only.
import { expect, it } from "vitest";
import {
  type Account,
  type Agent,
  type AgentDefinition,
  type AgentLoop,
  type AgentOverview,
  type AgentRequest,
  type AgentStatus,
  type Artifact,
  approval,
  askUser,
  type BudgetOverview,
  type ClientTool,
  type CompactionStrategy,
  createAgent,
  createAgentLoop,
  createRuntime,
  defineAgent,
  defineTool,
  type DrainReport,
  dropOldest,
  type HistoryCompiler,
  type Hook,
  type HookContext,
  type HookDrafts,
  type LanguageModel,
  localQueues,
  type LoopResult,
  type LoopTurn,
  memoryStores,
  type Message,
  type ModelUse,
  offlineModel,
  type Overview,
  type Plugin,
  type Queues,
  run,
  type RunContext,
  type Runtime,
  type RuntimeHealth,
  type RuntimeMetrics,
  type Stores,
  subagent,
  type SubagentTool,
  type Tool,
  totalUse,
  type TraceEntry,
  type TroupeEvent,
  type Turn,
  type TurnRest,
  type TurnResult,
  type TurnSpending,
  windowHistory,
} from "troupe";
import { agentTransition, effectsAt, initialAgentState, type ReactEffects, type ReactState } from "troupe/react";
import {
  type AgentRecord,
  type AgentState,
  agentStateJson,
  type AgentStateJson,
  type AgentStateView,
  type AgentStep,
  type Limits,
  limitsOf,
  stepsOf,
  viewAgentState,
} from "troupe/state";
import { createFakeClock, type FakeClock, type ScriptedModel, scriptedModel } from "troupe/testing";
import { z } from "zod";

const execute = (_: { readonly text: string }, context: RunContext): string => context.idempotencyKey;
const beforeLlm: Hook<"beforeLlm"> = (draft: HookDrafts["beforeLlm"], context: HookContext) => {
  expect([draft, context]).toHaveLength(2);
};

it("definitions", () => {
  const tool: Tool<{ readonly text: string }> = defineTool({
    name: "say",
    description: "Says a text.",
    parameters: z.object({ text: z.string() }),
    execute,
  });
  const asks: ClientTool = askUser();
  const model: LanguageModel = offlineModel();
  const scripted: ScriptedModel = scriptedModel("Yes.");
  const plugin: Plugin = approval({ decide: () => true });
  const strategy: CompactionStrategy = dropOldest();
  const history: HistoryCompiler = windowHistory(20);
  const reader: AgentDefinition = defineAgent({ name: "reader", model: scripted });
  const child: SubagentTool = subagent(reader);
  const lead: AgentDefinition = defineAgent({
    name: "lead",
    model,
    tools: [tool, asks, child],
    hooks: { beforeLlm },
    plugins: [plugin],
    history,
    autoCompact: { strategy },
  });
  const clock: FakeClock = createFakeClock();
  const limits: Limits = limitsOf({ maxSteps: 3 }, clock.now());
  expect([lead.name, limits.maxSteps]).toEqual(["lead", 3]);
});

it("a runtime and its handles", async () => {
  const definition = defineAgent({ name: "desk", model: scriptedModel("Noted.") });
  const stores: Stores = memoryStores();
  const queues: Queues = localQueues();
  const runtime: Runtime = await createRuntime({ agents: [definition], stores, queues });
  const overview: Overview = runtime.overview;
  const agent: Agent = await runtime.agent("desk", { agentId: "desk" });
  await agent.start();
  const turn: Turn = agent.executeTurn("go");
  const events: TroupeEvent[] = [];
  for await (const event of turn) events.push(event);
  const rest: TurnRest = await turn.settled;
  const result: TurnResult = await turn.result;
  const status: AgentStatus = agent.state;
  const state: AgentState = await agent.getState();
  const view: AgentStateView = viewAgentState(state);
  const steps: AgentStep[] = state.execution ? stepsOf(state.execution) : [];
  const json: AgentStateJson = agentStateJson.toJSON(state);
  const messages: Message[] = await agent.getMessages();
  const artifact: Artifact | undefined = await agent.getArtifact("none");
  const trace: TraceEntry[] = await agent.getTrace();
  const records: AgentRecord[] = await runtime.list();
  const accounts: Account[] = await runtime.accounts("desk");
  const requests: AgentRequest[] = await runtime.requests();
  const spent: TurnSpending = result.spent;
  const { agents, budgets } = overview.getSnapshot().context;
  const watched: AgentOverview | undefined = agents["desk"];
  const budget: BudgetOverview | undefined = budgets["desk"];
  const use: ModelUse = totalUse(budget?.tree ?? {});
  const health: RuntimeHealth = await runtime.health();
  const metrics: RuntimeMetrics = await runtime.metrics();
  const report: DrainReport = await runtime.drain({ timeoutMs: 1_000 });
  expect([rest.status, status.status, view.status, json.agentId]).toEqual(["completed", "ready", "completed", "desk"]);
  expect([steps, messages, trace, records, accounts, requests].map((list) => list.length)).toEqual([1, 2, 2, 1, 1, 0]);
  expect(spent.tree.calls).toBe(1);
  expect([artifact, use.calls, watched, budget, health, metrics, report, events]).toHaveLength(8);
});

it("the short forms", async () => {
  const definition = defineAgent({ name: "desk", model: scriptedModel("Noted.") });
  const result: TurnResult = await run(definition, "go");
  const loop: AgentLoop = createAgentLoop(definition);
  const turn: LoopTurn = loop.executeTurn([{ role: "user", content: "go" }]);
  const added: LoopResult = await turn.result;
  const agent: Agent & { readonly runtime: Runtime } = await createAgent({ model: scriptedModel("Noted.") });
  await agent.runtime.shutdown();
  let state: ReactState = initialAgentState();
  state = agentTransition({ type: "user-message-received", timestamp: 1, messageId: "m", content: "go" })(state);
  const effects: ReactEffects = effectsAt(state);
  expect([result.text, added.text, effects.callLlm]).toEqual(["Noted.", "Noted.", true]);
});
