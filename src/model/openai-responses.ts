import { describeValue } from "../base/index.ts";
import { InvalidInputError, ModelError } from "../errors/index.ts";
import type {
  JsonObject,
  ModelRequest,
  ModelWarning,
  ReasoningEffort,
  ResponseFormat,
  ToolChoice,
} from "../state/index.ts";
import type { BodyContext, OpenaiApi } from "./openai-backend.ts";
import { fieldsOfProvider, fittingFields, type ReservedFields } from "./openai-fields.ts";
import { asksForLongTtl, type CacheOptions, responsesCacheFields } from "./prompt-cache.ts";
import { formedPrompt } from "./prompt-form.ts";
import { ResponsesAnswer } from "./responses-answer.ts";
import { isResponsesFile, responsesPrompt } from "./responses-input.ts";
import { type WireObject, wireArray, wireObject, wireText } from "./wire-values.ts";

export const reasoningSummaries = ["auto", "concise", "detailed"] as const;

/** How a model of the Responses API thinks. */
export interface ReasoningOptions {
  /** How much it thinks; `reasoningEffort` of an agent or a turn overrides it. Default: that of the model. */
  readonly effort?: ReasoningEffort | undefined;
  /** Which summary of its thoughts is streamed and stored. Default: none. */
  readonly summary?: (typeof reasoningSummaries)[number] | undefined;
}

interface ResponsesOptions {
  readonly extraBody: JsonObject;
  readonly reasoning: ReasoningOptions;
  readonly keepsForeignIds: boolean;
  readonly caching: CacheOptions;
}

/** OpenAI's Responses API, without state on the server: the journal has the history. */
export function responsesApi(options: ResponsesOptions): OpenaiApi {
  let isEncrypted = true;
  const hostedTools = hostedToolsOf(options.extraBody);
  return {
    path: "/responses",
    hostedTools,
    fixedFormat: (request, reader) => {
      const { text } = { ...options.extraBody, ...fieldsOfProvider(request, reader, reservedFields) };
      return wireObject(text)?.["format"] === undefined ? undefined : "prompt";
    },
    takesFile: isResponsesFile,
    writesLongCache: ({ providerOptions }) =>
      asksForLongTtl(options.caching.cacheTtl, options.extraBody, providerOptions),
    body: (request, target) => responsesBody(request, target, { ...options, isEncrypted }),
    answer: (request) => new ResponsesAnswer({ warnings: warningsOf(request), hostedTools }),
    adaptTo: (refusal) => {
      // Concurrent calls are all refused, and each is worth repeating.
      if (!refusesEncryption(refusal)) return false;
      isEncrypted = false;
      return true;
    },
  };
}

/** Models that do not think refuse to encrypt thoughts. */
function refusesEncryption({ status, message, partialOutputTokens }: ModelError): boolean {
  return status === 400 && partialOutputTokens === undefined && /encrypted content is not supported/i.test(message);
}

/** Fields that decide what is sent, billed and read. */
const reservedFields: ReservedFields = {
  limits: ["max_output_tokens"],
  own: [
    "model",
    "input",
    "instructions",
    "tools",
    "stream",
    "background",
    "previous_response_id",
    "conversation",
    "prompt",
  ],
};

const ENCRYPTED = "reasoning.encrypted_content";
/** OpenAI refuses a lower `max_output_tokens`. */
const LEAST_OUTPUT_TOKENS = 16;
/** OpenAI refuses a longer `call_id`. */
const LONGEST_CALL_ID = 64;

