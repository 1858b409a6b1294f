import type * as Zod from "zod";
import type { Contender, Conversation } from "../contender.ts";
import { childInstructions, instructions, lookup, type Scenario } from "../scenario.ts";
import type { Packages } from "./install.ts";

export const modules: readonly string[] = [
  "@langchain/langgraph",
  "@langchain/langgraph/prebuilt",
  "@langchain/openai",
  "@langchain/core/messages",
  "@langchain/core/tools",
  "zod",
];

/** The used exports of `@langchain/langgraph`, `@langchain/openai`, `@langchain/core` and `zod`. */
interface LanggraphPackages {
  readonly "@langchain/langgraph": {
    readonly StateGraph: new (state: object) => StateGraph;
    readonly MessagesAnnotation: object;
    readonly START: string;
  };
  readonly "@langchain/langgraph/prebuilt": {
    readonly ToolNode: new (tools: readonly Tool[]) => object;
    readonly toolsCondition: (state: State) => string;
  };
  readonly "@langchain/openai": { readonly ChatOpenAI: new (settings: ModelSettings) => ChatModel };
  readonly "@langchain/core/messages": Record<
    "HumanMessage" | "SystemMessage" | "AIMessage",
    new (
      text: string,
    ) => Message
  >;
  readonly "@langchain/core/tools": {
    readonly tool: <Input>(execute: (input: Input) => Promise<string>, settings: ToolSettings<Input>) => Tool;
  };
  readonly zod: typeof Zod;
}

interface ModelSettings {
  readonly model: string;
  readonly apiKey: string;
  readonly configuration: { readonly baseURL: string };
}

interface Tool {
  readonly name: string;
}

interface ToolSettings<Input> {
  readonly name: string;
  readonly description: string;
  readonly schema: Zod.z.ZodType<Input>;
}

interface Message {
  readonly text: string;
}

interface Runnable {
  invoke(messages: readonly Message[]): Promise<Message>;
}

interface ChatModel extends Runnable {
  bindTools(tools: readonly Tool[]): Runnable;
}

interface State {
  readonly messages: readonly Message[];
}

interface StateGraph {
  addNode(name: string, node: object): this;
  addEdge(from: string, to: string): this;
  addConditionalEdges(from: string, next: (state: State) => string): this;
  compile(): Graph;
}

interface Graph {
  invoke(state: State): Promise<State>;
  stream(
    state: State,
    options: { readonly streamMode: "messages" },
  ): Promise<AsyncIterable<readonly [piece: Message, metadata: object]>>;
}

/** LangGraph: a graph of a model and its tools, without a checkpointer; a subagent is such a graph inside a tool. */
export function contenderOf(packages: Packages): Contender {
  const all = packages as unknown as LanggraphPackages;
  // Environment variables of the user could send every run to LangSmith.
  for (const prefix of ["LANGSMITH", "LANGCHAIN"]) {
    process.env[`${prefix}_TRACING`] = "false";
    process.env[`${prefix}_TRACING_V2`] = "false";
  }
  return {
    name: "langgraph",
    prepare: async (scenario, baseUrl) => {
      const { HumanMessage, AIMessage } = all["@langchain/core/messages"];
      const graph = graphOf(all, scenario, baseUrl);
      const open = (): Conversation => {
        let messages: readonly Message[] = [];
        return {
          turn: async (input) => {
            const prompt = [...messages, new HumanMessage(input)];
            if (scenario.agent === "streaming") {
              let text = "";
              const pieces = await graph.stream({ messages: prompt }, { streamMode: "messages" });
              for await (const [piece] of pieces) text += piece.text;
              messages = [...prompt, new AIMessage(text)];
              return text;
            }
            ({ messages } = await graph.invoke({ messages: prompt }));
            return messages.at(-1)?.text ?? "";
          },
        };
      };
      return { open, close: async () => undefined };
    },
  };
}

function graphOf(packages: LanggraphPackages, scenario: Scenario, baseUrl: string): Graph {
  const { tool } = packages["@langchain/core/tools"];
  const { HumanMessage } = packages["@langchain/core/messages"];
  const { z } = packages.zod;
  const lookupTool = tool(({ key }: { key: string }) => lookup(key), {
    name: "lookup",
    description: "Looks up the value of a key.",
    schema: z.object({ key: z.string() }),
  });
  const main = { model: scenario.model, instructions, baseUrl };
  if (scenario.agent === "tools") return loopGraph(packages, { ...main, tools: [lookupTool] });
  if (scenario.agent !== "lead") return loopGraph(packages, { ...main, tools: [] });
  const child = loopGraph(packages, {
    model: scenario.childModel ?? "",
    instructions: childInstructions,
    baseUrl,
    tools: [lookupTool],
  });
  const childTool = tool(
    async ({ input }: { input: string }) => {
      const { messages } = await child.invoke({ messages: [new HumanMessage(input)] });
      return messages.at(-1)?.text ?? "";
    },
    { name: "child", description: "Looks after one part.", schema: z.object({ input: z.string() }) },
  );
  return loopGraph(packages, { ...main, tools: [childTool] });
}

interface LoopSettings {
  readonly model: string;
  readonly instructions: string;
  readonly baseUrl: string;
  readonly tools: readonly Tool[];
}

/** Ask the model; while it calls tools, run them and ask again. */
function loopGraph(packages: LanggraphPackages, settings: LoopSettings): Graph {
  const { StateGraph, MessagesAnnotation, START } = packages["@langchain/langgraph"];
  const { ToolNode, toolsCondition } = packages["@langchain/langgraph/prebuilt"];
  const { ChatOpenAI } = packages["@langchain/openai"];
  const { SystemMessage } = packages["@langchain/core/messages"];
  const { tools, baseUrl } = settings;
  const chat = new ChatOpenAI({ model: settings.model, apiKey: "none", configuration: { baseURL: baseUrl } });
  const model = tools.length === 0 ? chat : chat.bindTools(tools);
  const system = new SystemMessage(settings.instructions);
  const ask = async ({ messages }: State) => ({ messages: [await model.invoke([system, ...messages])] });
  const graph = new StateGraph(MessagesAnnotation).addNode("agent", ask).addEdge(START, "agent");
  if (tools.length === 0) return graph.compile();
  return graph
    .addNode("tools", new ToolNode(tools))
    .addConditionalEdges("agent", toolsCondition)
    .addEdge("tools", "agent")
    .compile();
}
