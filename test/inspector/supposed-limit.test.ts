import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  type Budget,
  createRuntime,
  defineAgent,
  defineTool,
  memoryStores,
  subagent,
} from "../../src/index.ts";
import type { LimitName } from "../../src/budget/index.ts";
import { type RunAgentRecord, type RunEntryOf, RunLog, type RunRow } from "../../src/inspector/run-model/run-log.ts";
import { RunMoments } from "../../src/inspector/run-model/run-moments.ts";
import { Supposition, type SupposedRun } from "../../src/inspector/run-model/supposed-limit.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";

const tenant = "default";
const usage = { inputTokens: 100, outputTokens: 60 };
const price = { inputPerMillion: 10, outputPerMillion: 50 };
const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

interface Recorded {
  readonly log: RunLog;
  readonly moments: RunMoments;
}

interface Life {
  /** Of the agent's lifetime. */
  readonly budget: Budget;
  /** For its second turn. */
  readonly changed: Budget;
}

/** The journal of one turn of `desk` as a page reads it; of two turns if its lifetime has a budget. */
async function recorded(definition: AgentDefinition, life?: Life, afterTurn?: () => void): Promise<Recorded> {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [definition], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent(definition.name, {
    agentId: "desk",
    ...(life ? { budget: life.budget } : {}),
  });
  await agent.start();
  await agent.executeTurn("go").result;
  if (life) {
    await agent.setBudget(life.changed);
    await agent.executeTurn("go").result;
  }
  afterTurn?.();
  const agents = () => stores.listAgents({ tenant, rootAgentId: "desk", limit: 1_000 });
  while ((await agents()).some(({ openTurnId }) => openTurnId !== null)) await loopTurns(5);
  const records = await agents();
  const log = new RunLog();
  log.addAgents(
    records.map(
      (record): RunAgentRecord => ({
        ...record,
        name: record.definition.name,
        definition: record.definition.hash,
        isBackground: record.background !== undefined,
      }),
    ),
  );
  log.append((await stores.readTree(tenant, "desk", 0, 100_000)) as unknown as RunRow[]);
  const moments = new RunMoments(log);
  moments.learn(await stores.accounts(tenant, "desk"));
  return { log, moments };
}

function suppose({ log, moments }: Recorded, limit: LimitName, max: number, accountId = "turn:desk#1"): SupposedRun {
  const supposition = new Supposition(log, moments.stateAt(log.first).accounts, { accountId, limit, max });
  supposition.foldOn(log.length);
  return supposition.run;
}

/** The entry where a real run was first refused by a limit of that kind. */
function refusalOf({
  log,
}: Recorded): { agentId: string | undefined; entry: RunEntryOf<"intent.refused"> } | undefined {
  for (let place = 0; place < log.length; place += 1) {
    const entry = log.entry(place);
    if (entry?.type !== "intent.refused" || entry.reason !== "budget") continue;
    return { agentId: log.agents[log.agentOf(place)]?.name, entry };
  }
  return undefined;
}

/** A lead that starts one reader after the other, each of which calls a tool once and then answers. */
function oneByOne(budget: Budget): AgentDefinition {
  const reader = defineAgent({
    name: "reader",
    price,
    maxOutputTokens: 300,
    tools: [look],
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? { text: "read", usage } : { toolCalls: [{ name: "look" }], usage },
    ),
  });
  return defineAgent({
    name: "lead",
    price,
    maxOutputTokens: 300,
    tools: [subagent(reader)],
    budget: { maxSteps: 20, ...budget },
    model: scriptedModel(({ messages }) => {
      const done = messages.length - 1 - messages.findLastIndex(({ role }) => role === "user");
      if (done === 6) return { text: "done", usage };
      return { toolCalls: [{ name: "reader", arguments: { input: `part ${done}` } }], usage };
    }),
  });
}

