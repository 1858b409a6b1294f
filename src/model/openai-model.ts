import type { OpenAI } from "openai";
import { InvalidInputError } from "../errors/index.ts";
import {
  type OptionsSchema,
  functionRule,
  nameRule,
  oneOfRule,
  optionsOf,
  optionsRule,
  recordRule,
  ruleOf,
  textRule,
} from "../base/index.ts";
import { type JsonObject, type ReasoningEffort, reasoningEfforts, takeObject } from "../state/index.ts";
import { AdapterModel } from "./adapter-model.ts";
import type { LanguageModel } from "./language-model.ts";
import { adapterOptionRules, adapterOptionsInstead, defaultRequestTimeoutMs } from "./model-option-rules.ts";
import { type OpenaiApi, OpenaiBackend } from "./openai-backend.ts";
import { chatApi } from "./openai-chat.ts";
import { addressOf, givenClient, ownClient } from "./openai-client.ts";
import { assertResponsesFields, type ReasoningOptions, reasoningSummaries, responsesApi } from "./openai-responses.ts";
import { assertCacheTtl, chatTtls, responsesTtls } from "./prompt-cache.ts";
import type { StructuredOutput } from "./structured-output.ts";

/** Options of `openaiModel()`. */
export interface OpenaiModelOptions {
  /**
   * `chat`: Chat Completions, which most servers speak; `responses`: OpenAI's Responses API, with summaries of reasoning, and reasoning
   * that goes back to the model. It is used without state on the server: the journal has the history. Default `chat`.
   */
  readonly api?: "chat" | "responses" | undefined;
  /**
   * How the model thinks, for `responses`: `effort` (`reasoningEffort` of an agent or a turn overrides it) and `summary` of its thoughts
   * (`auto`, `concise` or `detailed`), which is streamed and stored. Default: that of the model, without a summary.
   */
  readonly reasoning?:
    | {
        readonly effort?: ReasoningEffort | undefined;
        readonly summary?: "auto" | "concise" | "detailed" | undefined;
      }
    | undefined;
  /** The provider, if it is not OpenAI: used in traces and to look up the price (`azure`, `groq`, `openrouter`, …). Default `openai`. */
  readonly provider?: string | undefined;
  /**
   * Sends the requests: an `OpenAI` or `AzureOpenAI` of the `openai` package. Its base URL, keys, headers, `fetch`, logger and timeout
   * apply, so `apiKey`, `baseURL`, `organization`, `headers` and `fetch` are refused beside it. Its retries are off for the calls of this
   * model, because the runtime repeats calls. Default: a client that is created on first use.
   */
  readonly client?: OpenAI | undefined;
  /** Default: `OPENAI_API_KEY`, read on first use. */
  readonly apiKey?: string | undefined;
  /** Default: `OPENAI_BASE_URL`, read on first use, else OpenAI's URL. */
  readonly baseURL?: string | undefined;
  /** OpenAI's id of the organization that pays. Default: `OPENAI_ORG_ID`, else none. */
  readonly organization?: string | undefined;
  /** Headers of every request. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Tokens that prompt and answer may have together. Default: unknown. */
  readonly contextWindow?: number | undefined;
  /** Longest time without data after the first piece of an answer, in milliseconds. Default 60,000. */
  readonly stallTimeoutMs?: number | undefined;
  /**
   * Longest wait for the first piece of a streamed answer, in milliseconds. Default: `requestTimeoutMs`, as for an unstreamed answer,
   * since a local model may read a long prompt for minutes.
   */
  readonly headersTimeoutMs?: number | undefined;
  /** Longest time for the complete call, in milliseconds. Default 600,000. */
  readonly requestTimeoutMs?: number | undefined;
  /** Sends the requests. Default: a `fetch` over kept-alive connections of `undici`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /**
   * Fields for the request's body, set last. For `responses`, objects are merged field by field, and `tools` are added to those of the
   * agent: tools that OpenAI executes (`web_search`, `file_search`, `code_interpreter`, `mcp`). Default: none.
   */
  readonly extraBody?: JsonObject | undefined;
  /** For `chat`, the field that carries `maxOutputTokens`. Default `max_completion_tokens`; some servers only accept `max_tokens`. */
  readonly outputLimitField?: "max_completion_tokens" | "max_tokens" | undefined;
  /** Tokens to reserve for an image. Default 2,500. */
  readonly imageTokens?: number | undefined;
  /** Tokens to reserve for a file that is sent as one. Default: 5,000 for each page of a PDF, 40 for each second of a WAV, else by size. */
  readonly fileTokens?: number | undefined;
  /**
   * How to send ids of calls that another model or server wrote. `portable`: as 9 letters and digits, which every server accepts;
   * `verbatim`: unchanged. The model's own ids are always sent unchanged. Default `portable`.
   */
  readonly foreignCallIds?: "portable" | "verbatim" | undefined;
  /**
   * Additional texts or patterns in messages with which the server refuses a prompt that is too long. The texts of many servers are built
   * in. `autoCompact` depends on them. Default: none.
   */
  readonly tooLongMessages?: readonly (string | RegExp)[] | undefined;
  /**
   * How to request an answer that fits a schema (`output`): `jsonSchema` by `json_schema`, `tool` by a final call of a tool whose
   * parameters are the schema, `jsonObject` by `json_object` with the schema in the instructions, `prompt` by the instructions alone.
   * Default `auto`: the first of these that the server accepts, which is remembered in the process for this server and model, separately
   * for requests with tools. A call in another form that the server refuses fails with a `ModelError`.
   */
  readonly structuredOutput?: "auto" | StructuredOutput | undefined;
  /**
   * When the model's reasoning is sent back: `bound` only while everything before it is unchanged, `always` in any case. Default `auto`:
   * `bound` for Claude from version 5.1 on, which refuses it after a changed prefix, also behind a gateway; `always` for others.
   */
  readonly thinkingReplay?: "auto" | "bound" | "always" | undefined;
  /**
   * `auto` sends the agent's id as `prompt_cache_key`, and an explicit cache breakpoint to GPT-5.6 and later; models named `anthropic/…`
   * get marks for their cache. `off` sends none of it, and makes GPT-5.6 and later write nothing. Default: `auto` for OpenAI's own
   * servers and for OpenRouter's models of Anthropic; nothing is sent to other servers, which may refuse the fields.
   */
  readonly cache?: "auto" | "off" | undefined;
  /**
   * How long the provider keeps what it has cached: `30m` or `12h` for GPT-5.6 and later, `5m` or `1h` for models named `anthropic/…`. The
   * longer ones are written at a higher rate (`longCacheWritePerMillion`). Default: the provider's, which is the shorter one.
   */
  readonly cacheTtl?: "5m" | "30m" | "1h" | "12h" | undefined;
}

