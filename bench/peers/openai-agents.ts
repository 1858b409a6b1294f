import type * as Zod from "zod";
import type { Contender, Conversation } from "../contender.ts";
import { childInstructions, instructions, lookup, type Scenario } from "../scenario.ts";
import type { Packages } from "./install.ts";

export const modules: readonly string[] = ["@openai/agents", "zod"];

/** The used exports of `@openai/agents` and `zod`. */
interface AgentsPackages {
  readonly "@openai/agents": {
    readonly Agent: new (settings: AgentSettings) => Agent;
    readonly Runner: new (settings: RunSettings) => Runner;
    readonly OpenAIProvider: new (settings: {
      readonly apiKey: string;
      readonly baseURL: string;
      readonly useResponses: boolean;
    }) => ModelProvider;
    readonly setTracingDisabled: (disabled: boolean) => void;
    readonly tool: <Input>(tool: ToolOf<Input>) => Tool;
    readonly user: (text: string) => Item;
  };
  readonly zod: typeof Zod;
}

interface ModelProvider {
  getModel(name: string): unknown;
}

interface RunSettings {
  readonly modelProvider: ModelProvider;
  readonly tracingDisabled: boolean;
}

interface Tool {
  readonly name: string;
}

interface ToolOf<Input> {
  readonly name: string;
  readonly description: string;
  readonly parameters: Zod.z.ZodType<Input>;
  readonly execute: (input: Input) => Promise<string>;
}

interface AgentSettings {
  readonly name: string;
  readonly instructions: string;
  readonly model: string;
  readonly tools: readonly Tool[];
}

interface Agent {
  asTool(settings: {
    readonly toolName: string;
    readonly toolDescription: string;
    readonly runConfig: RunSettings;
  }): Tool;
}

interface Item {
  readonly type?: string;
}

interface Result {
  readonly history: readonly Item[];
  readonly finalOutput?: string;
}

interface Runner {
  run(agent: Agent, input: readonly Item[], options: { readonly maxTurns: number }): Promise<Result>;
  run(
    agent: Agent,
    input: readonly Item[],
    options: { readonly maxTurns: number; readonly stream: true },
  ): Promise<Result & { toTextStream(): AsyncIterable<string>; readonly completed: Promise<void> }>;
}

const MAX_TURNS = 20;

/** The OpenAI Agents SDK: a `Runner` on chat completions; subagents by `asTool`. Tracing is off, as it calls a server. */
export function contenderOf(packages: Packages): Contender {
  const all = packages as unknown as AgentsPackages;
  all["@openai/agents"].setTracingDisabled(true);
  return {
    name: "openai-agents",
    prepare: async (scenario, baseUrl) => {
      const { OpenAIProvider, Runner, user } = all["@openai/agents"];
      const modelProvider = new OpenAIProvider({ apiKey: "none", baseURL: baseUrl, useResponses: false });
      const settings: RunSettings = { modelProvider, tracingDisabled: true };
      const runner = new Runner(settings);
      const agent = agentOf(all, scenario, settings);
      const open = (): Conversation => {
        let history: readonly Item[] = [];
        return {
          turn: async (input) => {
            const items = [...history, user(input)];
            if (scenario.agent === "streaming") {
              const result = await runner.run(agent, items, { maxTurns: MAX_TURNS, stream: true });
              let text = "";
              for await (const piece of result.toTextStream()) text += piece;
              await result.completed;
              history = result.history;
              return text;
            }
            const result = await runner.run(agent, items, { maxTurns: MAX_TURNS });
            history = result.history;
            return result.finalOutput ?? "";
          },
        };
      };
      return { open, close: async () => undefined };
    },
  };
}

function agentOf(packages: AgentsPackages, scenario: Scenario, runConfig: RunSettings): Agent {
  const {
    "@openai/agents": { Agent, tool },
    zod: { z },
  } = packages;
  const lookupTool = tool({
    name: "lookup",
    description: "Looks up the value of a key.",
    parameters: z.object({ key: z.string() }),
    execute: ({ key }) => lookup(key),
  });
  const common = { name: "agent", instructions, model: scenario.model };
  if (scenario.agent === "tools") return new Agent({ ...common, tools: [lookupTool] });
  if (scenario.agent !== "lead") return new Agent({ ...common, tools: [] });
  const child = new Agent({
    name: "child",
    instructions: childInstructions,
    model: scenario.childModel ?? "",
    tools: [lookupTool],
  });
  const childTool = child.asTool({ toolName: "child", toolDescription: "Looks after one part.", runConfig });
  return new Agent({ ...common, tools: [childTool] });
}
