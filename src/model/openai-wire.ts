import { shortHash } from "../base/index.ts";
import {
  type ModelTool,
  type ToolCallRequest,
  type ToolMessage,
  type AssistantMessage,
  type Content,
  type JsonObject,
  KnownBeginnings,
  type Message,
  type ModelRequest,
  notesOn,
  type ResponseFormat,
  textOf,
} from "../state/index.ts";

export interface WireOptions {
  readonly model: string;
  readonly stream: boolean;
  /** The field that carries `maxOutputTokens`; some servers only know the older one. */
  readonly outputLimitField: "max_completion_tokens" | "max_tokens";
  /** Fields that are set last and override the request's. */
  readonly extraBody: JsonObject;
}

/** The body of a Chat Completions request. */
export interface WireBody {
  readonly text: string;
  /** Whether the answer is asked for as a stream. */
  readonly isStreamed: boolean;
}

/** What was written of earlier calls is kept, so that a long conversation and its tools are not written out again and again. */
export function wireBody(request: ModelRequest, options: WireOptions): WireBody {
  const { text, isStreamed, hasMessages } = writtenFields(request, options);
  if (hasMessages) return { text, isStreamed };
  return { text: `{"messages":[${wireMessages(request)}],${text.slice(1)}`, isStreamed };
}

interface WrittenFields {
  readonly text: string;
  readonly isStreamed: boolean;
  /** Whether the user has set the messages. */
  readonly hasMessages: boolean;
}

interface LastFields extends Pick<ModelRequest, "toolChoice" | "maxOutputTokens" | "temperature"> {
  readonly options: WireOptions;
  readonly written: WrittenFields;
}

/** The fields of the last request with a list of tools that nobody can change. */
const lastFields = new WeakMap<readonly ModelTool[], LastFields>();

function writtenFields(request: ModelRequest, options: WireOptions): WrittenFields {
  const { tools, toolChoice, maxOutputTokens, temperature, responseFormat } = request;
  const isKept = tools !== undefined && responseFormat === undefined && Object.isFrozen(tools);
  const last = isKept ? lastFields.get(tools) : undefined;
  const isSame =
    last?.options === options &&
    last.toolChoice === toolChoice &&
    last.maxOutputTokens === maxOutputTokens &&
    last.temperature === temperature;
  if (last && isSame) return last.written;
  const fields = wireFields(request, options);
  const isStreamed = fields["stream"] === true;
  const written = { text: JSON.stringify(fields), isStreamed, hasMessages: "messages" in fields };
  if (isKept) lastFields.set(tools, { options, toolChoice, maxOutputTokens, temperature, written });
  return written;
}

/** All fields but the messages. */
function wireFields(request: ModelRequest, options: WireOptions): Record<string, unknown> {
  const body: Record<string, unknown> = { model: options.model };
  if (request.tools !== undefined && request.tools.length > 0) {
    body["tools"] = request.tools.map(({ name, description, parameters }) => ({
      type: "function",
      function: { name, description, parameters },
    }));
    if (request.toolChoice !== undefined) body["tool_choice"] = request.toolChoice;
  }
  if (request.maxOutputTokens !== undefined) body[options.outputLimitField] = request.maxOutputTokens;
  if (request.temperature !== undefined) body["temperature"] = request.temperature;
  if (request.responseFormat !== undefined) body["response_format"] = wireFormat(request.responseFormat);
  if (options.stream) {
    body["stream"] = true;
    if (options.extraBody["stream"] !== false) body["stream_options"] = { include_usage: true };
  }
  return Object.assign(body, options.extraBody);
}

function wireFormat(format: ResponseFormat): WireObject {
  if (format.type === "text") return { type: "text" };
  if (format.type === "json") return { type: "json_object" };
  return { type: "json_schema", json_schema: { name: format.name, schema: format.schema } };
}

/** A prompt as it was written out, and the calls in it. The next prompt goes on with the same ones. */
interface WrittenPrompt {
  readonly text: string;
  readonly wired: WireCalls;
}

/** Of shorter prompts nothing is kept. */
const FEWEST_KEPT = 16;
/** Longer texts are not kept. */
const LONGEST_KEPT = 2 ** 21;
const written = new KnownBeginnings<WrittenPrompt>(FEWEST_KEPT);

