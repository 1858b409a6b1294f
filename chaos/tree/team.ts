import { z } from "zod";
import {
  type AgentDefinition,
  type Budget,
  defineAgent,
  defineTool,
  openaiModel,
  type RunContext,
  subagent,
} from "../../src/index.ts";

/** Log lines of a tool of the tree: its body began, or its signal was aborted. */
export type OnWait = (event: "began" | "cut", callId: string) => void;

/**
 * A tree of agents, `width` wide and `depth` deep. The leaves act by their tasks (chaos/spending/script.ts): a model call
 * that never ends, a tool that never ends, or one short step after another.
 */
export function deepTeam(
  baseURL: string,
  { width, depth }: { readonly width: number; readonly depth: number },
  onWait: OnWait,
): AgentDefinition {
  const wait = defineTool({
    name: "wait",
    description: "Waits until it is cut.",
    parameters: z.object({}),
    effect: "none",
    timeoutMs: 600_000,
    execute: (_args, run) => untilCut(run, onWait),
  });
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    effect: "none",
    execute: (_args, { callId }) => {
      onWait("began", callId);
      return "nothing to see";
    },
  });
  const budget: Budget = { maxSteps: 100_000, maxTokens: 1e9 };
  const levelAt = (level: number): AgentDefinition => {
    const isLeaf = level === depth;
    const model = openaiModel(isLeaf ? "leaf" : `fan:${width}`, { apiKey: "none", baseURL });
    const common = { name: isLeaf ? "leaf" : `level-${level}`, model, instructions: "Work on.", budget };
    if (isLeaf) return defineAgent({ ...common, tools: [wait, look] });
    const below = subagent(levelAt(level + 1), { name: "child", policy: { maxDepth: depth } });
    return defineAgent({ ...common, tools: [below] });
  };
  return levelAt(0);
}

async function untilCut({ signal, callId }: RunContext, onWait: OnWait): Promise<string> {
  onWait("began", callId);
  const cut = Promise.withResolvers<void>();
  if (signal.aborted) cut.resolve();
  signal.addEventListener("abort", () => cut.resolve(), { once: true });
  // The timer keeps the process alive.
  const alive = setInterval(() => undefined, 60_000);
  await cut.promise;
  clearInterval(alive);
  onWait("cut", callId);
  throw signal.reason;
}
