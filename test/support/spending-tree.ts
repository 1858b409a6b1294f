import { expect } from "vitest";
import {
  type Account,
  type Agent,
  type AgentDefinition,
  type AgentOptions,
  type Budget,
  defineAgent,
  type Runtime,
  subagent,
} from "../../src/index.ts";
import { type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { asks, leadScript } from "./leads.ts";
import type { Stage } from "./runtimes.ts";

export const price = { inputPerMillion: 1, outputPerMillion: 10 };
export const usage = { inputTokens: 100, outputTokens: 100 };
/** Eight calls of the only child. */
export const eight = Array.from({ length: 8 }, (_, index) => asks("child", `part ${index}`));

export interface TreeOptions {
  readonly child: AgentDefinition;
  readonly lead: Partial<AgentOptions> & { readonly budget: Budget };
  readonly childBudget?: Budget;
  /** Default: eight. */
  readonly calls?: typeof eight;
}

export interface SpendingTree {
  readonly runtime: Runtime;
  readonly agent: Agent;
  readonly model: ScriptedModel;
  /** Asserts that no commit left an account over its limit, and that all are at rest. Returns the number of checks. */
  readonly looked: () => Promise<number>;
}

/** A lead, `root-1`, and its children; the tree's accounts are checked after each of its commits. */
export async function startTree(stage: Stage, options: TreeOptions): Promise<SpendingTree> {
  const { child, lead, childBudget, calls = eight } = options;
  const model = scriptedModel(leadScript(calls, { usage }));
  const tools = [subagent(child, childBudget ? { budget: childBudget } : {})];
  const runtime = await stage.open({ agents: [defineAgent({ name: "lead", price, tools, ...lead, model })] });
  const looks: Promise<string[]>[] = [];
  let last = "";
  runtime.subscribe(({ cursor }) => {
    const row = cursor?.split(".")[0] ?? last;
    if (row !== last) looks.push(runtime.accounts("root-1").then(overspent));
    last = row;
  });
  const agent = await runtime.agent("lead", { agentId: "root-1" });
  await agent.start();
  const looked = async (): Promise<number> => {
    expect((await Promise.all(looks)).flat()).toEqual([]);
    await atRest(runtime);
    return looks.length;
  };
  return { runtime, agent, model, looked };
}

/** Asserts that no account has a reservation, active work or a turn that waits. */
export async function atRest(runtime: Runtime): Promise<void> {
  for (const account of await runtime.accounts("root-1")) {
    expect(account).toMatchObject({ reserved: { tokens: 0, costMicros: 0 }, activeCount: 0 });
    expect(account.line?.waiting ?? 0).toBe(0);
  }
}

/** The faults of the accounts: more used and reserved than a limit allows. */
function overspent(accounts: readonly Account[]): string[] {
  return accounts.flatMap(({ id, limits, used, reserved }) => [
    ...(isOver(used.tokens + reserved.tokens, limits.maxTokens) ? [`${id}: tokens`] : []),
    ...(isOver(used.costMicros + reserved.costMicros, limits.maxCostMicros) ? [`${id}: cost`] : []),
    ...(isOver(used.steps, limits.maxSteps) ? [`${id}: steps`] : []),
    ...(isOver(used.treeSteps, limits.maxTreeSteps) ? [`${id}: steps of the tree`] : []),
    ...(isOver(used.treeToolCalls, limits.maxTreeToolCalls) ? [`${id}: tool calls of the tree`] : []),
  ]);
}

function isOver(amount: number, limit: number | undefined): boolean {
  return limit !== undefined && amount > limit;
}
