import { expect, test } from "vitest";
import {
  type AgentMachinesAt,
  machinesAt,
  type MachineStates,
  transitionsOf,
} from "../../src/inspector/replay/machines.ts";
import { KeptJournal } from "../../src/inspector/feed/journals.ts";
import type { JournalRow } from "../../src/state/index.ts";
import { LiveViews, type TreeView } from "../machines/live-view.ts";
import { scenarios } from "../machines/scenarios.ts";
import { every, rows } from "../support/full.ts";
import { describeRuntimes } from "../support/runtimes.ts";

/** The innermost active state, as text. */
function stateOf(value: unknown): string {
  if (typeof value === "string") return value;
  const [[name, below] = ["", ""]] = Object.entries(value as object);
  return `${name}.${stateOf(below)}`;
}

/** All active states, outermost first. */
function pathsOf(value: unknown): string[] {
  const names = stateOf(value).split(".");
  return names.map((_name, index) => names.slice(0, index + 1).join("."));
}

function liveStates({ agent, turn, calls }: TreeView) {
  const named = Object.entries(calls).flatMap(([id, call]) => (call ? [[id, stateOf(call.value)]] : []));
  return { agent: stateOf(agent.value), turn: turn && stateOf(turn.value), calls: Object.fromEntries(named) };
}

function replayedStates({ agent, turn, calls }: AgentMachinesAt, open: readonly string[]) {
  const named = calls.flatMap(({ callId, path }) => (open.includes(callId) ? [[callId, path.at(-1)]] : []));
  return {
    agent: agent.path.at(-1),
    turn: turn?.isOver === false ? turn.path.at(-1) : undefined,
    calls: Object.fromEntries(named),
  };
}

describeRuntimes("machines at any entry", (stage) => {
  test.each(rows(scenarios, every(11)))("equal the states of the live ones: $name", async ({ run }) => {
    const live = new LiveViews();
    const runtime = await run(stage(), { onInspect: live.onInspect });
    let compared = 0;
    for (const { agentId } of await runtime.list()) {
      const journal = await runtime.stores.readJournal({ tenant: "default", agentId }, 1);
      for (const { seq } of journal.flatMap(({ entries }) => entries)) {
        const view = live.before(agentId, seq + 1);
        if (!view) continue;
        const states = liveStates(view);
        expect(replayedStates(machinesAt(agentId, journal, { seq }), Object.keys(states.calls))).toEqual(states);
        compared += 1;
      }
      const kept = new KeptJournal(agentId, journal);
      const history = await kept.machines();
      for (const { cursor, entries } of journal) {
        const folded = machinesAt(agentId, journal, { cursor });
        expect(folded).toEqual(machinesAt(agentId, journal, { seq: entries.at(-1)?.seq }));
        expect(history.at(cursor)).toEqual(statesOf(folded));
      }
      const stored = await runtime.stores.messages({ tenant: "default", agentId });
      expect(kept.messageIds.filter((id) => stored.some((one) => one.id === id))).toEqual(stored.map(({ id }) => id));
      expectTimes(agentId, journal);
    }
    expect(compared).toBeGreaterThan(3);
  });
});

function statesOf({ agent, turn, calls, last }: AgentMachinesAt): MachineStates {
  return {
    agent: { value: agent.value },
    turn: turn && { turnId: turn.turnId, value: turn.value },
    calls: calls.map(({ callId, name, value }) => ({ callId, name, value })),
    last,
  };
}

/** Each machine was in one outermost state at each time, and entered one by each transition. */
function expectTimes(agentId: string, journal: readonly JournalRow[]): void {
  const entries = journal.flatMap((row) => row.entries);
  const [first, last] = [entries[0], entries.at(-1)];
  if (!first || !last) return;
  const { agent, turn, at } = machinesAt(agentId, journal);
  const outermost = Object.entries(agent.visits).filter(([path]) => !path.includes("."));
  expect(outermost.reduce((sum, [, { ms }]) => sum + ms, 0)).toBe(last.at - first.at);
  const moves = transitionsOf(agentId, journal).filter(({ machine }) => machine === "agent");
  expect(agent.last).toMatchObject({ seq: moves.at(-1)?.seq });
  const entered = moves.flatMap(({ from, to }) => pathsOf(to).filter((path) => !pathsOf(from).includes(path)));
  const visits = Object.values(agent.visits).reduce((sum, { count }) => sum + count, 0);
  expect(visits).toBe(entered.length + 1);
  expect(at).toBe(last.at);
  if (!turn?.isOver) return;
  expect(["done", "stopped", "failed"]).toContain(turn.path.at(-1));
  expect(turn.last?.entry).toBe("turn.ended");
}

test("an agent without entries is in its initial state", () => {
  expect(machinesAt("desk", [])).toMatchObject({
    seq: 0,
    agent: { path: ["created"], last: null },
    turn: null,
    calls: [],
  });
});