/** The messages as JSON, without the brackets around them. */
function wireMessages({ messages, tools }: ModelRequest): string {
  const known = written.find(messages);
  const start = known?.messages.length ?? 0;
  if (known && start === messages.length) return known.value.text;
  // Its calls are added to, so nobody else may go on with them.
  if (known) written.forget(known);
  const wired = known?.value.wired ?? new WireCalls(tools);
  let text = known?.value.text ?? "";
  let withImages: ToolMessage[] = [];
  const pushImages = (): void => {
    for (const message of withImages) text += `,${JSON.stringify(toolImages(message, wired.idOfResult(message)))}`;
    withImages = [];
  };
  for (let index = start; index < messages.length; index += 1) {
    const message = messages[index] as Message;
    if (withImages.length > 0 && message.role !== "tool") pushImages();
    text += text === "" ? wireMessage(message, wired) : `,${wireMessage(message, wired)}`;
    if (message.role === "tool" && hasImage(message.content)) withImages.push(message);
  }
  // Images come behind the last result of a round, which may not have come yet.
  const isWhole = withImages.length === 0;
  pushImages();
  if (isWhole && !wired.dependsOnTools && text.length <= LONGEST_KEPT) written.keep(messages, { text, wired });
  return text;
}

/** Written field by field, since an object would only be made to be thrown away. Ids that are sent have nothing to escape. */
function wireMessage(message: Message, wired: WireCalls): string {
  const { role, content } = message;
  if (role === "assistant") return assistantMessage(message, wired);
  if (role === "tool") {
    return `{"role":"tool","tool_call_id":"${wired.idOfResult(message)}","content":${JSON.stringify(sentText(content))}}`;
  }
  return `{"role":"${role}","content":${JSON.stringify(role === "user" ? userContent(content) : sentText(content))}}`;
}

/**
 * A text may be cut inside a surrogate pair. Half a pair is invalid Unicode, and several servers refuse a history that
 * has one.
 */
function sentText(content: Content): string {
  return textOf(content).toWellFormed();
}

function assistantMessage(message: AssistantMessage, wired: WireCalls): string {
  const text = sentText(message.content);
  const { toolCalls: calls = [], reasoning } = message;
  const content = text === "" && calls.length > 0 ? null : text;
  const extras = reasoning?.["tool_call_extras"];
  const texts = calls.length === 0 ? [] : sentArguments(message);
  const asked = calls.map((call, index) => wireCall(call, texts[index] ?? "", wired) + extraContent(call, extras));
  const fields = calls.length === 0 ? "" : `,"tool_calls":[${asked.join("},")}}]`;
  const plain = `{"role":"assistant","content":${JSON.stringify(content)}${fields}}`;
  if (reasoning === undefined) return plain;
  const { tool_call_extras: _extras, ...others } = reasoning;
  return JSON.stringify({ ...(JSON.parse(plain) as WireObject), ...others });
}

/** A call, but for its closing brace. */
function wireCall(call: ToolCallRequest, text: string, wired: WireCalls): string {
  const called = `{"name":"${wired.nameOf(call.name)}","arguments":${JSON.stringify(text)}}`;
  return `{"id":"${wired.idOf(call)}","type":"function","function":${called}`;
}

function extraContent({ providerId }: ToolCallRequest, extras: unknown): string {
  if (extras === undefined) return "";
  const extra = wireObject(wireArray(extras).find((entry) => wireObject(entry)?.["id"] === providerId));
  const content = JSON.stringify(extra?.["extra_content"]);
  return content === undefined ? "" : `,"extra_content":${content}`;
}

/**
 * The arguments of a message's calls. Several servers refuse a history for ever once a call in it has broken JSON: such text goes
 * back inside an object.
 */
export function sentArguments(message: AssistantMessage): readonly string[] {
  const notes = notesOn(message);
  notes.sentArguments ??= (message.toolCalls ?? []).map((call) => {
    const text = call.arguments.toWellFormed();
    return isJsonObject(text) ? text : JSON.stringify({ malformed: text });
  });
  return notes.sentArguments;
}

export function isJsonObject(text: string): boolean {
  return wireObject(wireJson(text)) !== undefined;
}

