import { z } from "zod";
import {
  type Agent,
  type AgentDefinition,
  AgentStopError,
  askUser,
  createRuntime,
  defineAgent,
  defineTool,
  dropOldest,
  ModelError,
  reactHistory,
  type RunContext,
  type Runtime,
  subagent,
  textOf,
  type TurnResult,
} from "../../src/index.ts";
import { entrySchema, type EntryType } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { createFakeClock, type FakeClock, type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOfType, loopTurns } from "./journal-probes.ts";
import { answered, noted } from "./under-way.ts";

/** When the team began, in milliseconds since the epoch, and when another process continues it. */
export const FIXTURE_START = Date.UTC(2026, 0, 1);
const CONTINUED_AT = FIXTURE_START + 24 * 60 * 60 * 1000;

/** Every type of entry: a fixture must contain all of them. */
export const fixtureEntryTypes: readonly EntryType[] = entrySchema.options.map(({ shape }) => shape.type.value);

/** Root agents that were at rest, with their number of ended turns. */
export const endedTurns: Readonly<Record<string, number>> = {
  clerk: 4,
  spender: 1,
  sharer: 1,
  packer: 3,
  payer: 1,
  late: 1,
  failed: 3,
  unwell: 1,
  parent: 3,
  left: 1,
};

/** Inputs of turns that were open when their process died. */
export const openInputs = {
  /** A tool at work, with a note. */
  "open-call": "do hold",
  /** A call of the model. */
  "open-model": "go",
  /** A child at work. */
  "open-child": "do slow_digger",
  /** A wait for a child in the background. */
  "open-wait": "do slow_digger | subagent_wait",
  /** A queued tool at work. */
  "open-queue": "do ship",
  /** An open request for approval. */
  "open-request": "do pay",
  /** An open question to a person. */
  "open-question": "do ask_user",
} as const;
/** The entry of an open turn that waits for its own request or child, by its agent. */
const openRests: Readonly<Record<string, EntryType>> = {
  "open-wait": "call.waiting",
  "open-request": "request.opened",
  "open-question": "request.opened",
};
/** Tools, models and children at work: one each of the first five, and the child that `parent` has left behind. */
const WORK_IN_FLIGHT = 6;

const tenant = "default";
const nothing = z.object({});
const hanging = new Promise<never>(() => undefined);

/**
 * The input of a turn scripts its model: `do note, load_history | fail` calls two tools, then one, then ends the turn. So
 * the model answers the same in each process.
 */
const script: ModelScript = ({ messages, tools }) => {
  const asked = textOf(messages.at(-1)?.content ?? "");
  if (asked === "Break.")
    return { error: new ModelError("the model broke", { retryable: false, mayHaveBeenSent: true }) };
  if (tools === undefined) return "thought";
  const start = messages.findLastIndex(({ role, content }) => role === "user" && textOf(content).startsWith("do "));
  const steps =
    start < 0
      ? []
      : textOf(messages[start]?.content ?? "")
          .slice("do ".length)
          .split(" | ");
  const answers = messages.slice(start + 1).filter(({ role }) => role === "assistant").length;
  const step = steps[answers];
  if (step === undefined) return '{"done":true}';
  return { toolCalls: step.split(", ").map((call) => ({ name: call, arguments: argumentsOf[call] ?? {} })) };
};

const argumentsOf: Readonly<Record<string, object>> = {
  reader: { input: "read" },
  digger: { input: "dig" },
  slow_digger: { input: "dig on" },
  pay: { amount: 5 },
  ask_user: { question: "Which colour?" },
  load_tool_results: { callIds: ["clerk#1:1:0"] },
  subagent_wait: { timeoutSeconds: 30 },
};

const approval = { verdict: "approved", by: "ada" } as const;
const answer = { verdict: "answered", result: "blue", by: "ada" } as const;

/** Never resolves in the process that dies; in the next one nothing hangs. */
class Hold {
  readonly isHolding: boolean;
  #count = 0;

  constructor(isHolding: boolean) {
    this.isHolding = isHolding;
  }

  async pass(): Promise<void> {
    if (!this.isHolding) return;
    this.#count += 1;
    await hanging;
  }

  async reached(count: number): Promise<void> {
    for (let round = 0; this.#count < count; round += 1) {
      if (round > 100_000) throw new Error(`${this.#count} of ${count} pieces of work were begun`);
      await loopTurns(1);
    }
  }
}

const tool = (name: string, execute: (run: RunContext) => unknown, more: object = {}) =>
  defineTool({
    name,
    description: `Does ${name}.`,
    parameters: nothing,
    effect: "keyed",
    ...more,
    execute: (_args: object, run: RunContext) => execute(run),
  });

const think = (run: RunContext, content = "Think.") =>
  run.generate({ messages: [{ role: "user", content }], maxOutputTokens: 1_000 });

/** The definitions of the team, in a process that holds nothing. */
export function teamDefinitions(): AgentDefinition[] {
  return fixtureAgents(new Hold(false));
}