/** @throws ModelError of kind `configuration` for a request that the API does not take. */
function responsesBody(
  request: ModelRequest,
  { reader, stream, agentId }: BodyContext,
  { extraBody, reasoning, keepsForeignIds, caching, isEncrypted }: ResponsesOptions & { readonly isEncrypted: boolean },
): WireObject {
  const { tools = [], toolChoice, maxOutputTokens, temperature, reasoningEffort, responseFormat } = request;
  if (maxOutputTokens !== undefined && maxOutputTokens < LEAST_OUTPUT_TOKENS) throw tooFewTokens(maxOutputTokens);
  const { tools: hosted = [], ...others } = { ...extraBody, ...fieldsOfProvider(request, reader, reservedFields) };
  const allTools = [
    ...tools.map(({ name, description, parameters }) => ({
      type: "function",
      name,
      description,
      parameters,
      strict: false,
    })),
    ...wireArray(hosted),
  ];
  const effort = reasoningEffort ?? reasoning.effort;
  const summary = reasoning.summary;
  const body: Record<string, unknown> = { model: reader.model, store: false };
  if (isEncrypted) body["include"] = [ENCRYPTED];
  if (allTools.length > 0) body["tools"] = allTools;
  if (allTools.length > 0 && toolChoice !== undefined) body["tool_choice"] = wireChoice(toolChoice);
  if (maxOutputTokens !== undefined) body["max_output_tokens"] = maxOutputTokens;
  if (temperature !== undefined) body["temperature"] = temperature;
  if (effort !== undefined || summary !== undefined) {
    body["reasoning"] = { ...(effort === undefined ? {} : { effort }), ...(summary === undefined ? {} : { summary }) };
  }
  if (responseFormat !== undefined) body["text"] = { format: wireFormat(responseFormat) };
  if (stream) body["stream"] = true;
  Object.assign(body, responsesCacheFields(caching, { model: reader.model, address: reader.server ?? "", agentId }));
  if (!("input" in others)) {
    const form = {
      reader,
      keepsForeignIds,
      longestId: LONGEST_CALL_ID,
      reasoningOf: "server",
      takesInResult: () => true,
    } as const;
    const { instructions, input } = responsesPrompt(formedPrompt(request, form));
    if (instructions !== undefined) body["instructions"] = instructions;
    body["input"] = input;
  }
  return joined(body, fittingFields(others, allTools.length > 0));
}

/** The fields over the body, field by field inside objects; lists have the entries of both. */
function joined(body: WireObject, fields: JsonObject): WireObject {
  const all: Record<string, unknown> = { ...body };
  for (const [name, value] of Object.entries(fields)) {
    const before = all[name];
    const [own, other] = [wireObject(before), wireObject(value)];
    if (own !== undefined && other !== undefined) all[name] = { ...own, ...other };
    else if (name === "include" && Array.isArray(before)) all[name] = [...new Set([...before, ...wireArray(value)])];
    else all[name] = value;
  }
  return all;
}

function wireChoice(choice: ToolChoice): unknown {
  return typeof choice === "string" ? choice : { type: "function", name: choice.tool };
}

function wireFormat(format: ResponseFormat): WireObject {
  if (format.type === "text") return { type: "text" };
  if (format.type === "json") return { type: "json_object" };
  return { type: "json_schema", name: format.name, schema: format.schema, strict: false };
}

function tooFewTokens(maxOutputTokens: number): ModelError {
  const words = `at most ${maxOutputTokens} output tokens are left, and the Responses API takes no limit below ${LEAST_OUTPUT_TOKENS}: raise maxOutputTokens or the budget of the agent.`;
  return new ModelError(`The model call was not sent: ${words}`, {
    retryable: false,
    mayHaveBeenSent: false,
    details: { kind: "configuration" },
  });
}

function warningsOf({ stopSequences = [] }: ModelRequest): readonly ModelWarning[] {
  if (stopSequences.length === 0) return [];
  const message = 'stopSequences were not sent: the Responses API has no such option; api: "chat" has it';
  return [{ code: "unsupported", message }];
}

/** Tools that OpenAI executes during an answer. All others have to be executed by the client, as tools of an agent are. */
const hostedTypes = /^(?:web_search(?:_preview)?(?:_\d{4}_\d\d_\d\d)?|file_search|code_interpreter|mcp)$/;

function hostedToolsOf(extraBody: JsonObject): readonly string[] {
  return wireArray(extraBody["tools"]).map((tool) => wireText(wireObject(tool)?.["type"]));
}

/** Fields of `extraBody` that cannot work here, and why. */
const refusedFields: Readonly<Record<string, string>> = {
  previous_response_id: "the whole conversation is sent with each call, because the journal has it",
  conversation: "the whole conversation is sent with each call, because the journal has it",
  background: "the answer is read from the call itself",
  prompt: "its texts and tools cannot be counted before the call; set instructions and tools of the agent",
};

/** @throws InvalidInputError for a field that contradicts a call without state, and for a tool that OpenAI does not execute itself. */
export function assertResponsesFields(extraBody: JsonObject, where: string): void {
  for (const [field, reason] of Object.entries(refusedFields)) {
    if (field in extraBody) throw new InvalidInputError(`${where} has ${field}: leave it out, ${reason}.`);
  }
  const { tools = [] } = extraBody;
  if (!Array.isArray(tools)) {
    throw new InvalidInputError(`${where}.tools is ${describeValue(tools)}; expected a list of tools.`);
  }
  for (const [index, type] of hostedToolsOf(extraBody).entries()) {
    if (hostedTypes.test(type)) continue;
    throw new InvalidInputError(
      `${where}.tools[${index}] has the type ${JSON.stringify(type)}; expected a tool that OpenAI executes and whose result is text: web_search, file_search, code_interpreter or mcp. Define others with defineTool() and give them to the agent.`,
    );
  }
}