/** A lead that starts four readers concurrently; all of them have reserved before the first answers. */
function allAtOnce(budget: Budget): AgentDefinition {
  const all = Promise.withResolvers<void>();
  let asked = 0;
  const reader = defineAgent({
    name: "reader",
    price,
    maxOutputTokens: 300,
    model: scriptedModel(() => {
      asked += 1;
      if (asked === 4) all.resolve();
      return { text: "read", usage, delayUntil: all.promise };
    }),
  });
  return defineAgent({
    name: "lead",
    price,
    maxOutputTokens: 300,
    tools: [subagent(reader)],
    budget,
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? { text: "done", usage }
        : {
            toolCalls: Array.from({ length: 4 }, (_, part) => ({
              name: "reader",
              arguments: { input: `part ${part}` },
            })),
            usage,
          },
    ),
  });
}

const plenty: Budget = { maxTokens: 100_000, maxCost: 10, maxTreeSteps: 100, maxTreeToolCalls: 100, maxToolCalls: 100 };

describe("a supposed limit", () => {
  test.each([
    ["maxTokens", 900, { maxTokens: 900 }],
    ["maxTokens", 1_500, { maxTokens: 1_500 }],
    ["maxTokens", 200, { maxTokens: 200 }],
    ["maxCostMicros", 20_000, { maxCost: 0.02 }],
    ["maxTreeSteps", 4, { maxTreeSteps: 4 }],
    ["maxSteps", 2, { maxSteps: 2 }],
    ["maxToolCalls", 2, { maxToolCalls: 2 }],
    ["maxTreeToolCalls", 3, { maxTreeToolCalls: 3 }],
    ["maxTreeToolCalls", 0, { maxTreeToolCalls: 0 }],
  ] as const)("%s of %i ends the run at the same entry as the real limit", async (limit, max, set) => {
    const run = await recorded(oneByOne(plenty));
    const { end, turnsOff } = suppose(run, limit, max);
    const real = refusalOf(await recorded(oneByOne({ ...plenty, ...set })));
    expect(end).toMatchObject({
      kind: "refused",
      step: real?.entry.step,
      used: real?.entry.used,
      max: real?.entry.max,
    });
    expect(end?.needed).toBe(real?.entry.needed);
    expect(run.log.agents[run.log.indexOfAgent(end?.agentId ?? "")]?.name).toBe(real?.agentId);
    expect(turnsOff).toBeNull();
    const entry = run.log.entry((end?.count ?? 0) - 1);
    expect(entry?.type).toBe(real?.entry.intent);
  });

  test("that is high enough ends nothing, and reports the most that was used and reserved at once", async () => {
    const run = await recorded(oneByOne(plenty));
    const { most } = suppose(run, "maxTokens", 100_000);
    expect(suppose(run, "maxTokens", most)).toEqual({ end: null, turnsOff: null, most });
    expect(suppose(run, "maxTreeSteps", 10)).toEqual({ end: null, turnsOff: null, most: 10 });
    const used = run.moments.at(run.log.length).accounts.account("turn:desk#1")?.used.tokens ?? 0;
    expect(most).toBeGreaterThanOrEqual(used);
  });

  test("applies to the spending of a subagent", async () => {
    const run = await recorded(oneByOne(plenty));
    const reader = run.log.agents.find(({ name }) => name === "reader")?.agentId ?? "";
    const { end } = suppose(run, "maxSteps", 1, `turn:${reader}#1`);
    expect(end).toMatchObject({ kind: "refused", agentId: reader, turnId: `${reader}#1`, step: 2, needed: 1 });
    expect(end?.accountId).toBe(`turn:${reader}#1`);
  });

  test("under which concurrent calls would have waited reports from where on the end is an estimate", async () => {
    const run = await recorded(allAtOnce(plenty));
    const asked = places(run, "model.requested").slice(1, 5);
    const { used } = run.moments.at(run.log.length).accounts.account("turn:desk#1") ?? {};
    const { end, turnsOff } = suppose(run, "maxTokens", (used?.tokens ?? 0) + 260);
    expect(end).toBeNull();
    expect(turnsOff?.why).toBe("waits");
    expect(asked.map((place) => place + 1)).toContain(turnsOff?.count);
  });

  test("counts the usage of ended calls, not their estimates", async () => {
    const run = await recorded(allAtOnce(plenty));
    const { most } = suppose(run, "maxTokens", 100_000);
    const { used } = run.moments.at(run.log.length).accounts.account("turn:desk#1") ?? {};
    const tokens = used?.tokens ?? 0;
    // Four concurrent reservations exceed the usage of six calls.
    expect(most).toBeGreaterThan(tokens);
    expect(suppose(run, "maxTokens", tokens).end).toMatchObject({ kind: "refused", agentId: "desk", step: 2 });
  });

  test("that leaves a call less output than its answer had reports this", async () => {
    const long = { inputTokens: 100, outputTokens: 290 };
    const writer = defineAgent({
      name: "lead",
      price,
      maxOutputTokens: 300,
      budget: plenty,
      model: scriptedModel({ text: "written", usage: long }),
    });
    const run = await recorded(writer);
    const [first] = places(run, "model.requested");
    const asked = run.log.entry(first ?? 0) as RunEntryOf<"model.requested">;
    const { end, turnsOff } = suppose(run, "maxTokens", asked.ask.promptTokens + 280);
    expect({ end, why: turnsOff?.why }).toEqual({ end: null, why: "shorter" });
  });

  test("that is higher than the real limit, which refused the run, is followed no further", async () => {
    const run = await recorded(oneByOne({ ...plenty, maxTokens: 900 }));
    const real = refusalOf(run);
    const { end } = suppose(run, "maxTokens", 5_000);
    expect(end).toMatchObject({ kind: "unknown", used: real?.entry.used, max: 900, needed: real?.entry.needed });
    expect(run.log.entry((end?.count ?? 0) - 1)).toBe(real?.entry);
    expect(suppose(run, "maxTokens", 900).end).toMatchObject({ kind: "refused", count: end?.count });
    expect(suppose(run, "maxTokens", 300).end?.count).toBeLessThan(end?.count ?? 0);
  });

  test("that leaves one last call ends the run with it, if a final answer is requested", async () => {
    const run = await recorded(oneByOne({ ...plenty, finalAnswer: true }));
    expect(suppose(run, "maxSteps", 2).end).toMatchObject({ kind: "last", agentId: "desk", step: 2 });
    const real = await recorded(oneByOne({ ...plenty, maxSteps: 2, finalAnswer: true }));
    expect(suppose(real, "maxSteps", 2).end).toBeNull();
    expect(suppose(real, "maxSteps", 5).end).toMatchObject({ kind: "unknown", agentId: "desk", step: 2 });
  });

  test("of an agent's lifetime continues over its turns, and remains when its budget is changed", async () => {
    const run = await recorded(oneByOne({ maxSteps: 20 }), {
      budget: { maxTreeSteps: 50 },
      changed: { maxTreeSteps: 60 },
    });
    const { end } = suppose(run, "maxTreeSteps", 14, "agent:desk");
    expect(end).toMatchObject({ kind: "refused", accountId: "agent:desk", used: 14, max: 14, needed: 1 });
    expect(run.moments.at(end?.count ?? 0).agents[0]?.turn).toBe(2);
  });

  test("of a turn also covers its background children", async () => {
    const ended = Promise.withResolvers<void>();
    const reader = defineAgent({
      name: "reader",
      price,
      maxOutputTokens: 300,
      tools: [look],
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === "tool"
          ? { text: "read", usage }
          : { toolCalls: [{ name: "look" }], usage, delayUntil: ended.promise },
      ),
    });
    const lead = defineAgent({
      name: "lead",
      price,
      maxOutputTokens: 300,
      budget: plenty,
      tools: [subagent(reader, { mode: "background" })],
      model: scriptedModel([
        { toolCalls: [{ name: "reader", arguments: { input: "all" } }], usage },
        { text: "done", usage },
      ]),
    });
    const run = await recorded(lead, undefined, () => ended.resolve());
    const { end } = suppose(run, "maxTokens", 800);
    expect(end).toMatchObject({ kind: "refused", accountId: "background:desk#1", step: 2 });
    expect(suppose(run, "maxTokens", 100_000).end).toBeNull();
  });

  test("is folded further as entries come", async () => {
    const { log, moments } = await recorded(oneByOne(plenty));
    const supposed = { accountId: "turn:desk#1", limit: "maxTokens", max: 900 } as const;
    const supposition = new Supposition(log, moments.stateAt(0).accounts, supposed);
    for (let count = 0; count < log.length; count += 3) while (supposition.foldOn(count, 2)) continue;
    supposition.foldOn(log.length);
    expect(supposition.run).toEqual(suppose({ log, moments }, "maxTokens", 900));
    // The fold of the run itself is a separate one.
    expect(moments.at(log.length).accounts.account("turn:desk#1")?.limits.maxTokens).toBe(100_000);
  });
});