function fixtureAgents(hold: Hold): AgentDefinition[] {
  const model = scriptedModel(script, { contextWindow: 20_000 });
  const reader = defineAgent({ name: "reader", model: scriptedModel("read") });
  const digger = defineAgent({ name: "digger", model: scriptedModel("gold") });
  const slowDigger = defineAgent({
    name: "slow_digger",
    model: scriptedModel(async () => {
      await hold.pass();
      return "more gold";
    }),
  });
  let failures = 0;
  const tools = [
    tool("note", async (run) => {
      await run.note({ far: 1 });
      await run.bill({ key: "map", model: "elsewhere", inputTokens: 7, outputTokens: 2, cost: 0.01 });
      await run.saveArtifact({ name: "map", contentType: "text/plain", content: "a map" });
      return (await think(run)).content;
    }),
    tool(
      "stumble",
      () => {
        failures += 1;
        if (failures % 2 === 1) throw new RangeError("it stumbled");
        return "went on";
      },
      { maxAttempts: 2 },
    ),
    tool("quit", () => {
      throw new AgentStopError("enough");
    }),
    tool("look", () => "seen", { effect: "none" }),
    tool("ponder", async (run) => (await think(run)).content),
    tool("brood", async (run) => (await think(run, "Break.")).content),
    tool("hold", async (run) => {
      await run.note({ far: 2 });
      await hold.pass();
      return run.noted;
    }),
    tool("ship", async () => (await hold.pass(), "shipped"), { queue: "harbour" }),
    tool("order", async (run) => run.await(await run.spawn(reader, "read", { key: "a" })), { queue: "harbour" }),
    tool("delegate", async (run) => run.await(await run.spawn(reader, "read", { key: "a" }), { prefix: "It " })),
    defineTool({
      name: "pay",
      description: "Pays.",
      parameters: z.object({ amount: z.number() }),
      needsApproval: true,
      execute: ({ amount }) => `paid ${amount}`,
    }),
    askUser(),
  ];
  const clerk = defineAgent({
    name: "clerk",
    model,
    instructions: () => "You keep the desk.",
    tools: [...tools, subagent(reader), subagent(slowDigger)],
    history: reactHistory({ contextWindowSize: 2, expandBy: 2 }),
    output: z.object({ done: z.boolean() }),
    hooks: {
      afterUserInput: (draft) => draft.add({ role: "system", content: "The desk is open." }),
      afterLlm: (draft, run) => {
        if (draft.calls.length > 0) draft.add({ role: "user", content: "Mind the stairs." });
        run.emitWarning("stairs", "The stairs are steep.");
      },
      afterEachTool: () => undefined,
    },
  });
  const plain = defineAgent({
    name: "plain",
    model,
    tools: [...tools, subagent(reader), subagent(slowDigger)],
    maxOutputTokens: 300,
    hooks: { beforeLlm: (_draft, run) => void (run.prompt === "break" && brokenHook()) },
  });
  const packer = defineAgent({
    name: "packer",
    model,
    maxMessages: 4,
    autoCompact: { strategy: dropOldest({ keep: 2 }), keep: 2 },
  });
  const stuck = defineAgent({
    name: "stuck",
    model: scriptedModel(async () => {
      await hold.pass();
      return "unstuck";
    }),
  });
  const unwell = defineAgent({
    name: "unwell",
    model: scriptedModel(() => ({
      error: new ModelError("the model is not well", { retryable: true, mayHaveBeenSent: true }),
    })),
  });
  const lead = defineAgent({
    name: "lead",
    model,
    tools: [subagent(digger, { mode: "background" }), subagent(slowDigger, { mode: "background", onEnd: "wake" })],
  });
  return [clerk, plain, packer, stuck, unwell, lead, reader, digger, slowDigger];
}

function brokenHook(): never {
  throw new Error("the hook broke");
}

/** The definition of each root agent. */
const cast = {
  clerk: "clerk",
  spender: "plain",
  sharer: "plain",
  late: "plain",
  packer: "packer",
  payer: "plain",
  failed: "plain",
  unwell: "unwell",
  parent: "lead",
  left: "plain",
  "open-call": "plain",
  "open-model": "stuck",
  "open-child": "plain",
  "open-wait": "lead",
  "open-queue": "plain",
  "open-request": "plain",
  "open-question": "plain",
} as const;
type Root = keyof typeof cast;

/** The team when its process dies: all completed work is stored, and the work in flight never ends. */
export interface PlayedTeam {
  readonly runtime: Runtime;
  readonly clock: FakeClock;
}

