import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createCohere } from "@ai-sdk/cohere";
import { createDeepSeek } from "@ai-sdk/deepseek";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createGroq } from "@ai-sdk/groq";
import { createMistral } from "@ai-sdk/mistral";
import { createXai } from "@ai-sdk/xai";
import { createOpenRouter } from "@openrouter/ai-sdk-provider";
import { createAnthropic as createAnthropicV3 } from "ai-sdk-anthropic-v3";
import { createOllama } from "ollama-ai-provider-v2";
import { anthropicFormat } from "../../../examples/wire-formats/anthropic.ts";
import { bedrockFormat } from "../../../examples/wire-formats/bedrock.ts";
import {
  deepseekFormat,
  groqFormat,
  mistralFormat,
  openaiChatFormat,
  openrouterFormat,
} from "../../../examples/wire-formats/chat-completions.ts";
import { cohereFormat } from "../../../examples/wire-formats/cohere.ts";
import { googleFormat } from "../../../examples/wire-formats/google.ts";
import { ollamaFormat } from "../../../examples/wire-formats/ollama.ts";
import { openaiResponsesFormat, xaiFormat } from "../../../examples/wire-formats/responses.ts";
import type { WireFormat, WireRefusal } from "../../../examples/wire-formats/wire-format.ts";
import { type LanguageModel, openaiModel } from "../../../src/index.ts";
import {
  aiSdkModel,
  type AiSdkLanguageModel,
  type AiSdkModelOptions,
  type ProviderOptions,
} from "../../../src/model/ai-sdk.ts";

// The tests set it to an empty text, which this package refuses when it is loaded.
delete process.env["OPENAI_BASE_URL"];
const { createOpenAI } = await import("@ai-sdk/openai");

export interface FamilyOptions extends Pick<AiSdkModelOptions, "structuredOutput" | "thinkingReplay"> {
  readonly name?: string;
  readonly stallTimeoutMs?: number;
  readonly providerOptions?: ProviderOptions;
}

/** An adapter with one provider, and what the provider's documentation says of it. */
export interface ModelFamily {
  readonly name: string;
  readonly format: WireFormat;
  readonly model: (origin: string, options?: FamilyOptions) => LanguageModel;
  /** The most output tokens that a request permits, thinking included. */
  readonly limitIn: (body: Readonly<Record<string, unknown>>) => unknown;
  /** How it refuses a prompt that is too long. */
  readonly tooLong: readonly WireRefusal[];
  readonly wrongKey: WireRefusal;
  /** The form that ids of calls must have. */
  readonly legalId: RegExp;
  /** The beginning of the ids that the provider gives to its calls. Default: it gives none. */
  readonly ownId?: string;
  /** Options that make the model think, in each form that the provider's package has for them. */
  readonly thinking: readonly ProviderOptions[];
  /** A tool of the provider that the wire format can report. */
  readonly executed?: string;
}

type Body = Readonly<Record<string, unknown>>;

const maxTokens = (body: Body) => body["max_tokens"];
const inside =
  (field: string, name: string) =>
  (body: Body): unknown =>
    (body[field] as Body | undefined)?.[name];
const apiKey = "key-for-tests";
const readable = /^[a-zA-Z0-9_-]{1,64}$/;

function sdkFamily(
  name: string,
  connect: (origin: string) => AiSdkLanguageModel,
  family: Omit<ModelFamily, "name" | "model">,
): ModelFamily {
  return { name, model: (origin, options) => aiSdkModel(connect(origin), options), ...family };
}

const anthropic: Omit<ModelFamily, "name" | "model"> = {
  format: anthropicFormat,
  limitIn: maxTokens,
  legalId: /^[a-zA-Z0-9_-]+$/,
  ownId: "toolu_01A09q90qw90lq917835lq",
  tooLong: [
    { status: 400, message: "prompt is too long: 210000 tokens > 200000 maximum" },
    {
      status: 400,
      message:
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
    },
    { status: 413, message: "Request exceeds the maximum size" },
  ],
  wrongKey: { status: 401, message: "invalid x-api-key" },
  thinking: [
    { anthropic: { thinking: { type: "enabled", budgetTokens: 2_000 } } },
    // The packages add 1,024 tokens.
    { anthropic: { thinking: { type: "enabled" } } },
  ],
  executed: "web_search",
};

