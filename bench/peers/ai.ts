import type * as Zod from "zod";
import type { Contender, Conversation } from "../contender.ts";
import { childInstructions, instructions, lookup, type Scenario } from "../scenario.ts";
import type { Packages } from "./install.ts";

export const modules: readonly string[] = ["ai", "@ai-sdk/openai", "zod"];

/** The used exports of `ai`, `@ai-sdk/openai` and `zod`. */
interface AiPackages {
  readonly ai: {
    readonly ToolLoopAgent: new (settings: AgentSettings) => ToolLoopAgent;
    readonly tool: <Input>(tool: ToolOf<Input>) => Tool;
  };
  readonly "@ai-sdk/openai": {
    readonly createOpenAI: (settings: { readonly apiKey: string; readonly baseURL: string }) => {
      readonly chat: (model: string) => Model;
    };
  };
  readonly zod: typeof Zod;
}

interface Model {
  readonly modelId: string;
}

interface Tool {
  readonly description?: string;
}

interface ToolOf<Input> {
  readonly description: string;
  readonly inputSchema: Zod.z.ZodType<Input>;
  readonly execute: (input: Input) => Promise<string>;
}

interface AgentSettings {
  readonly model: Model;
  readonly instructions: string;
  readonly tools?: Readonly<Record<string, Tool>>;
}

interface Message {
  readonly role: string;
  readonly content: unknown;
}

interface ToolLoopAgent {
  generate(
    prompt: { readonly prompt: string } | { readonly messages: readonly Message[] },
  ): Promise<{ readonly text: string; readonly responseMessages: readonly Message[] }>;
  stream(prompt: { readonly messages: readonly Message[] }): Promise<{
    readonly textStream: AsyncIterable<string>;
    readonly responseMessages: PromiseLike<readonly Message[]>;
  }>;
}

/** The AI SDK: a `ToolLoopAgent` on chat completions; a subagent is an agent in a tool. Telemetry is off by default. */
export function contenderOf(packages: Packages): Contender {
  const all = packages as unknown as AiPackages;
  return {
    name: "ai",
    prepare: async (scenario, baseUrl) => {
      const agent = agentOf(all, scenario, baseUrl);
      const open = (): Conversation => {
        const messages: Message[] = [];
        return {
          turn: async (input) => {
            messages.push({ role: "user", content: input });
            if (scenario.agent === "streaming") return await streamed(agent, messages);
            const { text, responseMessages } = await agent.generate({ messages });
            messages.push(...responseMessages);
            return text;
          },
        };
      };
      return { open, close: async () => undefined };
    },
  };
}

async function streamed(agent: ToolLoopAgent, messages: Message[]): Promise<string> {
  const { textStream, responseMessages } = await agent.stream({ messages });
  let text = "";
  for await (const piece of textStream) text += piece;
  messages.push(...(await responseMessages));
  return text;
}

function agentOf(packages: AiPackages, scenario: Scenario, baseUrl: string): ToolLoopAgent {
  const {
    ai: { ToolLoopAgent, tool },
    "@ai-sdk/openai": { createOpenAI },
    zod: { z },
  } = packages;
  const openai = createOpenAI({ apiKey: "none", baseURL: baseUrl });
  const lookupTool = tool({
    description: "Looks up the value of a key.",
    inputSchema: z.object({ key: z.string() }),
    execute: ({ key }) => lookup(key),
  });
  const common = { model: openai.chat(scenario.model), instructions };
  if (scenario.agent === "tools") return new ToolLoopAgent({ ...common, tools: { lookup: lookupTool } });
  if (scenario.agent !== "lead") return new ToolLoopAgent(common);
  const child = new ToolLoopAgent({
    model: openai.chat(scenario.childModel ?? ""),
    instructions: childInstructions,
    tools: { lookup: lookupTool },
  });
  const childTool = tool({
    description: "Looks after one part.",
    inputSchema: z.object({ input: z.string() }),
    execute: async ({ input }) => (await child.generate({ prompt: input })).text,
  });
  return new ToolLoopAgent({ ...common, tools: { child: childTool } });
}
