import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { defineAgent, type OverviewState, subagent } from "../../src/index.ts";
import { OverviewStore } from "../../src/runtime/projections/overview.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";
import type { TroupeEvent } from "../../src/state/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const event = (agentId: string, status: string): TroupeEvent =>
  ({
    type: "lifecycle.changed",
    status,
    agentId,
    agentName: "child",
    parentAgentId: null,
    rootAgentId: agentId,
    sessionId: null,
    turnId: null,
    step: null,
    at: 0,
    cursor: null,
  }) as TroupeEvent;

it("observers are called once per turn of the event loop, and a snapshot never changes", async () => {
  const overview = new OverviewStore(createFakeClock());
  const seen: OverviewState[] = [];
  const watching = overview.subscribe(({ context }) => seen.push(context));
  for (let index = 0; index < 100; index += 1) overview.noted(event(`a${index}`, "ready"));
  expect(Object.keys(overview.getSnapshot().context.agents)).toHaveLength(100);
  expect(seen).toEqual([]);
  await nextTurn();
  expect(seen).toEqual([overview.getSnapshot().context]);
  expect(seen[0]).toBe(overview.getSnapshot().context);
  overview.noted(event("a7", "busy"));
  await nextTurn();
  expect(seen.map(({ agents }) => agents["a7"]?.status)).toEqual(["ready", "busy"]);
  expect(seen[0]?.agents["a8"]).toBe(seen[1]?.agents["a8"]);
  watching.unsubscribe();
  overview.noted(event("a7", "ready"));
  await nextTurn();
  expect(seen).toHaveLength(2);
});

it("an observer of one agent is called only for that agent", async () => {
  const overview = new OverviewStore(createFakeClock());
  const seen: unknown[] = [];
  overview.agent("a1").subscribe((agent) => seen.push(agent?.status));
  for (const status of ["ready", "busy"]) {
    overview.noted(event("a1", status));
    overview.noted(event("a2", status));
    await nextTurn();
  }
  overview.noted(event("a2", "ready"));
  await nextTurn();
  expect(seen).toEqual(["ready", "busy"]);
  expect(overview.agent("a2").get()).toMatchObject({ status: "ready" });
  expect([overview.agent("constructor").get(), overview.budget("constructor").get()]).toEqual([undefined, undefined]);
});

it("an observer is not called for changes before it subscribed", async () => {
  const overview = new OverviewStore(createFakeClock());
  const seen: unknown[] = [];
  overview.noted(event("a", "ready"));
  overview.agent("a").subscribe((agent) => seen.push(agent?.status));
  await nextTurn();
  expect(seen).toEqual([]);
});

it("slow observers are called less often, each time with the latest state", async () => {
  const clock = createFakeClock();
  const overview = new OverviewStore(clock);
  const seen: string[][] = [];
  overview.subscribe(({ context }) => {
    seen.push(Object.keys(context.agents));
    clock.advance(10);
  });
  overview.noted(event("a", "ready"));
  await nextTurn();
  overview.noted(event("b", "ready"));
  await nextTurn();
  overview.noted(event("c", "ready"));
  clock.advance(199);
  expect(seen).toEqual([["a"]]);
  clock.advance(1);
  expect(seen).toEqual([["a"], ["a", "b", "c"]]);
});

function statusWithoutB({ agents }: OverviewState): string | undefined {
  if (agents["b"]) throw new Error("b is unexpected");
  return agents["a"]?.status;
}

it("a selector that throws causes a warning and does not affect other observers", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
  const overview = new OverviewStore(createFakeClock());
  const seen: string[] = [];
  overview.select(statusWithoutB).subscribe((status) => seen.push(`a is ${status}`));
  overview.subscribe(({ context }) => seen.push(`${Object.keys(context.agents).length} agents`));
  for (const agentId of ["a", "b"]) {
    overview.noted(event(agentId, "ready"));
    await nextTurn();
  }
  expect(seen.toSorted()).toEqual(["1 agents", "2 agents", "a is ready"]);
  expect(warn).toHaveBeenCalledWith(expect.stringContaining("a selector of runtime.overview"), expect.anything());
  warn.mockRestore();
});

it("a selected part reports its changes, and reading it calls no observer", async () => {
  const overview = new OverviewStore(createFakeClock());
  const busy = overview.select(({ agents }) => Object.values(agents).filter(({ status }) => status === "busy").length);
  const seen: number[] = [];
  busy.subscribe((value) => seen.push(value));
  overview.noted(event("a", "ready"));
  await nextTurn();
  overview.noted(event("a", "busy"));
  expect([busy.get(), seen]).toEqual([1, []]);
  await nextTurn();
  expect(seen).toEqual([1]);
});

describeRuntimes(
  "observers of the overview",
  (stage) => {
    it("receive the agents and budgets that a turn changes, down to the last change", async () => {
      const child = defineAgent({ name: "child", model: scriptedModel("seen") });
      const lead = defineAgent({
        name: "lead",
        model: scriptedModel([{ toolCalls: [{ name: "child", arguments: { input: "look" } }] }, "done"]),
        tools: [subagent(child)],
      });
      const runtime = await stage().open({ agents: [lead] });
      const { overview } = runtime;
      const states: (string | undefined)[] = [];
      const spent: (number | undefined)[] = [];
      overview.agent("o").subscribe((agent) => states.push(agent?.status));
      overview.budget("o").subscribe((budget) => spent.push(budget?.accounts["turn:o#1"]?.used.toolCalls));
      const agent = await runtime.agent("lead", { agentId: "o" });
      await agent.start();
      await agent.executeTurn("go").result;
      await nextTurn();
      const { context } = overview.getSnapshot();
      expect(Object.keys(context.budgets).toSorted()).toEqual(Object.keys(context.agents).toSorted());
      expect([states.at(-1), spent.at(-1)]).toEqual(["ready", 1]);
      expect(overview.budget("o").get()).toBe(context.budgets["o"]);
    });
  },
  ["memory"],
);