/** Runs the team on empty stores. The runtime is left running; stores must be copied before they are closed. */
export async function playTeam(given: Stores): Promise<PlayedTeam> {
  // The clock advances only while no store call is pending.
  const stores = noted(given);
  const clock = createFakeClock(FIXTURE_START);
  const hold = new Hold(true);
  const runtime = await createRuntime({ agents: fixtureAgents(hold), stores, clock, random: () => 0.5 });
  const open = async (agentId: Root, options: object = {}): Promise<Agent> => {
    const agent = await runtime.agent(cast[agentId], { agentId, ...options });
    await agent.start();
    return agent;
  };
  const end = async (agent: Agent, input: string, options: object = {}): Promise<void> => {
    await elapse(clock, agent.executeTurn(input, options).result);
  };

  const clerk = await open("clerk", {
    messages: [{ role: "user", content: "Good morning." }],
    budget: { maxSteps: 90 },
    sessionId: "morning",
  });
  await end(clerk, "do note, look | stumble");
  await end(clerk, "do load_history, load_tool_results");
  await end(clerk, "do reader, delegate, order");
  await clerk.clear();
  await clerk.setBudget({ maxSteps: 100 });
  await end(clerk, "do look");
  await clerk.pause();
  await clerk.resume();

  const spender = await open("spender", { budget: { maxToolCalls: 4 } });
  await end(spender, "do look | look | look | look | look");
  await end(await open("sharer"), "do ponder, ponder, ponder", { budget: { maxTokens: 3_500 } });
  const packer = await open("packer");
  for (const input of ["one", "two", "three"]) await end(packer, input);
  const payer = await open("payer");
  const payment = payer.executeTurn("do pay");
  const rest = await elapse(clock, payment.settled);
  if (rest.status !== "waiting" || rest.reason !== "request") throw new Error("the payment does not wait for approval");
  await elapse(clock, payment.steer("Be quick.", { key: "note" }));
  for (const { requestId } of rest.requests) await runtime.decide(requestId, approval);
  await elapse(clock, payment.result);
  const late = await open("late");
  // The clock must not advance before it waits: a turn whose deadline passes before its first step is ended by that step, not by a timer.
  const question = late.executeTurn("do ask_user", { budget: { deadline: clock.now() + 10_000 } });
  if ((await question.settled).status !== "waiting") throw new Error("the question does not wait for an answer");
  const overdue = await elapse(clock, question.result);
  if (overdue.stopReason !== "time_limit") throw new Error(`the question was ended by ${overdue.stopReason}`);
  const failed = await open("failed");
  await end(failed, "break");
  await end(failed, "do brood");
  await end(failed, "do quit");
  await end(await open("unwell"), "go");

  const parent = await open("parent");
  await end(parent, "do digger | subagent_wait");
  await end(parent, "do digger");
  await end(parent, "do slow_digger | subagent_wait");
  const left = await open("left");
  await end(left, "do look");
  await left.shutdown();

  const agents: Agent[] = [];
  for (const [agentId, input] of Object.entries(openInputs)) {
    const agent = await open(agentId as Root);
    agents.push(agent);
    const turn = agent.executeTurn(input);
    turn.result.catch(() => undefined);
  }
  await hold.reached(WORK_IN_FLIGHT);
  for (const [agentId, type] of Object.entries(openRests)) await untilCommitted(stores, agentId, type);
  for (const agent of agents) await agent.saveState();
  await answered();
  await assertWhole(stores);
  return { runtime, clock };
}

async function untilCommitted(stores: Stores, agentId: string, type: EntryType): Promise<void> {
  for (let round = 0; (await entriesOfType(stores, agentId, type)).length === 0; round += 1) {
    if (round > 100_000) throw new Error(`agent ${agentId} has committed no ${type}`);
    await loopTurns(1);
  }
}

/** Throws if an entry type or an ended turn is missing. */
async function assertWhole(stores: Stores): Promise<void> {
  const types = new Set<EntryType>();
  for (const rootAgentId of Object.keys(cast)) {
    for (const { entries } of await stores.readTree(tenant, rootAgentId, 0, 10_000)) {
      for (const { type } of entries) types.add(type);
    }
    const { turnCount } = (await stores.readAgent({ tenant, agentId: rootAgentId })) ?? {};
    const expected = endedTurns[rootAgentId] ?? 0;
    if (turnCount !== expected) {
      throw new Error(`agent ${rootAgentId} has ended ${turnCount} turns, and should have ended ${expected}`);
    }
  }
  const missing = fixtureEntryTypes.filter((type) => !types.has(type));
  if (missing.length > 0) throw new Error(`the team has no entry of ${missing.join(", ")}`);
}

/** The process that continues the team. */
export interface ContinuedTeam {
  readonly runtime: Runtime;
  /** The results of the turns that were open. */
  readonly results: readonly TurnResult[];
}

/** Continues a recorded team on the same stores or a copy of them. The caller shuts the runtime down. */
export async function continueTeam(given: Stores): Promise<ContinuedTeam> {
  const stores = noted(given);
  const clock = createFakeClock(CONTINUED_AT);
  const runtime = await createRuntime({ agents: fixtureAgents(new Hold(false)), stores, clock, random: () => 0.5 });
  const results: TurnResult[] = [];
  for (const agentId of Object.keys(openInputs)) {
    const agent = await runtime.find(agentId);
    await agent.start();
    for (const { requestId, kind } of await runtime.requests({ rootAgentId: agentId, status: "open" })) {
      await runtime.decide(requestId, kind === "approval" ? approval : answer);
    }
    results.push(await elapse(clock, agent.turn(`${agentId}#1`).result));
  }
  return { runtime, results };
}
