// For random messages of a chat, whole or streamed, the history is recognized: no message causes a fork.
import * as fc from "fast-check";
import type { OpenAI } from "openai";
import { openaiSurface } from "troupe/server";
import { createRuntime } from "troupe";
import { expect, test } from "vitest";
import { amount } from "../../support/full.ts";
import { serve } from "../served.ts";
import { clientOf } from "./official-client.ts";
import { desk, showTool } from "./openai-served.ts";

type Message = OpenAI.ChatCompletionMessageParam;

const word = fc.constantFrom(
  "hello",
  "  hi\n there ",
  "loop",
  "think",
  "ask",
  "remove",
  "show",
  "show two",
  "delegate",
  "yes",
);
const image: Message = {
  role: "user",
  content: [
    { type: "text", text: "look" },
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
  ],
};
const message = fc.oneof(
  { weight: 9, arbitrary: word.map((content): Message => ({ role: "user", content })) },
  fc.constant(image),
);
const program = fc.array(fc.record({ message, isStream: fc.boolean() }), { minLength: 1, maxLength: 7 });

/** The part of an answer that a front end keeps: some trim it. */
function kept({ content, tool_calls: calls }: OpenAI.ChatCompletionMessage): Message {
  const text = content?.trim() ?? null;
  return calls === undefined
    ? { role: "assistant", content: text }
    : { role: "assistant", content: text, tool_calls: calls };
}

test("a chat of any messages is one agent, and is the same in a stream", { timeout: 180_000 }, async () => {
  const runtime = await createRuntime({ agents: [desk()] });
  const limits = { turnsPerMinute: 100_000, requestsPerMinute: 100_000, openTurns: 10_000 };
  const { server } = serve(runtime, { surfaces: [openaiSurface({ chatIdHeaders: ["x-chat"] })], limits });
  let chats = 0;
  await fc.assert(
    fc.asyncProperty(program, async (steps) => {
      chats += 1;
      const name = `chat ${chats}`;
      const { completions } = clientOf(server, { defaultHeaders: { "x-chat": name } }).chat;
      const messages: Message[] = [];
      const send = async (isStream: boolean): Promise<readonly OpenAI.ChatCompletionMessageToolCall[]> => {
        const body = { model: "desk", messages, tools: [showTool] };
        const completion = isStream
          ? await completions.stream(body).finalChatCompletion()
          : await completions.create(body);
        const answer = completion.choices[0]?.message;
        if (answer === undefined) throw new Error("the answer is missing");
        messages.push(kept(answer));
        return answer.tool_calls ?? [];
      };
      for (const step of steps) {
        messages.push(step.message);
        let calls = await send(step.isStream);
        while (calls.length > 0) {
          messages.push(...calls.map(({ id }): Message => ({ role: "tool", tool_call_id: id, content: "shown" })));
          calls = await send(!step.isStream);
        }
      }
      expect(await runtime.list({ sessionId: name, rootsOnly: true }), JSON.stringify(messages)).toHaveLength(1);
    }),
    { numRuns: amount(150, 25) },
  );
  await runtime.shutdown();
});
