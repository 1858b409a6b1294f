import { array, assert as check, integer, property } from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, memoryStores, subagent } from "../../src/index.ts";
import { AmountAxis, TimeAxis } from "../../src/inspector/run-model/axis.ts";
import { limitUses } from "../../src/inspector/run-model/limit-use.ts";
import { countBelow, EventPlaces, eventText, filteredEvents } from "../../src/inspector/run-model/event-rows.ts";
import { type RunAgentRecord, type RunEntry, RunLog, type RunRow } from "../../src/inspector/run-model/run-log.ts";
import { RunMoments } from "../../src/inspector/run-model/run-moments.ts";
import { type Span, Timeline } from "../../src/inspector/run-model/timeline.ts";
import { agentOrders, sizeIn } from "../../src/inspector/run-model/agent-order.ts";
import { type TreeOptions, treeRows } from "../../src/inspector/run-model/tree-rows.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { amount } from "../support/full.ts";

const tenant = "default";
const allAgents: TreeOptions = {
  text: "",
  state: null,
  among: null,
  closed: new Set(),
  order: "start",
  timeOf: () => Number.MAX_SAFE_INTEGER,
};

/** A lead with this many readers, each of which calls tools of which one fails, under budgets. */
async function recordedRun(readers: number) {
  const stores = memoryStores();
  const price = { inputPerMillion: 1, outputPerMillion: 2 };
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({ at: z.string() }),
    effect: "none",
    execute: ({ at }) => {
      if (at === "nowhere") throw new Error("the run is missing");
      return "seen";
    },
  });
  const reader = defineAgent({
    name: "reader",
    price,
    tools: [look],
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? "read"
        : { toolCalls: ["here", "nowhere"].map((at) => ({ name: "look", arguments: { at } })) },
    ),
  });
  const lead = defineAgent({
    name: "lead",
    price,
    budget: { maxTokens: 10_000_000, maxTreeSteps: 5_000 },
    tools: [subagent(reader, { budget: { maxSteps: 4 }, policy: { maxChildren: 500 } })],
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? "done"
        : {
            toolCalls: Array.from({ length: readers }, (_, file) => ({
              name: "reader",
              arguments: { input: `${file}` },
            })),
          },
    ),
  });
  const runtime = await createRuntime({ agents: [lead], stores });
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  await agent.executeTurn("go").result;
  const records = await stores.listAgents({ tenant, rootAgentId: "desk", limit: 10_000 });
  const rows = await stores.readTree(tenant, "desk", 0, 100_000);
  const accounts = await stores.accounts(tenant, "desk");
  await runtime.shutdown();
  const agents = records
    .toSorted((one, other) => one.depth - other.depth)
    .map(
      (record): RunAgentRecord => ({
        ...record,
        name: record.definition.name,
        definition: record.definition.hash,
        isBackground: record.background !== undefined,
      }),
    );
  return { agents, rows: rows as unknown as RunRow[], accounts };
}

const small = await recordedRun(6);
const large = await recordedRun(120);

function logOf({ agents, rows }: { agents: readonly RunAgentRecord[]; rows: readonly RunRow[] }): RunLog {
  const log = new RunLog();
  log.addAgents(agents);
  log.append(structuredClone(rows));
  return log;
}

describe("the log", () => {
  test("adds each row once, also if rows come again", () => {
    const log = logOf(small);
    const { length } = log;
    log.append(small.rows);
    log.append(small.rows.slice(3));
    expect(log.length).toBe(length);
    expect(log.head).toBe(small.rows.at(-1)?.cursor);
  });

  test("finds the entries up to a cursor and a time", () => {
    const log = logOf(small);
    for (const { cursor } of small.rows) {
      const count = log.countUpTo(cursor);
      expect(log.cursorOf(count - 1)).toBe(cursor);
      expect(log.cursorOf(count) === 0 || log.cursorOf(count) > cursor).toBe(true);
    }
    expect(log.countUntil(log.endedAt)).toBe(log.length);
    expect(log.countUntil(log.startedAt - 1)).toBe(0);
  });
});

