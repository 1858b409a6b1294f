// A model of an AI SDK provider: Anthropic's package, here against a server on this machine that answers in Anthropic's format.
// For the real one: aiSdkModel(anthropic("claude-sonnet-4-5")), with ANTHROPIC_API_KEY set.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createAnthropic } from "@ai-sdk/anthropic";
import { defineAgent, defineTool, run } from "troupe";
import { aiSdkModel } from "troupe/models/ai-sdk";
import { z } from "zod";

const height = defineTool({
  name: "height",
  description: "Looks up the height of a mountain.",
  parameters: z.object({ mountain: z.string() }),
  effect: "none",
  execute: ({ mountain }) => `${mountain}: 3,967 m`,
});

/** Two answers: a thought and a call, then a text. */
const answers = [
  [
    block(0, { type: "thinking", thinking: "", signature: "" }, { type: "thinking_delta", thinking: "I look it up." }),
    block(
      1,
      { type: "tool_use", id: "toolu_1", name: "height", input: {} },
      { type: "input_json_delta", partial_json: '{"mountain":"Eiger"}' },
    ),
  ],
  [block(0, { type: "text", text: "" }, { type: "text_delta", text: "The Eiger is 3,967 m high." })],
];

function block(index: number, start: object, delta: object): object[] {
  return [
    { type: "content_block_start", index, content_block: start },
    { type: "content_block_delta", index, delta },
    { type: "content_block_stop", index },
  ];
}

const server = createServer((_request, response) => {
  const blocks = answers.shift() ?? [];
  const message = { id: "msg_1", type: "message", role: "assistant", model: "claude-sonnet-4-5", content: [] };
  const stopReason = answers.length > 0 ? "tool_use" : "end_turn";
  const events = [
    {
      type: "message_start",
      message: { ...message, stop_reason: null, usage: { input_tokens: 400, output_tokens: 1 } },
    },
    ...blocks.flat(),
    { type: "message_delta", delta: { stop_reason: stopReason, stop_sequence: null }, usage: { output_tokens: 25 } },
    { type: "message_stop" },
  ];
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
});
await new Promise<void>((resolve) => {
  server.listen(0, "127.0.0.1", resolve);
});
const { port } = server.address() as AddressInfo;

const anthropic = createAnthropic({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: "none" });
const guide = defineAgent({
  name: "guide",
  model: aiSdkModel(anthropic("claude-sonnet-4-5"), { contextWindow: 200_000 }),
  tools: [height],
  budget: { maxSteps: 4, maxTokens: 50_000 },
});

const { text, spent } = await run(guide, "How high is the Eiger?");
console.log(text);
console.log(`${spent.tree.inputTokens} tokens in, ${spent.tree.outputTokens} out`);
server.close();
