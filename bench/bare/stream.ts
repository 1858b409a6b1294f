import type OpenAI from "openai";
import type { ChatMessage } from "./loop.ts";

/** One streamed answer, read with the client's iterator. Appends the answer to `messages`. */
export async function runStream(client: OpenAI, model: string, messages: ChatMessage[]): Promise<string> {
  const stream = await client.chat.completions.create({
    model,
    messages,
    stream: true,
    stream_options: { include_usage: true },
  });
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
  messages.push({ role: "assistant", content: text });
  return text;
}
