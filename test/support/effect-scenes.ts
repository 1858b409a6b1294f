import { expect } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentDefinition,
  askUser,
  clientTool,
  defineAgent,
  defineTool,
  type Hooks,
  localQueues,
  ModelError,
  type ModelRequest,
  type Queues,
  type RunContext,
  type RuntimeOptions,
  subagent,
  summarize,
  textOf,
  type ToolDefinition,
  type Turn,
  type TurnResult,
} from "../../src/index.ts";
import { type Entry, type EntryType, parseCursor } from "../../src/state/index.ts";
import { type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";
import type { CommitWatch } from "./commit-watch.ts";
import { elapse, toolTextsOf } from "./journal-probes.ts";
import type { Stage } from "./runtimes.ts";
import { calling } from "./turn-probes.ts";

export type PlayScene = (stage: Stage, watch: CommitWatch) => Promise<void>;

const nothing = z.object({});
type Traits = Partial<ToolDefinition<typeof nothing>> & { readonly act?: (run: RunContext) => unknown };

function isAttempt(entry: Entry, attempt: number): boolean {
  return "attempt" in entry && entry.attempt === attempt;
}

/** A tool whose code first checks its intent. */
export function toolOf(watch: CommitWatch, name: string, { act = () => "done", ...traits }: Traits = {}) {
  return defineTool({
    name,
    description: name,
    parameters: nothing,
    ...traits,
    execute(_args, run) {
      const isOwn = (entry: Entry): boolean => "callId" in entry && entry.callId === run.callId;
      watch.starts("tool", "tool.started", (entry) => isOwn(entry) && isAttempt(entry, run.attempt));
      if (run.attempt > 1) {
        watch.starts("tool again", "tool.retrying", (entry) => isOwn(entry) && isAttempt(entry, run.attempt - 1));
      }
      if (traits.queue !== undefined) {
        watch.startsAfter("tool in a worker", "claimCall", (_key, { callId, attempt }) => {
          return callId === run.callId && attempt === run.attempt;
        });
      }
      return act(run);
    },
  });
}

const isSummary = ({ messages }: ModelRequest): boolean =>
  textOf(messages.at(-1)?.content ?? "").startsWith("<conversation>");
const isThought = ({ messages }: ModelRequest): boolean => textOf(messages[0]?.content ?? "") === "what?";

/** A model whose intents are those of the matching agents; `of` names them. */
export function modelOf(
  watch: CommitWatch,
  script: (request: ModelRequest) => ScriptedAnswer,
  { of = "lead", isOwn = (agentId: string): boolean => agentId === "lead" } = {},
) {
  return scriptedModel((request) => {
    watch.callsModel(of, isOwn);
    if (isThought(request)) watch.starts("generate", "generate.requested");
    if (isSummary(request)) watch.starts("summary", "generate.requested");
    return script(request);
  });
}

/** A first answer with these calls, then one without any. */
export const once =
  (...calls: Parameters<typeof calling>) =>
  ({ messages }: ModelRequest): ScriptedAnswer =>
    messages.some(({ role }) => role === "tool") ? "the end" : calling(...calls);

/** Queues that record added and removed jobs; jobs added to them run in this process. */
export function watchedQueues({ clock }: Stage, watch: CommitWatch, queues = localQueues({ clock })): Queues {
  const added = new Set<string>();
  return {
    ...queues,
    async wake(agent, trace) {
      watch.startsAfter("wake", "openTurn", ({ agentId }) => agentId === agent.agentId);
      await queues.wake(agent, trace);
    },
    async add(queue, job, options) {
      const name = `${job.callId}#${job.attempt}`;
      watch.starts(added.has(name) ? "job again" : "job", "tool.started", (entry) => {
        return entry.type === "tool.started" && entry.callId === job.callId && entry.attempt === job.attempt;
      });
      added.add(name);
      await queues.add(queue, job, options);
    },
    async cancel(queue, job, reason) {
      watch.startsAfter("job withdrawn", "postCallEnd", (_key, { callId }) => callId === job.callId);
      return await queues.cancel(queue, job, reason);
    },
  };
}

interface PlayOptions {
  readonly lead: Omit<Parameters<typeof defineAgent>[0], "name">;
  readonly others?: readonly AgentDefinition[];
  readonly options?: Partial<RuntimeOptions>;
}

/** Begins a turn of an agent "lead", and checks its events and its result. */
export async function begin(
  stage: Stage,
  watch: CommitWatch,
  { lead, others = [], options = {} }: PlayOptions,
): Promise<{ readonly agent: Agent; readonly turn: Turn; readonly result: Promise<TurnResult> }> {
  const agents = [defineAgent({ name: "lead", ...lead }), ...others];
  const runtime = await stage.open({ agents, through: watch.through, random: () => 0.5, ...options });
  runtime.subscribe((event) => {
    if (event.type === "request.opened") watch.shows(event.requestId);
    const cursor = event.cursor === null ? undefined : parseCursor(event.cursor);
    if (cursor) watch.showsRow(cursor.row);
  });
  const agent = await runtime.agent("lead", { agentId: "lead" });
  await agent.start();
  const turn = agent.executeTurn("go");
  const result = turn.result.then((ended) => {
    watch.starts("result", "turn.ended", (entry) => "turnId" in entry && entry.turnId === ended.turnId);
    return ended;
  });
  result.catch(() => undefined);
  return { agent, turn, result };
}

/** Runs a turn to its end, and decides all its requests. */
export async function play(stage: Stage, watch: CommitWatch, options: PlayOptions): Promise<Agent> {
  const { agent, turn, result } = await begin(stage, watch, options);
  for (;;) {
    const rest = await elapse(stage.clock, turn.settled);
    if (rest.status !== "waiting") break;
    for (const { requestId, kind } of await agent.requests()) {
      const yes = kind === "approval" ? { verdict: "approved" } : { verdict: "answered", result: "so" };
      await agent.decide(requestId, yes as Parameters<typeof agent.decide>[1]);
    }
  }
  expect(await result).toMatchObject({ status: "completed", text: "the end" });
  return agent;
}

/** Fails the first time only. */
function failingOnce(): () => string {
  let failures = 0;
  return () => {
    failures += 1;
    if (failures === 1) throw new Error("not now");
    return "done";
  };
}

const fail = (): never => {
  throw new Error("never");
};

/** Tools of every effect class, local and queued, and requests to people. */
export const playTools: PlayScene = async (stage, watch) => {
  const tools = [
    toolOf(watch, "look", { effect: "none" }),
    toolOf(watch, "send", { effect: "keyed" }),
    toolOf(watch, "pay", { effect: "once" }),
    toolOf(watch, "slots", { effect: "none", concurrency: 1 }),
    toolOf(watch, "queued", { effect: "none", queue: "far" }),
    toolOf(watch, "approve", {
      effect: "none",
      needsApproval: () => {
        watch.starts("code", "model.responded");
        return true;
      },
    }),
    toolOf(watch, "flaky", { effect: "none", maxAttempts: 2, act: failingOnce() }),
    clientTool({ name: "pick", description: "Picks.", parameters: nothing }),
    askUser(),
  ];
  const script = once("look", "look", "send", "pay", "slots", "queued", "approve", "flaky", "pick", {
    name: "ask_user",
    arguments: { question: "Why?" },
  });
  const agent = await play(stage, watch, {
    lead: { model: modelOf(watch, script), tools },
    options: { queues: watchedQueues(stage, watch) },
  });
  const texts = await toolTextsOf(agent);
  expect(texts.toSorted()).toEqual([...Array.from({ length: 8 }, () => "done"), "so", "so"]);
};

/** Subagents: awaited, in the background and spawned by code, and side calls of code. */
export const playSubagents: PlayScene = async (stage, watch) => {
  const childOf = (name: string) => {
    return defineAgent({
      name,
      hooks: {
        afterUserInput: (_draft, { agent }) => {
          watch.starts("subagent", "child.spawned", (entry) => "childId" in entry && entry.childId === agent.agentId);
        },
      },
      model: modelOf(watch, () => "helped", { of: "children", isOwn: (agentId) => agentId !== "lead" }),
    });
  };
  const [helper, digger, spawned] = [childOf("helper"), childOf("digger"), childOf("spawned")];
  const act = async (run: RunContext): Promise<string> => {
    const answer = await run.generate({ messages: [{ role: "user", content: "what?" }] });
    const child = await run.spawn(spawned, "go", { key: "a" });
    return `${textOf(answer.content)} ${(await child.result).text}`;
  };
  const calls = once(
    "spawner",
    { name: "helper", arguments: { input: "help" } },
    { name: "digger", arguments: { input: "dig" } },
  );
  await play(stage, watch, {
    lead: {
      model: modelOf(watch, (request) => (isThought(request) ? "that" : calls(request))),
      tools: [
        toolOf(watch, "spawner", { effect: "keyed", act }),
        subagent(helper, { description: "Helps." }),
        subagent(digger, { description: "Digs.", mode: "background" }),
      ],
    },
    others: [spawned],
  });
};

/** Hooks of every name. */
function hooksOf(watch: CommitWatch): Hooks {
  const seen = new Set<string>();
  const sees = (name: keyof Hooks, type: EntryType, step = 0) => {
    seen.add(name);
    watch.starts("hook", type, (entry) => !("step" in entry) || entry.step >= step);
  };
  return {
    afterUserInput: () => sees("afterUserInput", "turn.started"),
    beforeLlm: (_draft, { step }) => sees("beforeLlm", step === 1 ? "turn.started" : "tool.settled", step - 1),
    afterLlm: (_draft, { step }) => sees("afterLlm", "model.responded", step),
    beforeTools: (_draft, { step }) => sees("beforeTools", "model.responded", step),
    beforeEachTool: (_draft, { step }) => sees("beforeEachTool", "model.responded", step),
    afterEachTool: (_draft, { step }) => sees("afterEachTool", "model.responded", step),
    onError: (_draft, { step }) => sees("onError", "model.responded", step),
    afterTools: (_draft, { step }) => sees("afterTools", "tool.settled", step),
    onComplete: (_draft, { step }) => {
      sees("onComplete", "model.responded", step);
      expect([...seen].toSorted()).toEqual(Object.keys(hooksOf(watch)).toSorted());
    },
  };
}

/** User code at every point of a turn, and summaries. */
export const playHooks: PlayScene = async (stage, watch) => {
  const calls = once("look", "fails");
  const agent = await play(stage, watch, {
    lead: {
      model: modelOf(watch, (request) => (isSummary(request) ? "short" : calls(request))),
      instructions: () => {
        watch.starts("code", "turn.started");
        return "Be kind.";
      },
      tools: [toolOf(watch, "look", { effect: "none" }), toolOf(watch, "fails", { effect: "none", act: fail })],
      hooks: hooksOf(watch),
      maxMessages: 4,
      autoCompact: { strategy: summarize(), keep: 2 },
    },
  });
  await elapse(stage.clock, agent.executeTurn("and now").result);
};

/** Failing attempts of a model and of tools, and reconcile calls. */
export const playFailures: PlayScene = async (stage, watch) => {
  let failures = 0;
  const calls = once("flaky", "pay");
  const model = modelOf(watch, (request) => {
    failures += 1;
    if (failures === 1) return { error: new ModelError("busy", { retryable: true, mayHaveBeenSent: true }) };
    if (failures === 2) watch.starts("model again", "model.failed");
    return calls(request);
  });
  const pay = toolOf(watch, "pay", {
    effect: "once",
    act: fail,
    reconcile: async (_args, { callId }) => {
      watch.starts("reconcile", "tool.started", (entry) => entry.type === "tool.started" && entry.callId === callId);
      return { done: true, result: "paid" };
    },
  });
  const flaky = toolOf(watch, "flaky", { effect: "none", maxAttempts: 2, act: failingOnce() });
  await play(stage, watch, { lead: { model, tools: [flaky, pay] } });
};
