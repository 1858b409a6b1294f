import { z } from "zod";
import {
  type AgentDefinition,
  AgentStopError,
  type AgentTool,
  askUser,
  clientTool,
  type CompactionStrategy,
  defineAgent,
  defineTool,
  dropOldest,
  fullHistory,
  type HistoryCompiler,
  type Message,
  ModelError,
  reactHistory,
  type RunContext,
  subagent,
  summarize,
  ToolNotStartedError,
  windowHistory,
  withoutTraces,
} from "../../src/index.ts";
import { type ScriptedReply, scriptedModel } from "../../src/testing/index.ts";
import { randomHooks } from "./random-hooks.ts";
import { type Deed, deeds, type PlannedAnswer, type PlannedCall, type TurnPlan } from "./random-turns.ts";
import { type Life, never, type RandomWorld } from "./random-world.ts";

/** The durations of tools, on the fake clock. */
const timeoutMs = 400;

const parameters = z.object({ does: z.enum(deeds), loops: z.number().int().min(0).max(3) });
type Given = z.output<typeof parameters>;

/** How the model sends an answer; its own text, unless another is given. */
export type Speak = (answer: PlannedAnswer) => Pick<ScriptedReply, "text" | "deltas" | "reasoning">;

const plainly: Speak = ({ kind, ...answer }) => {
  if (kind === "text") return { text: "the answer" };
  return { text: "hasText" in answer && answer.hasText ? "I will look." : "" };
};

export interface CastOptions {
  readonly speak?: Speak;
  /** The expiry of requests, on the fake clock. */
  readonly expiresAfterMs?: number;
}

/** The agents of a case in one process: a lead, a helper, which is its subagent, and the children that tools spawn. */
export function castOf(
  world: RandomWorld,
  life: Life,
  { speak = plainly, expiresAfterMs = timeoutMs }: CastOptions = {},
): AgentDefinition[] {
  const { plan } = world;
  const model = randomModel(world, life, speak);
  const shared = {
    model,
    history: compilerOf(plan),
    ...(plan.compaction
      ? {
          maxMessages: plan.compaction.maxMessages,
          autoCompact: { strategy: strategyOf(world, plan.compaction), keep: plan.compaction.keep },
        }
      : {}),
    hooks: randomHooks(world, life),
    maxConsecutiveToolFailures: 6,
    maxOutputTokens: 300,
  };
  const spawned = defineAgent({ name: "spawned", model });
  const tools = toolsOf(world, life, { spawned, expiresAfterMs });
  const helper = defineAgent({ ...shared, name: "helper", tools, budget: { maxSteps: 4 } });
  const policy = plan.atATime === null ? {} : { maxConcurrent: plan.atATime };
  const lead = defineAgent({
    ...shared,
    name: "lead",
    tools: [...tools, subagent(helper, { policy })],
    budget: plan.budget,
    clientTools: true,
  });
  return [lead, helper, spawned];
}

function randomModel(world: RandomWorld, life: Life, speak: Speak) {
  return scriptedModel(
    async (request): Promise<ScriptedReply> => {
      if (life.isOver) return await never;
      const answer = world.answer(request);
      await world.pass("model", answer.loops);
      if (life.isOver) return await never;
      // Summaries and other side calls have no tools.
      const offersTools = request.tools !== undefined;
      if (answer.kind === "calls" && !offersTools) return { text: "the answer" };
      const said = speak(answer);
      if (answer.kind === "text") return said;
      if (answer.kind === "fails") return { ...said, error: failureOf(answer.how) };
      const ids = { own: {}, same: { id: "call" }, none: { id: "" } }[answer.ids];
      return {
        ...said,
        toolCalls: answer.calls.map((call) => ({ name: call.name, arguments: argumentsOf(call), ...ids })),
      };
    },
    { contextWindow: 20_000 },
  );
}

function failureOf(how: string): ModelError {
  const retryable = how === "passing";
  const details = how === "tooLong" ? { kind: "context_length" } : {};
  return new ModelError(how, { retryable, mayHaveBeenSent: true, details });
}