/** The value of a JSON text; undefined if it is none. */
export function wireJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function userContent(content: Content): string | readonly WireObject[] {
  if (typeof content === "string") return sentText(content);
  return content.map((part) =>
    part.type === "text"
      ? { type: "text", text: sentText(part.text) }
      : { type: "image_url", image_url: { url: part.url } },
  );
}

function hasImage(content: Content): boolean {
  return typeof content !== "string" && content.some((part) => part.type === "image");
}

/**
 * Tool messages carry only text, and no message may come between the results of a round, so their images follow the
 * round.
 */
function toolImages(message: ToolMessage, id: string): WireObject {
  const images = typeof message.content === "string" ? [] : message.content.filter((part) => part.type === "image");
  const caption = { type: "text", text: toolImagesCaption(id) } as const;
  return { role: "user", content: userContent([caption, ...images]) };
}

export function toolImagesCaption(id: string): string {
  return `Images from the result of tool call ${id}:`;
}

/** A provider's unchecked data: every field may be missing or of another type. */
export type WireObject = Readonly<Record<string, unknown>>;

export function wireObject(value: unknown): WireObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as WireObject) : undefined;
}

export function wireArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function wireText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Text that is a string, or a list of parts of which those of one type are taken. */
export function wireParts(value: unknown, type: string, field: string): string {
  if (typeof value === "string") return value;
  let text = "";
  for (const entry of wireArray(value)) {
    const part = wireObject(entry);
    if (part?.["type"] === type) text += wireParts(part[field], "text", "text");
  }
  return text;
}

/*
 * Providers refuse a whole request for one invalid name or id in its history, and every later turn sends the history
 * again. So the messages keep the models' own names and ids, and requests carry derived ones that every provider accepts.
 */

const legalName = /^[a-zA-Z0-9_-]{1,64}$/;
const legalId = /^[a-zA-Z0-9_-]{1,40}$/;
const illegalCharacters = /[^a-zA-Z0-9_-]+/g;
const readableCharacters = 40;

/**
 * The name if it is legal, else its readable part with a digest of the whole name, so that different names stay
 * different.
 */
export function sentName(name: string): string {
  return legalName.test(name) ? name : digestedName(name, 0);
}

function digestedName(name: string, round: number): string {
  const readable = name.slice(0, readableCharacters).replaceAll(illegalCharacters, "_");
  // As JSON, because all lone surrogates are the same when encoded as bytes.
  return `${readable === "" ? "unnamed" : readable}-${shortHash(JSON.stringify([name, round]))}`;
}

/** The provider's id if it is legal, else one derived from ours. */
export function sentId({ callId, providerId }: Pick<ToolCallRequest, "callId" | "providerId">): string {
  return legalId.test(providerId) ? providerId : digestedId(callId, providerId, 0);
}

function digestedId(callId: string, providerId: string, round: number): string {
  return `call_${shortHash(JSON.stringify([callId, providerId, round]))}`;
}

/**
 * Names and ids of the calls of one request, message by message in order.
 * 1. A derived name never equals the name of a tool of the request.
 * 2. No two calls of the request have the same id, and a result has the id of its call.
 */
class WireCalls {
  readonly #tools: readonly ModelTool[];
  readonly #used = new Set<string>();
  readonly #byCall = new Map<string, string>();
  readonly #byProvider = new Map<string, string>();
  /** Whether a name was derived, for which the tools of the request count. */
  dependsOnTools = false;

  constructor(tools: readonly ModelTool[] = []) {
    this.#tools = tools;
  }

  nameOf(name: string): string {
    if (legalName.test(name)) return name;
    this.dependsOnTools = true;
    let round = 0;
    let sent = digestedName(name, round);
    while (this.#tools.some((tool) => tool.name === sent)) sent = digestedName(name, (round += 1));
    return sent;
  }

  /** The id of a call; to be asked once per call. */
  idOf(call: ToolCallRequest): string {
    let round = 0;
    let id = sentId(call);
    while (this.#used.has(id)) id = digestedId(call.callId, call.providerId, (round += 1));
    this.#used.add(id);
    this.#byCall.set(call.callId, id);
    this.#byProvider.set(call.providerId, id);
    return id;
  }

  /** The id of the call that this message answers. */
  idOfResult(message: ToolMessage): string {
    const { callId, providerId } = message;
    return this.#byCall.get(callId) ?? this.#byProvider.get(providerId) ?? sentId(message);
  }
}
