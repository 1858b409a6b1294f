// The same agent with a model of each provider. The models are sent to a server on this machine that answers in the format of the
// provider's documentation; without the address and the key of a server, each package uses its provider and the key in the environment.
// One provider: node examples/31-providers.ts bedrock
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createCohere } from "@ai-sdk/cohere";
import { createDeepSeek } from "@ai-sdk/deepseek";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createGroq } from "@ai-sdk/groq";
import { createMistral } from "@ai-sdk/mistral";
import { createXai } from "@ai-sdk/xai";
import { createOpenRouter } from "@openrouter/ai-sdk-provider";
import { createOllama } from "ollama-ai-provider-v2";
import { defineAgent, defineTool, type LanguageModel, openaiModel, run } from "troupe";
import { aiSdkModel } from "troupe/models/ai-sdk";
import { z } from "zod";
import { anthropicFormat } from "./wire-formats/anthropic.ts";
import { bedrockFormat } from "./wire-formats/bedrock.ts";
import {
  deepseekFormat,
  groqFormat,
  mistralFormat,
  openaiChatFormat,
  openrouterFormat,
} from "./wire-formats/chat-completions.ts";
import { cohereFormat } from "./wire-formats/cohere.ts";
import { googleFormat } from "./wire-formats/google.ts";
import { ollamaFormat } from "./wire-formats/ollama.ts";
import { xaiFormat } from "./wire-formats/responses.ts";
import type { WireFormat } from "./wire-formats/wire-format.ts";

const apiKey = "none";

/** The models, by the names of their providers. `origin` is the address of the server on this machine. */
const models: Readonly<Record<string, readonly [WireFormat, (origin: string) => LanguageModel]>> = {
  openai: [openaiChatFormat, (origin) => openaiModel("gpt-5-mini", { baseURL: `${origin}/v1`, apiKey })],
  anthropic: [
    anthropicFormat,
    (origin) => {
      const anthropic = createAnthropic({ baseURL: `${origin}/v1`, apiKey });
      // The budget for thinking is part of maxOutputTokens.
      const thinking = { type: "enabled", budgetTokens: 1_024 } as const;
      return aiSdkModel(anthropic("claude-sonnet-4-5"), { providerOptions: { anthropic: { thinking } } });
    },
  ],
  google: [
    googleFormat,
    (origin) => {
      const google = createGoogleGenerativeAI({ baseURL: `${origin}/v1beta`, apiKey });
      return aiSdkModel(google("gemini-2.5-pro"), { contextWindow: 1_048_576 });
    },
  ],
  bedrock: [
    bedrockFormat,
    (origin) => {
      const bedrock = createAmazonBedrock({ baseURL: origin, apiKey, region: "eu-central-1" });
      return aiSdkModel(bedrock("eu.anthropic.claude-sonnet-4-5-20250929-v1:0"), { provider: "aws" });
    },
  ],
  mistral: [
    mistralFormat,
    (origin) => aiSdkModel(createMistral({ baseURL: `${origin}/v1`, apiKey })("magistral-medium-latest")),
  ],
  xai: [xaiFormat, (origin) => aiSdkModel(createXai({ baseURL: `${origin}/v1`, apiKey })("grok-4"))],
  groq: [groqFormat, (origin) => aiSdkModel(createGroq({ baseURL: `${origin}/v1`, apiKey })("openai/gpt-oss-120b"))],
  openrouter: [
    openrouterFormat,
    (origin) => aiSdkModel(createOpenRouter({ baseURL: `${origin}/v1`, apiKey })("anthropic/claude-sonnet-4.5")),
  ],
  deepseek: [
    deepseekFormat,
    (origin) => aiSdkModel(createDeepSeek({ baseURL: `${origin}/v1`, apiKey })("deepseek-reasoner")),
  ],
  cohere: [
    cohereFormat,
    (origin) => aiSdkModel(createCohere({ baseURL: `${origin}/v2`, apiKey })("command-a-03-2025")),
  ],
  ollama: [ollamaFormat, (origin) => aiSdkModel(createOllama({ baseURL: `${origin}/api` })("qwen3"))],
};

const height = defineTool({
  name: "height",
  description: "Looks up the height of a mountain.",
  parameters: z.object({ mountain: z.string() }),
  effect: "none",
  execute: ({ mountain }) => `${mountain}: 3,967 m`,
});

/** A server that answers first with a thought and a call, then with a text. */
async function serve(format: WireFormat) {
  const call = { id: "D681PevKs", name: "height", arguments: { mountain: "Eiger" } };
  const replies = [{ thought: "I look it up.", calls: [call] }, { text: "The Eiger is 3,967 m high." }];
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": format.contentType });
    for (const event of format.events(replies.shift() ?? {})) response.write(event);
    response.end();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}

const chosen = process.argv[2];
for (const [provider, [format, modelAt]] of Object.entries(models)) {
  if (chosen !== undefined && chosen !== provider) continue;
  const server = await serve(format);
  const guide = defineAgent({
    name: "guide",
    model: modelAt(server.origin),
    tools: [height],
    budget: { maxTokens: 50_000 },
  });
  const { text, spent } = await run(guide, "How high is the Eiger?");
  const [model] = Object.keys(spent.byModel);
  console.log(`${provider}: ${text} ${model}, ${spent.tree.inputTokens} tokens in, ${spent.tree.outputTokens} out`);
  server.close();
}
