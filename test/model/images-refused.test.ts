import { expect, it } from "vitest";
import { z } from "zod";
import { createAgent, defineTool, toolResult } from "../../src/index.ts";
import { openaiModel } from "../../src/model/index.ts";
import { completion, wireAnswer, type WireServer, wireServer } from "../support/wire-server.ts";

const image = { type: "image", url: `data:image/png;base64,${"A".repeat(40)}` } as const;
const shot = defineTool({
  name: "shot",
  description: "A screenshot.",
  parameters: z.object({}),
  effect: "none",
  execute: () => toolResult({ content: [{ type: "text", text: "The page:" }, image] }),
});

const asking = JSON.stringify({
  choices: [
    {
      message: { tool_calls: [{ id: "a", type: "function", function: { name: "shot", arguments: "{}" } }] },
      finish_reason: "tool_calls",
    },
  ],
});
const answerTo = (body: string): string => {
  const { messages } = JSON.parse(body) as { messages: readonly { readonly role: string }[] };
  return messages.length === 1 ? asking : completion("It is a page.");
};
/** A server that refuses images with this text. */
const withoutImages = (status: number, message: string): Promise<WireServer> =>
  wireServer((socket, { body }) => {
    const refusal = JSON.stringify({ error: { message } });
    const isRefused = body.includes("image_url");
    socket.write(
      isRefused ? wireAnswer(refusal, "content-type: application/json", status) : wireAnswer(answerTo(body)),
    );
  });

const agentAt = async ({ host }: WireServer) => {
  const model = openaiModel("m", { baseURL: `http://${host}/v1`, apiKey: "none" });
  const agent = await createAgent({ model, tools: [shot], maxModelAttempts: 1 });
  await agent.start();
  return agent;
};

it.each([
  ["OpenAI", 400, "Invalid content type. image_url is only supported by certain models."],
  ["DeepSeek", 422, "Failed to deserialize: messages[3]: unknown variant `image_url`, expected `text`"],
  ["OpenRouter", 404, "No endpoints found that support image input"],
  ["vLLM", 400, "At most 0 image(s) may be provided in one request."],
  ["llama.cpp", 500, "image input is not supported - hint: you may need to provide the mmproj"],
  ["Groq", 400, "'messages.3' : for 'role:user' messages[3].content must be a string"],
])(
  "an image of a tool does not end the turn if the model refuses it, with the text of %s",
  async (_name, status, words) => {
    const server = await withoutImages(status, words);
    const agent = await agentAt(server);
    const first = await agent.executeTurn("What is on the screen?").result;
    expect(first).toMatchObject({ status: "completed", text: "It is a page.", steps: 2 });
    expect(server.requests).toHaveLength(3);
    expect(server.requests.at(-1)?.body).toContain("The page:\\n[image 1]\\n(You cannot see the images");
    expect(await agent.executeTurn("And now?").result).toMatchObject({ status: "completed" });
    expect(server.requests).toHaveLength(4);
    await agent.runtime.shutdown();
  },
);

it("an image of a user, and one that is refused for another reason, fail the turn", async () => {
  for (const [words, input] of [
    ["image_url is only supported by certain models.", [{ type: "text", text: "What is this?" }, image]],
    ["image_url: the image cannot be decoded", "What is on the screen?"],
  ] as const) {
    const agent = await agentAt(await withoutImages(400, words));
    expect(await agent.executeTurn(input).result).toMatchObject({ status: "failed" });
    await agent.runtime.shutdown();
  }
});