const windowOf128k = "This model's maximum context length is 131072 tokens. However, you requested 200000 tokens";

export const modelFamilies: readonly ModelFamily[] = [
  {
    name: "Chat Completions (`openaiModel`)",
    format: openaiChatFormat,
    model: (origin, { name = "gpt-test", providerOptions: _none, ...options } = {}) =>
      openaiModel(name, { baseURL: `${origin}/v1`, apiKey, ...options }),
    limitIn: (body) => body["max_completion_tokens"],
    legalId: readable,
    ownId: "call_abc123def456ghi789jkl012",
    tooLong: [
      { status: 400, message: `${windowOf128k}. Please reduce the length of the messages.` },
      { status: 400, message: "Too long.", type: "context_length_exceeded" },
    ],
    wrongKey: { status: 401, message: "Incorrect API key provided" },
    thinking: [],
  },
  {
    name: "Responses (`openaiModel`)",
    format: openaiResponsesFormat,
    model: (origin, { name = "gpt-5-test", providerOptions, ...options } = {}) => {
      const reasoning = providerOptions?.["openai"] as { readonly effort: "high" } | undefined;
      return openaiModel(name, { api: "responses", baseURL: `${origin}/v1`, apiKey, reasoning, ...options });
    },
    limitIn: (body) => body["max_output_tokens"],
    legalId: readable,
    ownId: "call_abc123def456ghi789jkl012",
    tooLong: [
      {
        status: 400,
        message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
      },
    ],
    wrongKey: { status: 401, message: "Incorrect API key provided" },
    thinking: [{ openai: { effort: "high" } }],
    executed: "web_search",
  },
  sdkFamily("Anthropic", (origin) => createAnthropic({ baseURL: `${origin}/v1`, apiKey })("claude-test"), anthropic),
  sdkFamily(
    "Anthropic (AI SDK 6)",
    (origin) => createAnthropicV3({ baseURL: `${origin}/v1`, apiKey })("claude-old-test"),
    anthropic,
  ),
  sdkFamily(
    "Google",
    (origin) => createGoogleGenerativeAI({ baseURL: `${origin}/v1beta`, apiKey })("gemini-2.5-test"),
    {
      format: googleFormat,
      limitIn: inside("generationConfig", "maxOutputTokens"),
      legalId: readable,
      tooLong: [
        {
          status: 400,
          message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        },
      ],
      wrongKey: { status: 400, message: "API key not valid. Please pass a valid API key." },
      thinking: [{ google: { thinkingConfig: { thinkingBudget: 2_000 } } }],
      executed: "GOOGLE_SEARCH_WEB",
    },
  ),
  sdkFamily("OpenAI Responses", (origin) => createOpenAI({ baseURL: `${origin}/v1`, apiKey }).responses("gpt-5-test"), {
    format: openaiResponsesFormat,
    limitIn: (body) => body["max_output_tokens"],
    legalId: readable,
    ownId: "call_abc123def456ghi789jkl012",
    tooLong: [
      {
        status: 400,
        message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
      },
    ],
    wrongKey: { status: 401, message: "Incorrect API key provided" },
    thinking: [{ openai: { reasoningEffort: "high" } }],
    executed: "web_search",
  }),
  sdkFamily(
    "Amazon Bedrock",
    (origin) => createAmazonBedrock({ baseURL: origin, apiKey, region: "eu-central-1" })("anthropic.claude-test"),
    {
      format: bedrockFormat,
      limitIn: inside("inferenceConfig", "maxTokens"),
      legalId: readable,
      ownId: "tooluse_kZJMlvQmRJ6eAyJE5GIl",
      tooLong: [
        { status: 400, message: "Input is too long for requested model." },
        {
          status: 400,
          message: "The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum",
        },
      ],
      wrongKey: { status: 403, message: "The security token included in the request is invalid." },
      thinking: [
        { bedrock: { reasoningConfig: { type: "enabled", budgetTokens: 2_000 } } },
        { amazonBedrock: { reasoningConfig: { type: "enabled", budgetTokens: 2_000 } } },
        // Of both names the package reads the longer one.
        { amazonBedrock: { reasoningConfig: { type: "enabled", budgetTokens: 2_000 } }, bedrock: {} },
      ],
    },
  ),
  sdkFamily("Mistral", (origin) => createMistral({ baseURL: `${origin}/v1`, apiKey })("mistral-test"), {
    format: mistralFormat,
    limitIn: maxTokens,
    legalId: /^[a-zA-Z0-9]{9}$/,
    ownId: "D681PevK",
    tooLong: [
      {
        status: 400,
        type: "invalid_request_prompt",
        message:
          "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
      },
    ],
    wrongKey: { status: 401, message: "Unauthorized" },
    thinking: [{ mistral: { reasoningEffort: "high" } }],
  }),
  sdkFamily("xAI", (origin) => createXai({ baseURL: `${origin}/v1`, apiKey })("grok-test"), {
    format: xaiFormat,
    limitIn: (body) => body["max_output_tokens"],
    legalId: readable,
    ownId: "call-12345678-",
    tooLong: [
      {
        status: 400,
        message: "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
      },
    ],
    wrongKey: { status: 400, message: "Incorrect API key provided: ke***ts." },
    thinking: [{ xai: { reasoningEffort: "high" } }],
    executed: "web_search",
  }),
  sdkFamily("Groq", (origin) => createGroq({ baseURL: `${origin}/v1`, apiKey })("groq-test"), {
    format: groqFormat,
    limitIn: maxTokens,
    legalId: readable,
    ownId: "call_d5wg",
    tooLong: [{ status: 400, message: "Please reduce the length of the messages or completion." }],
    wrongKey: { status: 401, message: "Invalid API Key" },
    thinking: [{ groq: { reasoningEffort: "high" } }],
  }),
  sdkFamily("OpenRouter", (origin) => createOpenRouter({ baseURL: `${origin}/v1`, apiKey })("lab/model-test"), {
    format: openrouterFormat,
    limitIn: maxTokens,
    legalId: readable,
    ownId: "toolu_vrtx_01A09q90qw90lq917835lq",
    tooLong: [
      {
        status: 400,
        message: "This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens.",
      },
    ],
    wrongKey: { status: 401, message: "No auth credentials found" },
    thinking: [{ openrouter: { reasoning: { max_tokens: 2_000 } } }],
  }),
  sdkFamily("DeepSeek", (origin) => createDeepSeek({ baseURL: `${origin}/v1`, apiKey })("deepseek-test"), {
    format: deepseekFormat,
    limitIn: maxTokens,
    legalId: readable,
    ownId: "call_00_abc",
    tooLong: [{ status: 400, message: `${windowOf128k}. Please reduce the length of the messages or completion.` }],
    wrongKey: { status: 401, message: "Authentication Fails, Your api key is invalid" },
    thinking: [{ deepseek: { thinking: { type: "enabled" } } }],
  }),
  sdkFamily("Cohere", (origin) => createCohere({ baseURL: `${origin}/v2`, apiKey })("command-test"), {
    format: cohereFormat,
    limitIn: maxTokens,
    legalId: readable,
    ownId: "get_height_w5ztp7",
    tooLong: [
      {
        status: 400,
        message:
          "too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 200000. Try using a shorter prompt, or enabling prompt truncating.",
      },
    ],
    wrongKey: { status: 401, message: "invalid api token" },
    thinking: [{ cohere: { thinking: { type: "enabled", tokenBudget: 2_000 } } }],
  }),
  sdkFamily("Ollama", (origin) => createOllama({ baseURL: `${origin}/api` })("llama-test"), {
    format: ollamaFormat,
    limitIn: inside("options", "num_predict"),
    legalId: readable,
    ownId: "call_x1",
    tooLong: [
      { status: 400, message: "prompt too long; exceeded max context length by 4 tokens" },
      { status: 500, message: "the input length exceeds the context length" },
    ],
    wrongKey: { status: 401, message: "unauthorized" },
    thinking: [{ ollama: { think: true } }],
  }),
];

export function familyOf(name: string): ModelFamily {
  const family = modelFamilies.find((one) => one.name === name);
  if (!family) throw new Error(`the family of ${name} is missing`);
  return family;
}