describe("a moment", () => {
  test("is the same from the beginning, forwards, and from a keyframe", () => {
    const log = logOf(large);
    const moments = new RunMoments(log);
    moments.at(log.length);
    check(
      property(array(integer({ min: 0, max: log.length }), { minLength: 1, maxLength: 6 }), (places) => {
        for (const place of places) {
          const found = moments.at(place);
          const fresh = new RunMoments(log).at(place);
          expect(found.agents).toEqual(fresh.agents);
          expect(found.accounts.accounts).toEqual(fresh.accounts.accounts);
        }
      }),
      { numRuns: amount(40, 8) },
    );
  });

  test.each([
    ["small", small],
    ["large", large],
  ] as const)("of the newest row of the %s run has the stored accounts", (_name, run) => {
    const log = logOf(run);
    const moments = new RunMoments(log);
    const { accounts } = moments.at(log.length);
    expect(run.accounts.length).toBeGreaterThan(5);
    for (const { id, used, reserved } of run.accounts) {
      const now = accounts.account(id);
      // Working time is not exact.
      const activeMs = expect.any(Number);
      expect({ id, ...now?.used, reserved: now?.reserved.tokens }).toEqual({
        id,
        ...used,
        activeMs,
        reserved: reserved.tokens,
      });
    }
  });

  test("contains the activity of each agent", () => {
    const log = logOf(small);
    const moments = new RunMoments(log);
    const phases = new Set<string>();
    for (let count = 0; count <= log.length; count += 1) {
      for (const agent of moments.at(count).agents) if (agent) phases.add(agent.phase);
    }
    expect([...phases].toSorted()).toEqual(["created", "done", "ready", "starting", "thinking", "tools", "waiting"]);
    const [lead] = moments.at(log.length).agents;
    expect(lead).toMatchObject({ phase: "done", turn: 1, steps: 2, toolCalls: 6, running: [], awaits: 0 });
  });
});

describe("the tree", () => {
  test("shows agents below their parents, collapsed ones without descendants", () => {
    const log = logOf(small);
    const moment = new RunMoments(log).at(log.length);
    const rows = treeRows(log, moment, allAgents);
    expect(rows.map(({ level }) => level)).toEqual([1, 2, 2, 2, 2, 2, 2]);
    expect(rows.map(({ place, setSize }) => `${place}/${setSize}`).slice(1, 3)).toEqual(["1/6", "2/6"]);
    expect(treeRows(log, moment, { ...allAgents, closed: new Set(["desk"]) })).toHaveLength(1);
  });

  test("shows matching agents with their ancestors, which do not match", () => {
    const log = logOf(small);
    const moment = new RunMoments(log).at(log.length);
    const fitting = (options: Partial<TreeOptions>): (readonly [string, boolean])[] =>
      treeRows(log, moment, { ...allAgents, ...options }).map(({ agent, isMatch }) => [agent.name, isMatch] as const);
    expect(fitting({ text: "reader" })).toHaveLength(7);
    expect(fitting({ text: "nobody" })).toEqual([]);
    expect(fitting({ state: "failed" })).toEqual([]);
    expect(fitting({ state: "busy", text: "reader" })).toEqual([]);
    expect(fitting({ among: new Set([3]) })).toEqual([
      ["lead", false],
      ["reader", true],
    ]);
  });

  test("orders siblings by their size, and shows all agents of the run at any cursor", () => {
    const log = logOf(large);
    const moments = new RunMoments(log);
    for (let count = 0; count <= log.length; count += 997) {
      const moment = moments.at(count);
      expect(treeRows(log, moment, allAgents)).toHaveLength(log.agents.length);
      for (const order of agentOrders) {
        const options = { ...allAgents, order, timeOf: () => moment.time };
        const [, ...readers] = treeRows(log, moment, options);
        const sizes = readers.map(({ agent }) => sizeIn(order, agent, { ...options, log, moment }));
        expect(sizes).toEqual(sizes.toSorted((one, other) => other - one));
      }
    }
  });
});

test("a reached limit is full, and reservations count", () => {
  const log = logOf(small);
  const moments = new RunMoments(log);
  let mostReserved = 0;
  for (let count = 0; count <= log.length; count += 1) {
    const root = moments.at(count).accounts.accounts[0];
    const tokens = root && limitUses(root, log.endedAt).find(({ limit }) => limit === "maxTokens");
    mostReserved = Math.max(mostReserved, tokens?.reserved ?? 0);
  }
  expect(mostReserved).toBeGreaterThan(0);
});

function modelSpan(start: number, end: number): Span {
  const ids = { callId: null, first: 0, last: 1, lane: 0 };
  return {
    kind: "model",
    label: "model",
    start,
    end,
    isFailed: false,
    tokens: 0,
    costMicros: 0,
    isUnpriced: false,
    ...ids,
  };
}