function argumentsOf({ name, does, loops, arguments: kind }: PlannedCall): string {
  if (kind === "poisoned") return '{"__proto__":{"isAdmin":true}}';
  if (kind === "wrong") return '{"does":7,"callIds":[]}';
  const right: Record<string, object> = {
    helper: { input: does },
    client: { what: does },
    ask_user: { question: "Shall I?" },
    load_history: {},
    list_tool_calls: { limit: 3 },
    load_tool_results: { callIds: ["root#1:1:0", "root#1:1:1", "root#2:1:0", "gone"] },
  };
  const text = JSON.stringify(right[name] ?? { does, loops });
  return kind === "right" ? text : text.slice(0, -2);
}

function toolsOf(
  world: RandomWorld,
  life: Life,
  { spawned, expiresAfterMs }: { readonly spawned: AgentDefinition; readonly expiresAfterMs: number },
): AgentTool[] {
  const execute = async ({ does, loops }: Given, run: RunContext): Promise<unknown> => {
    if (life.isOver) return await never;
    await world.pass("tool", loops);
    if (life.isOver) return await never;
    return await perform(does, run, spawned);
  };
  const shape = { description: "Does something.", parameters, execute, timeoutMs } as const;
  return [
    defineTool({ ...shape, name: "look", effect: "none" }),
    defineTool({ ...shape, name: "send", concurrency: 2, reconcile: async () => ({ unknown: true }) }),
    defineTool({ ...shape, name: "keyed", effect: "keyed", maxAttempts: 2 }),
    defineTool({
      ...shape,
      name: "approve",
      needsApproval: ({ does }) => does !== "nothing",
      approvalExpiresAfterMs: expiresAfterMs,
    }),
    defineTool({ ...shape, name: "login", effect: "none", auth: "required" }),
    clientTool({ name: "client", description: "Runs elsewhere.", parameters: z.object({ what: z.string() }) }),
    askUser({ expiresAfterMs }),
  ];
}

async function perform(does: Deed, run: RunContext, spawned: AgentDefinition): Promise<unknown> {
  switch (does) {
    case "throw":
      throw new TypeError("it broke");
    case "hang":
      return await never;
    case "notStarted":
      throw new ToolNotStartedError("it did not begin");
    case "stop":
      throw new AgentStopError("enough");
    case "large":
      return "x".repeat(33_000);
    case "generate":
      return (await run.generate({ messages: [{ role: "user", content: "Think." }] })).content;
    case "spawn":
      return await (await run.spawn(spawned, "go", { key: "a" })).result;
    case "artifact":
      return await run.saveArtifact({ name: "notes", contentType: "text/plain", content: "noted" });
    case "nothing":
      return undefined;
    case "succeed":
      return { ok: true };
    default:
      return does satisfies never;
  }
}

function compilerOf({ history: { kind, size } }: TurnPlan): HistoryCompiler {
  if (kind === "full") return fullHistory();
  if (kind === "withoutTraces") return withoutTraces();
  if (kind === "window") return windowHistory(size);
  if (kind === "react") return reactHistory({ contextWindowSize: size, expandBy: 1 + (size % 3) });
  return {
    name: `broken(${size})`,
    internalTools: false,
    // Some results are lost, some are duplicated, and some are misplaced.
    compile: ({ history }) => {
      const kept = history.filter((_message, index) => index % (size + 1) !== size);
      const doubled = history.filter((_message, index) => index % (size + 2) === size);
      return size % 2 === 0 ? [...kept, ...doubled] : [...doubled.toReversed(), ...kept];
    },
  };
}

function strategyOf(world: RandomWorld, compaction: NonNullable<TurnPlan["compaction"]>): CompactionStrategy {
  const { kind, keep } = compaction;
  if (kind === "dropOldest") return dropOldest({ keep });
  if (kind === "summarize") return summarize({ keep });
  return {
    name: "wild",
    compact: async ({ messages }) => {
      const through = messages[world.number(messages.length)];
      if (!through) return null;
      const kept = messages.filter(() => world.number(4) === 0).map(({ id }: Message) => id);
      return { through: through.id, keepIds: kept, summary: world.number(2) === 0 ? null : "what was said" };
    },
  };
}
