import { afterEach, describe, expect, it } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import { openaiModel, type OpenaiModelOptions } from "../../src/model/index.ts";
import { event, failureOf, modelAt, neverAborted, request, stopServers, streamed } from "../support/model-calls.ts";
import { startRawServer } from "../support/raw-server.ts";

afterEach(stopServers);

/** A server's body: an error object or plain text. */
type Body = string | Readonly<Record<string, unknown>>;

async function refusedBy(status: number, body: Body, options: OpenaiModelOptions = {}) {
  const server = await startRawServer((_request, response) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(typeof body === "string" ? body : JSON.stringify({ error: body }));
  });
  return failureOf(modelAt(server, options).generate(request, { signal: neverAborted }));
}

const tooLong = { retryable: false, details: { kind: "context_length" } };
const upstream = JSON.stringify({ error: { message: "prompt is too long: 210000 tokens > 200000 maximum" } });

/** The texts as the servers send them. */
const overflows: readonly (readonly [server: string, status: number, body: Body])[] = [
  ["OpenAI", 400, { message: "Your input exceeds the context window of this model.", code: "context_length_exceeded" }],
  ["OpenAI, without a code", 400, { message: "Your input exceeds the context window of this model." }],
  [
    "Azure",
    400,
    { message: "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 280000 tokens." },
  ],
  [
    "OpenRouter",
    400,
    { message: "This endpoint's maximum context length is 131072 tokens. However, you requested 1." },
  ],
  ["OpenRouter, upstream", 400, { message: "Provider returned error", code: 400, metadata: { raw: upstream } }],
  ["Anthropic", 400, { message: "prompt is too long: 210000 tokens > 200000 maximum" }],
  [
    "Anthropic, with the output",
    400,
    { message: "input length and `max_tokens` exceed context limit: 188240 + 21333" },
  ],
  ["Anthropic, bytes", 413, { message: "Request exceeds the maximum size", type: "request_too_large" }],
  ["Bedrock", 400, { message: "Input is too long for requested model." }],
  [
    "Bedrock Titan",
    400,
    { message: "Too many input tokens. Max input tokens: 8192, request input token count: 16384" },
  ],
  [
    "Gemini",
    400,
    '[{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]',
  ],
  ["Vertex", 400, { message: "the input token count is 40000 but the model only supports up to 32768" }],
  ["xAI", 400, { message: "This model's maximum prompt length is 131072 but the request contains 537812 tokens." }],
  ["Groq", 400, { message: "Please reduce the length of the messages or completion.", type: "invalid_request_error" }],
  ["Cerebras", 413, ""],
  ["a proxy", 413, "<html><h1>413 Request Entity Too Large</h1></html>"],
  [
    "Mistral",
    400,
    '{"object":"error","message":"Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":3051}',
  ],
  ["Kimi", 400, { message: "Your request exceeded model token limit: 262144 (requested: 270000)" }],
  ["MiniMax", 400, { message: "invalid params, context window exceeds limit (2013)" }],
  ["Zhipu", 400, { code: "1261", message: "Prompt exceeds max length" }],
  ["Zhipu, in its language", 400, { code: "1261", message: "Prompt 超长" }],
  ["GitHub Copilot", 400, { message: "prompt token count of 130000 exceeds the limit of 128000" }],
  ["GitHub Copilot, by its code", 400, { message: "No.", code: "model_max_prompt_tokens_exceeded" }],
  [
    "GitHub Models",
    413,
    { code: "tokens_limit_reached", message: "Request body too large for gpt-4o model. Max size: 8000." },
  ],
  ["a plan", 400, { message: "tokens in request more than max tokens allowed" }],
  [
    "TGI",
    422,
    '{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 8000","error_type":"validation"}',
  ],
  ["TGI, cut", 422, '{"error":"`inputs` must have less than 4096 tokens. Given: 6000","error_type":"validation"}'],
  ["DashScope", 400, { message: "Range of input length should be [1, 129024]" }],
  ["vLLM", 400, { message: "The decoder prompt (length 9000) is longer than the maximum model length of 8192." }],
  ["vLLM, no room", 400, { message: "max_tokens must be at least 1, got -812." }],
  ["vLLM, prompt", 400, { message: "The prompt (total length 9000) is too long to fit into the model" }],
  ["SGLang", 400, { message: "The input (9000 tokens) is longer than the model's context length (8192 tokens)." }],
  ["llama.cpp", 400, { message: "the request exceeds the available context size", type: "exceed_context_size_error" }],
  ["llama.cpp, earlier", 500, { message: "Context size has been exceeded.", type: "server_error" }],
  [
    "LM Studio",
    400,
    { message: "The number of tokens to keep from the initial prompt is greater than the context length." },
  ],
  [
    "LM Studio, loaded",
    400,
    '{"error":"the model is loaded with context length of only 4096 tokens, which is not enough"}',
  ],
  ["Ollama", 400, { message: "prompt too long; exceeded max context length by 4 tokens" }],
  ["Fireworks", 400, { message: "The prompt is too long: 140000, model maximum context length: 131071" }],
  [
    "watsonx",
    400,
    { message: "the number of input tokens 9000 cannot exceed the total tokens limit 8192 for this model" },
  ],
  [
    "SiliconFlow",
    400,
    { code: 20015, message: "length of prompt_tokens (160000) must be less than max_seq_len (131072)." },
  ],
  ["Volcengine", 400, { message: "Total tokens of image and text exceed max message tokens" }],
  ["Cohere", 400, { message: "too many tokens: total number of tokens in the prompt cannot exceed 128000" }],
  ["Kimi, bytes", 400, { message: "total message size 10176584 exceeds limit 2097152" }],
  ["Tencent", 400, { message: "Input token length 140000 exceeds the limit." }],
  [
    "a gateway",
    400,
    { message: "The total number of tokens in the system, messages and tools exceeds the model limit" },
  ],
  ["a gateway, by lengths", 400, { message: "Total input length 40000 exceeds max_seq_len 32768" }],
  ["Cerebras, by lengths", 400, { message: "Current length is 9000 while limit is 8192" }],
  ["a local server", 400, { message: "token limit exceeded: 9000 > 8192" }],
];

