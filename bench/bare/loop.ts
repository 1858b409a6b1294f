import type OpenAI from "openai";

export type ChatMessage = OpenAI.Chat.Completions.ChatCompletionMessageParam;
type ToolCall = OpenAI.Chat.Completions.ChatCompletionMessageToolCall;

export interface BareTool {
  readonly definition: OpenAI.Chat.Completions.ChatCompletionFunctionTool;
  run(args: Readonly<Record<string, string>>): Promise<string>;
}

export interface BareAgent {
  readonly client: OpenAI;
  readonly model: string;
  readonly tools: readonly BareTool[];
  /** Called with each appended message, in order. */
  readonly keep?: (message: ChatMessage) => void;
}

/** The simplest loop: call the model, run tools, append, and repeat until there is text. Changes `messages`. */
export async function runLoop(agent: BareAgent, messages: ChatMessage[]): Promise<string> {
  const tools = agent.tools.map((tool) => tool.definition);
  const append = (...added: ChatMessage[]): void => {
    messages.push(...added);
    if (agent.keep !== undefined) added.forEach(agent.keep);
  };
  for (;;) {
    const completion = await agent.client.chat.completions.create({
      model: agent.model,
      messages,
      ...(tools.length === 0 ? {} : { tools }),
    });
    const message = completion.choices[0]?.message;
    if (message === undefined) throw new Error("The answer has no choice.");
    append(message);
    const calls = message.tool_calls ?? [];
    if (calls.length === 0) return message.content ?? "";
    append(...(await Promise.all(calls.map((call) => runTool(agent.tools, call)))));
  }
}

async function runTool(tools: readonly BareTool[], call: ToolCall): Promise<ChatMessage> {
  if (call.type !== "function") throw new Error(`The call ${call.id} is not for a function.`);
  const tool = tools.find((candidate) => candidate.definition.function.name === call.function.name);
  if (tool === undefined) throw new Error(`No tool is named ${call.function.name}.`);
  const args = JSON.parse(call.function.arguments) as Record<string, string>;
  return { role: "tool", tool_call_id: call.id, content: await tool.run(args) };
}
