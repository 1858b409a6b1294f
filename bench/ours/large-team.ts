import { setTimeout as delay } from "node:timers/promises";
import { createRuntime, defineAgent, type LanguageModel, type RuntimeOptions, subagent } from "../../src/index.ts";
import { answerText } from "../model-answers.ts";
import { userInput } from "../scenario.ts";
import { lookupTool } from "./agents.ts";
import { wholeAnswer } from "./index.ts";
import { instantModel } from "./instant-model.ts";

/** Most calls in one answer; the runtime allows at most 1,000. */
const CALLS_AT_A_TIME = 1_000;

export interface LargeTeam {
  readonly children: number;
  /** Steps of each child: tool calls, then the answer. Default 3. */
  readonly steps?: number;
  /** Response time of the children's model. Default: it answers at once. */
  readonly answersAfterMs?: () => number;
}

/** A lead that calls its children 1,000 at a time. */
export function largeTeam({ children, steps = 3, answersAfterMs }: LargeTeam) {
  const instant = instantModel(steps);
  const calm: LanguageModel = {
    ...instant,
    generate: (...given) => delay(answersAfterMs?.()).then(() => instant.generate(...given)),
  };
  const child = defineAgent({
    name: "child",
    model: answersAfterMs ? calm : instant,
    tools: [lookupTool],
    budget: { maxSteps: Math.max(10, steps) },
  });
  return defineAgent({
    name: "lead",
    model: callingModel(children),
    tools: [subagent(child, { policy: { maxChildren: children } })],
    budget: { maxTokens: 1_000_000_000 },
  });
}

function callingModel(children: number): LanguageModel {
  const name = "calling";
  const usage = { inputTokens: 40, outputTokens: 20 };
  return {
    name,
    provider: "bench",
    countPromptTokens: () => usage.inputTokens,
    generate: async ({ messages }) => {
      const called = messages.filter(({ role }) => role === "tool").length;
      const toolCalls = Array.from({ length: Math.min(CALLS_AT_A_TIME, children - called) }, (_, index) => ({
        id: `call_${called + index}`,
        name: "child",
        arguments: JSON.stringify({ input: `part ${called + index}` }),
      }));
      const isDone = toolCalls.length === 0;
      const finishReason = isDone ? "stop" : "tool_calls";
      return { content: isDone ? answerText : "", toolCalls, usage, finishReason, model: name };
    },
  };
}

/** Runs one turn of such a team; `watch` can observe the runtime meanwhile. */
export async function largeTurn(
  options: Omit<RuntimeOptions, "agents">,
  { watch, ...team }: LargeTeam & { readonly watch?: (runtime: Runtime) => () => void },
): Promise<void> {
  const runtime = await createRuntime({ ...options, agents: [largeTeam(team)] });
  try {
    const stop = watch?.(runtime);
    const agent = await runtime.agent("lead", { agentId: "desk" });
    await agent.start();
    const text = await wholeAnswer(agent, userInput);
    if (text !== answerText) throw new Error(`expected the answer ${answerText}, got ${text}.`);
    stop?.();
  } finally {
    await runtime.shutdown();
  }
}

type Runtime = Awaited<ReturnType<typeof createRuntime>>;
