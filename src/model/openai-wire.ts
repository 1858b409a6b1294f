import {
  type ContentPart,
  dataOf,
  type FilePart,
  type JsonObject,
  type ModelRequest,
  type ResponseFormat,
  type ToolChoice,
} from "../state/index.ts";
import { fieldsOfProvider, fittingFields, type ReservedFields } from "./openai-fields.ts";
import { type FormedAnswer, type FormedCall, formedPrompt, type FormedMessage } from "./prompt-form.ts";
import { type CacheOptions, type CachePlan, chatCachePlan } from "./prompt-cache.ts";
import type { WireWriter } from "./wire-calls.ts";
import { type WireObject, wireArray, wireObject } from "./wire-values.ts";

export interface WireOptions {
  readonly stream: boolean;
  /** The field that carries `maxOutputTokens`; some servers only accept the older one. */
  readonly outputLimitField: "max_completion_tokens" | "max_tokens";
  /** Fields that are set last and override the request's. Fields about tools are sent only if the request has tools. */
  readonly extraBody: JsonObject;
  /** The model that receives the prompt. */
  readonly reader: WireWriter;
  /** Whether ids of calls that another model or server wrote are sent unchanged. */
  readonly keepsForeignIds: boolean;
  /** The agent that calls; `undefined` outside of a runtime. */
  readonly agentId?: string | undefined;
  /** How the prompt is marked for the provider's cache. Default: as the server needs it. */
  readonly caching?: CacheOptions | undefined;
}

/** The body of a Chat Completions request. */
export type WireBody = WireObject & { readonly model: string };

/** @throws ModelError of kind `configuration` for provider options that the runtime sets itself. */
export function wireBody(request: ModelRequest, options: WireOptions): WireBody {
  const { tools, toolChoice, maxOutputTokens, temperature, stopSequences, reasoningEffort, responseFormat } = request;
  const body: Record<string, unknown> & { model: string } = { model: options.reader.model };
  if (tools !== undefined && tools.length > 0) {
    body["tools"] = tools.map(({ name, description, parameters }) => ({
      type: "function",
      function: { name, description, parameters },
    }));
    if (toolChoice !== undefined) body["tool_choice"] = wireChoice(toolChoice);
  }
  if (maxOutputTokens !== undefined) body[options.outputLimitField] = maxOutputTokens;
  if (temperature !== undefined) body["temperature"] = temperature;
  if (stopSequences !== undefined && stopSequences.length > 0) body["stop"] = stopSequences;
  if (reasoningEffort !== undefined) body["reasoning_effort"] = reasoningEffort;
  if (responseFormat !== undefined) body["response_format"] = wireFormat(responseFormat);
  if (options.stream) {
    body["stream"] = true;
    if (options.extraBody["stream"] !== false) body["stream_options"] = { include_usage: true };
  }
  if (!("messages" in options.extraBody)) {
    const messages = formedPrompt(request, options);
    const {
      reader: { model, server },
      agentId,
    } = options;
    const plan = chatCachePlan(messages, options.caching ?? {}, { model, address: server ?? "", agentId });
    body["messages"] = messages.map((message, index) =>
      wireMessage(message, plan.marked.includes(index) ? plan.mark : undefined),
    );
    Object.assign(body, plan.fields);
  }
  const hasTools = "tools" in body;
  const own = fieldsOfProvider(request, options.reader, chatFields);
  return Object.assign(body, fittingFields(options.extraBody, hasTools), fittingFields(own, hasTools));
}

/** Fields that decide what is sent, billed and read. */
export const chatFields: ReservedFields = {
  limits: ["max_tokens", "max_completion_tokens"],
  own: ["model", "messages", "tools", "functions", "stream", "stream_options", "n"],
};

function wireChoice(choice: ToolChoice): unknown {
  return typeof choice === "string" ? choice : { type: "function", function: { name: choice.tool } };
}

function wireFormat(format: ResponseFormat): WireObject {
  if (format.type === "text") return { type: "text" };
  if (format.type === "json") return { type: "json_object" };
  return { type: "json_schema", json_schema: { name: format.name, schema: format.schema } };
}

function wireMessage(message: FormedMessage, mark: CachePlan["mark"]): WireObject {
  const wired = unmarked(message);
  if (mark === undefined) return wired;
  const { name, value } = mark;
  // Results of tools are texts; OpenRouter takes its mark beside the text.
  if (message.role === "tool" && name === "cache_control") return { ...wired, [name]: value };
  const { content } = wired;
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : wireArray(content);
  const last = { ...wireObject(parts.at(-1)), [name]: value };
  return { ...wired, content: [...parts.slice(0, -1), last] };
}

function unmarked(message: FormedMessage): WireObject {
  switch (message.role) {
    case "system":
      return { role: "system", content: message.text };
    case "user":
      return { role: "user", content: wireContent(message.parts) };
    case "assistant":
      return assistantMessage(message);
    case "tool":
      return { role: "tool", tool_call_id: message.id, content: message.text };
    default:
      return message satisfies never;
  }
}

/** A text, or parts if there are images or files. */
function wireContent(parts: readonly ContentPart[]): string | readonly WireObject[] {
  const [first] = parts;
  if (parts.length === 1 && first?.type === "text") return first.text;
  return parts.map(wirePart);
}

function wirePart(part: ContentPart): WireObject {
  if (part.type === "text") return { type: "text", text: part.text };
  if (part.type === "image") return { type: "image_url", image_url: { url: part.url } };
  const { mediaType, url = "", name = "file.pdf" } = part;
  const format = audioFormats[mediaType];
  if (format !== undefined) return { type: "input_audio", input_audio: { data: dataOf(url) ?? "", format } };
  return { type: "file", file: { filename: name, file_data: url } };
}

const audioFormats: Readonly<Partial<Record<string, "wav" | "mp3">>> = {
  "audio/wav": "wav",
  "audio/wave": "wav",
  "audio/x-wav": "wav",
  "audio/vnd.wave": "wav",
  "audio/mpeg": "mp3",
  "audio/mp3": "mp3",
};

/** Whether Chat Completions have a part for the file: PDF, WAV and MP3, as data. */
export function isChatFile({ mediaType, url }: FilePart): boolean {
  const isKnown = mediaType === "application/pdf" || audioFormats[mediaType] !== undefined;
  return isKnown && url !== undefined && dataOf(url) !== undefined;
}

/** Other fields of stored reasoning belong to other APIs, which the same model may have been called by. */
const reasoningFields = ["reasoning_content", "reasoning", "reasoning_details"] as const;

function assistantMessage({ text, calls, reasoning: own = {} }: FormedAnswer): WireObject {
  const { tool_call_extras: extras } = own;
  const sent = reasoningFields.filter((name) => own[name] !== undefined);
  const reasoning = Object.fromEntries(sent.map((name) => [name, own[name]]));
  const plain = { role: "assistant", content: text === "" ? null : text };
  if (calls.length === 0) return { ...plain, ...reasoning };
  const asked = calls.map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.arguments },
    ...extraContent(call, extras),
  }));
  return { ...plain, tool_calls: asked, ...reasoning };
}

function extraContent({ providerId }: FormedCall, extras: unknown): WireObject {
  if (extras === undefined) return {};
  const extra = wireObject(wireArray(extras).find((entry) => wireObject(entry)?.["id"] === providerId));
  return extra?.["extra_content"] === undefined ? {} : { extra_content: extra["extra_content"] };
}