/**
 * A model behind OpenAI's API: Chat Completions of OpenAI, Azure or any compatible server, or the Responses API (`api: "responses"`). The
 * `openai` package is loaded at the first call.
 * Throws `InvalidInputError` at once for invalid options, for options of the other API, and for options that contradict a given `client`. A call with a missing or
 * unusable key, or with an unusable URL, fails with a `ModelError` of kind `configuration`: it is not sent, not repeated and not billed.
 */
export function openaiModel(name: string, given?: OpenaiModelOptions): LanguageModel {
  if (typeof name !== "string" || name.trim() === "") {
    throw new InvalidInputError('openaiModel() needs a model name as its first argument, for instance "gpt-5-mini".');
  }
  const options = optionsOf<OpenaiModelOptions>(given, "openaiModel()", modelOptionsSchema);
  const contradicting = clientOptions.filter((option) => options[option] !== undefined);
  if (options.client !== undefined && contradicting.length > 0) {
    const names = contradicting.join(", ");
    throw new InvalidInputError(
      `openaiModel() was given both client and ${names}: set ${names} on the client, or leave client out.`,
    );
  }
  const { provider = "openai" } = options;
  const api = apiOf(name, options);
  const backend = new OpenaiBackend({ name, provider, api, connect });
  return new AdapterModel({ name, provider, server: serverOf(options) }, options, backend);

  function connect() {
    const { client, apiKey, baseURL, organization, headers, fetch, requestTimeoutMs } = options;
    if (client !== undefined) return givenClient(client);
    const timeoutMs = requestTimeoutMs ?? defaultRequestTimeoutMs;
    return ownClient({ apiKey, baseURL, organization, headers, fetch, timeoutMs });
  }
}

function apiOf(name: string, options: OpenaiModelOptions): OpenaiApi {
  const { api = "chat", extraBody = {}, outputLimitField = "max_completion_tokens", reasoning = {} } = options;
  const { cache, cacheTtl } = options;
  assertCacheTtl(options, "openaiModel()", api === "chat" ? chatTtls(name) : responsesTtls(name));
  const caching = { cache, cacheTtl };
  const keepsForeignIds = options.foreignCallIds === "verbatim";
  if (api === "chat") {
    if (options.reasoning === undefined) return chatApi({ extraBody, outputLimitField, keepsForeignIds, caching });
    throw new InvalidInputError(
      'openaiModel() was given reasoning, which Chat Completions does not have: set reasoningEffort of defineAgent(), or api: "responses".',
    );
  }
  if (options.outputLimitField !== undefined) {
    throw new InvalidInputError(
      'openaiModel() was given outputLimitField, but api: "responses" has one field only: leave it out.',
    );
  }
  assertResponsesFields(extraBody, "openaiModel(): extraBody");
  return responsesApi({ extraBody, reasoning, keepsForeignIds, caching });
}

/** The address of the server, as far as the options name it. */
function serverOf({ client, baseURL = client?.baseURL }: OpenaiModelOptions): string | undefined {
  return baseURL !== undefined && URL.canParse(baseURL) ? addressOf(baseURL) : undefined;
}

/** Options that a given client already has. */
const clientOptions = ["apiKey", "baseURL", "organization", "headers", "fetch"] as const;

const clientRule = ruleOf(
  "a client of the openai package: new OpenAI(...) or new AzureOpenAI(...)",
  (value) => typeof value === "object" && value !== null && "post" in value && "baseURL" in value,
);

const modelOptionsSchema: OptionsSchema<OpenaiModelOptions> = {
  rules: {
    ...adapterOptionRules,
    api: oneOfRule("chat", "responses"),
    reasoning: optionsRule<ReasoningOptions>({
      rules: { effort: oneOfRule(...reasoningEfforts), summary: oneOfRule(...reasoningSummaries) },
    }),
    client: clientRule,
    provider: nameRule,
    // A key must not appear in messages, even an invalid one.
    apiKey: secretRule,
    baseURL: textRule,
    organization: textRule,
    headers: recordRule("an object of header values by header name", secretRule),
    fetch: functionRule,
    extraBody: (value, where) => takeObject(value, where),
    outputLimitField: oneOfRule("max_completion_tokens", "max_tokens"),
    foreignCallIds: oneOfRule("portable", "verbatim"),
  },
  instead: {
    key: "apiKey",
    token: "apiKey",
    baseUrl: "baseURL",
    url: "baseURL",
    ...adapterOptionsInstead,
  },
};

function secretRule(value: unknown, where: string): string {
  if (typeof value === "string") return value;
  throw new InvalidInputError(`${where} is of type ${value === null ? "null" : typeof value}; expected a text`);
}