describe("a prompt that is too long", () => {
  it.each(overflows)("is recognized by the text of %s", async (_server, status, body) => {
    expect(await refusedBy(status, body)).toMatchObject({ ...tooLong, status });
  });

  it.each(overflows.filter(([, , body]) => typeof body !== "string"))(
    "is recognized after the answer has begun: %s",
    async (_server, _status, body) => {
      const server = await startRawServer((_request, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(event({ error: body }));
      });
      expect(await failureOf(streamed(modelAt(server)))).toMatchObject(tooLong);
    },
  );

  it("is recognized by the user's own texts and patterns, at any status and inside an answer", async () => {
    const tooLongMessages = ["zu lang", /overlong #\d+/g];
    for (const message of ["Der Text ist zu lang.", "overlong #12", "overlong #12"]) {
      expect(await refusedBy(503, { message })).toMatchObject({ retryable: true, details: { kind: "http" } });
      expect(await refusedBy(503, { message }, { tooLongMessages })).toMatchObject(tooLong);
      expect(await refusedBy(200, { message }, { tooLongMessages })).toMatchObject(tooLong);
    }
    for (const wrong of ["", 1, null]) {
      const given = { tooLongMessages: [wrong] } as unknown as OpenaiModelOptions;
      expect(() => openaiModel("m", given)).toThrow(InvalidInputError);
      expect(() => openaiModel("m", given)).toThrow("tooLongMessages");
    }
  });
});

it.each<readonly [server: string, status: number, body: Body, retryable: boolean]>([
  [
    "OpenAI",
    429,
    { message: "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000." },
    true,
  ],
  ["OpenAI, by type", 429, { message: "Too many tokens", type: "tokens", code: "rate_limit_exceeded" }, true],
  [
    "Groq",
    413,
    { message: "Request too large on tokens per minute (TPM): Limit 6000", code: "rate_limit_exceeded" },
    false,
  ],
  ["Bedrock", 400, { message: "Too many tokens, please wait before trying again." }, false],
  ["Bedrock, by status", 429, { message: "Too many tokens" }, true],
  ["a daily limit", 400, { message: "Too many tokens per day, try again later" }, false],
  ["Anthropic", 429, { message: "Extra usage is required for long context requests" }, true],
  ["a plan without long prompts", 403, { message: "No access to the 1M context window" }, false],
  [
    "an output that is too large",
    400,
    { message: "max_tokens is too large: 50000. This model supports at most 16384." },
    false,
  ],
  [
    "Groq, an output that is too large",
    400,
    {
      message:
        "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
    },
    false,
  ],
  ["a quota", 400, { message: "Your daily token limit exceeded." }, false],
  ["an id that is too long", 400, { message: "Invalid 'messages[1].tool_calls[0].id': string too long." }, false],
])("a rate limit or another fault is not recognized as one: %s", async (_server, status, body, retryable) => {
  expect(await refusedBy(status, body)).toMatchObject({ retryable, status, details: { kind: "http" } });
});