describe("the timeline", () => {
  test("has an ended span for each model call and tool, and lanes for concurrent ones", () => {
    const log = logOf(small);
    const timeline = new Timeline(log);
    expect(timeline.update()).toBe(true);
    expect(timeline.update()).toBe(false);
    const spans = [...timeline.all()];
    const count = (type: RunEntry["type"]): number => log.entries.filter((entry) => entry.type === type).length;
    expect(spans.filter(({ kind }) => kind === "model")).toHaveLength(count("model.responded"));
    expect(spans.filter(({ kind }) => kind === "tool")).toHaveLength(count("tool.started"));
    expect(spans.filter(({ kind, isFailed }) => kind === "tool" && isFailed)).toHaveLength(6);
    expect(spans.filter(({ kind }) => kind === "child")).toMatchObject([{ label: "waits for 6 subagents" }]);
    expect(spans.every(({ start, end }) => end >= start && Number.isFinite(end))).toBe(true);
    expect(timeline.lanesOf(1)).toBe(2);
  });

  test("folds idle time, and maps each position back to its time", () => {
    const axis = new TimeAxis([modelSpan(0, 100), modelSpan(60_000, 60_400)], { start: 0, end: 60_400 });
    expect(axis.gaps).toHaveLength(1);
    expect(axis.length).toBeLessThan(2_000);
    for (const time of [0, 50, 100, 30_000, 60_000, 60_123, 60_400]) {
      expect(axis.timeAt(axis.positionOf(time))).toBeCloseTo(time, 3);
    }
    expect(axis.positionOf(60_000) - axis.positionOf(100)).toBeCloseTo(axis.gaps[0]?.width ?? 0, 6);
  });

  test("lets a wait at the end of an open run grow until it takes half of the axis", () => {
    const axisAt = (end: number) => new TimeAxis([modelSpan(0, 8_000)], { start: 0, end, isOpen: true });
    for (const [end, length] of [
      [8_500, 8_500],
      [12_000, 12_000],
      [16_000, 16_000],
      [60_000, 16_000],
    ] as const) {
      const axis = axisAt(end);
      expect(axis.length).toBeCloseTo(length, 6);
      expect(axis.positionOf(end)).toBeCloseTo(axis.length, 6);
      expect(axis.timeAt(axis.length)).toBeCloseTo(end, 3);
    }
    expect(axisAt(60_000).gaps).toMatchObject([{ from: 8_000, to: 60_000 }]);
    expect(new TimeAxis([modelSpan(0, 8_000)], { start: 0, end: 60_000 }).length).toBeLessThan(9_000);
  });
});

test("an axis of tokens has the calls of each agent one after the other, each as wide as its own tokens", () => {
  const call = (start: number, tokens: number): Span => ({ ...modelSpan(start, start + 100), tokens });
  const [first, second, other] = [call(0, 500), call(9_000, 1_000), call(50, 30)];
  const wait: Span = { ...modelSpan(0, 9_100), kind: "child" };
  const axis = new AmountAxis([[first, wait, second], [other]], ({ tokens }) => tokens);
  expect(axis.length).toBe(1_500);
  expect([first, wait, second, other].map((span) => axis.rangeOf(span))).toEqual([
    { from: 0, to: 500 },
    undefined,
    { from: 500, to: 1_500 },
    { from: 0, to: 30 },
  ]);
});

/** Whether the row of an entry contains the word `look`. */
function showsLook(entry: RunEntry): boolean {
  const { name, detail } = eventText(entry);
  return /\blook\b/.test(`${name} ${detail}`);
}

describe("events", () => {
  test("are filtered by type, name and agent", () => {
    const log = logOf(small);
    const all = { text: "", agents: null, groups: new Set<never>() };
    expect(filteredEvents(log, all)).toBeNull();
    const looked = filteredEvents(log, { ...all, text: "look" }) ?? [];
    expect([...looked]).toEqual(log.entries.flatMap((entry, place) => (showsLook(entry) ? [place] : [])));
    const typedOn = new EventPlaces(log, { ...all, text: "lo" });
    expect(new EventPlaces(log, { ...all, text: "look" }, typedOn).update()).toEqual(looked);
    const ofLead = filteredEvents(log, { ...all, agents: new Set([0]) }) ?? [];
    expect([...ofLead].every((place) => log.agentOf(place) === 0)).toBe(true);
    const models = filteredEvents(log, { ...all, text: "reader responded" }) ?? [];
    // Of the twelve readers, and of the lead, which calls them.
    expect([...models].map((place) => log.entries[place]?.type)).toEqual(
      Array.from({ length: 13 }, () => "model.responded"),
    );
  });

  test("have an index among the filtered ones", () => {
    const places = Uint32Array.of(2, 5, 9);
    expect([0, 2, 3, 5, 9, 10].map((place) => countBelow(places, place))).toEqual([0, 0, 1, 1, 2, 3]);
  });

  test("all have a text", () => {
    const log = logOf(small);
    for (const entry of log.entries) expect(eventText(entry).title).not.toBe("");
  });
});