describe("a supposed limit on time", () => {
  const at = 1_000;
  const turnId = "desk#1";
  const accountId = `turn:${turnId}`;

  /** A run of one agent whose model takes 5 s, its tool 2 s and its model 3 s again. */
  function timed(limits: { maxActiveMs?: number; deadlineAt?: number }): Recorded {
    const ask = {
      accountId,
      agentId: "desk",
      outputTokens: 10,
      minimumOutputTokens: 10,
      promptTokens: 1,
      opensStep: true,
    };
    const reservation = { accountId, tokens: 11, costMicros: 0, outputTokens: 10, model: "m" };
    const settlement = { reservation, tokens: 5, costMicros: 0, usage: null, unconfirmed: false };
    const request = { type: "model.requested", turnId, attempt: 1, model: "m", ask, reservation };
    const answer = { type: "model.responded", turnId, attempt: 1, model: "m", settlement, calls: [] };
    const entries = [
      { type: "turn.started", turnId, accountId, number: 1, limits, model: { name: "m" }, inputMessageIds: [], at },
      { ...request, step: 1, at },
      { ...answer, step: 1, at: at + 5_000 },
      { ...request, step: 2, at: at + 7_000 },
      { ...answer, step: 2, at: at + 10_000 },
    ];
    const log = new RunLog();
    const record = { agentId: "desk", name: "desk", parentAgentId: null, depth: 0 };
    log.addAgents([record as RunAgentRecord]);
    log.append(
      entries.map((entry, index) => ({ cursor: index + 1, agentId: "desk", entries: [entry] })) as unknown as RunRow[],
    );
    return { log, moments: new RunMoments(log) };
  }

  test.each([
    [4_000, { time: at + 4_000, count: 2, step: 1 }],
    [8_500, { time: at + 8_500, count: 4, step: 2 }],
  ])("of %i ms of work ends it between two entries", (max, found) => {
    const { end } = suppose(timed({ maxActiveMs: 60_000 }), "maxActiveMs", max);
    expect(end).toMatchObject({ kind: "time", agentId: "desk", turnId, max, ...found });
  });

  test("that is higher than the real limit, which interrupted the work, is followed no further", () => {
    const run = timed({ maxActiveMs: 12_000 });
    const signal = { reason: "time_limit", accountId, limit: "maxActiveMs", used: 12_000, max: 12_000 };
    const due = { type: "timer.due", turnId, timerId: "t", signal, at: at + 12_000 };
    run.log.append([{ cursor: 9, agentId: "desk", entries: [due] }] as unknown as RunRow[]);
    expect(suppose(run, "maxActiveMs", 20_000).end).toMatchObject({
      kind: "unknown",
      count: 6,
      max: 12_000,
      needed: null,
    });
    expect(suppose(run, "maxActiveMs", 12_000).end).toMatchObject({ kind: "time", time: at + 12_000 });
    expect(suppose(run, "maxActiveMs", 6_000).end).toMatchObject({ kind: "time", time: at + 6_000, count: 3 });
  });

  test("as a deadline ends the work at that time", () => {
    const { end } = suppose(timed({ deadlineAt: at + 60_000 }), "deadlineAt", at + 7_500);
    expect(end).toMatchObject({ kind: "time", time: at + 7_500, count: 4, step: 2 });
    expect(suppose(timed({ deadlineAt: at + 60_000 }), "deadlineAt", at + 20_000).end).toBeNull();
  });
});

function places({ log }: Recorded, type: string): number[] {
  return Array.from({ length: log.length }, (_, place) => place).filter((place) => log.entry(place)?.type === type);
}
