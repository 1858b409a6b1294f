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

it("observers are called once a turn of the event loop, with the ids of what changed", async () => {
  const overview = new OverviewStore(createFakeClock());
  const seen: [OverviewState, string[]][] = [];
  const watching = overview.subscribe(({ context }, { agents }) => seen.push([context, [...agents]]));
  for (let index = 0; index < 100; index += 1) overview.noted(event(`a${index}`, "ready"));
  expect(Object.keys(overview.getSnapshot().context.agents)).toHaveLength(100);
  expect(seen).toEqual([]);
  await nextTurn();
  expect(seen).toHaveLength(1);
  expect(seen[0]?.[0]).toBe(overview.getSnapshot().context);
  expect(seen[0]?.[1]).toHaveLength(100);
  overview.noted(event("a7", "busy"));
  await nextTurn();
  expect(seen[1]?.[1]).toEqual(["a7"]);
  // Each snapshot stays as it was.
  expect([seen[0]?.[0].agents["a7"]?.status, seen[1]?.[0].agents["a7"]?.status]).toEqual(["ready", "busy"]);
  expect(seen[0]?.[0].agents["a8"]).toBe(seen[1]?.[0].agents["a8"]);
  watching.unsubscribe();
  overview.noted(event("a7", "ready"));
  await nextTurn();
  expect(seen).toHaveLength(2);
});

it("an observer of one agent is called for that agent only; nobody copies the others", async () => {
  const records = vi.spyOn(Object, "fromEntries");
  const overview = new OverviewStore(createFakeClock());
  const one = vi.fn<(agent: unknown) => void>();
  const count = vi.fn<(agents: number) => void>();
  overview.agent("a1").subscribe(one);
  overview.subscribe((_snapshot, { agents }) => count(agents.size));
  for (let turn = 0; turn < 10; turn += 1) {
    for (let index = 0; index < 2_000; index += 1) overview.noted(event(`a${index}`, "ready"));
    overview.noted(event("a2", turn % 2 === 0 ? "busy" : "ready"));
    await nextTurn();
  }
  expect(records).not.toHaveBeenCalled();
  records.mockRestore();
  expect(one).toHaveBeenCalledTimes(10);
  expect(count).toHaveBeenCalledTimes(10);
  overview.noted(event("a2", "busy"));
  await nextTurn();
  expect(one).toHaveBeenCalledTimes(10);
  expect(overview.agent("a2").get()).toMatchObject({ status: "busy" });
});

it("observers that take long are called less often, and then with everything", async () => {
  const clock = createFakeClock();
  const overview = new OverviewStore(clock);
  const seen: string[][] = [];
  overview.subscribe((_snapshot, { agents }) => {
    seen.push([...agents]);
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
  expect(seen).toEqual([["a"], ["b", "c"]]);
});

it("a selected part tells of its changes, and reading calls nobody", async () => {
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
  "the overview, watched",
  (stage) => {
    it("tells of the agents and budgets that a turn changes, down to the last change", async () => {
      const child = defineAgent({ name: "child", model: scriptedModel("seen") });
      const lead = defineAgent({
        name: "lead",
        model: scriptedModel([{ toolCalls: [{ name: "child", arguments: { input: "look" } }] }, "done"]),
        tools: [subagent(child)],
      });
      const runtime = await stage().open({ agents: [lead] });
      const { overview } = runtime;
      const agents = new Set<string>();
      const budgets = new Set<string>();
      const states: (string | undefined)[] = [];
      overview.subscribe((_snapshot, changes) => {
        for (const id of changes.agents) agents.add(id);
        for (const id of changes.budgets) budgets.add(id);
      });
      overview.agent("o").subscribe((agent) => states.push(agent?.status));
      const agent = await runtime.agent("lead", { agentId: "o" });
      await agent.start();
      await agent.executeTurn("go").result;
      await nextTurn();
      const { context } = overview.getSnapshot();
      expect([...agents].toSorted()).toEqual(Object.keys(context.agents).toSorted());
      expect([...budgets].toSorted()).toEqual(Object.keys(context.budgets).toSorted());
      expect(states.at(-1)).toBe("ready");
      expect(overview.budget("o").get()).toBe(context.budgets["o"]);
    });
  },
  ["memory"],
);
