// OpenAI's Responses API, here against a server on this machine that answers in its format. The model thinks, calls a tool and answers; its
// encrypted thoughts go back with the result, and nothing is kept on the server.
// For the real one: openaiModel("gpt-5-mini", { api: "responses", reasoning: { summary: "auto" } }), with OPENAI_API_KEY set.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { defineAgent, defineTool, openaiModel, run } from "troupe";
import { z } from "zod";

const height = defineTool({
  name: "height",
  description: "Looks up the height of a mountain.",
  parameters: z.object({ mountain: z.string() }),
  effect: "none",
  execute: ({ mountain }) => `${mountain}: 3,967 m`,
});

const summary = [{ type: "summary_text", text: "The height has to be looked up." }];
const content = [{ type: "output_text", text: "The Eiger is 3,967 m high.", annotations: [] }];
/** The items of two answers: a thought and a call, then a text. */
const answers = [
  [
    { type: "reasoning", id: "rs_1", summary, encrypted_content: "gAAAAB-only-the-server-can-read-this" },
    { type: "function_call", id: "fc_1", call_id: "call_1", name: "height", arguments: '{"mountain":"Eiger"}' },
  ],
  [{ type: "message", id: "msg_1", role: "assistant", phase: "final_answer", content }],
];

const server = createServer((request, response) => {
  let body = "";
  request.on("data", (piece: Buffer) => (body += piece.toString()));
  request.on("end", () => {
    const { input, store } = JSON.parse(body) as { input: readonly { type: string }[]; store: boolean };
    console.log(`store: ${store}, input: ${input.map(({ type }) => type).join(", ")}`);
    const usage = {
      input_tokens: 400,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 60,
      output_tokens_details: { reasoning_tokens: 32 },
    };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ object: "response", status: "completed", output: answers.shift() ?? [], usage }));
  });
});
await new Promise<void>((resolve) => {
  server.listen(0, "127.0.0.1", resolve);
});
const { port } = server.address() as AddressInfo;

const guide = defineAgent({
  name: "guide",
  model: openaiModel("gpt-5-mini", {
    api: "responses",
    reasoning: { effort: "low", summary: "auto" },
    baseURL: `http://127.0.0.1:${port}/v1`,
    apiKey: "none",
    contextWindow: 400_000,
  }),
  tools: [height],
  budget: { maxSteps: 4, maxTokens: 50_000 },
});

const { text, spent } = await run(guide, "How high is the Eiger?");
console.log(text);
console.log(`${spent.tree.inputTokens} tokens in, ${spent.tree.outputTokens} out`);
server.close();
