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
import { isOwnModel, WireCalls, type WireWriter } from "./wire-calls.ts";

export interface WireOptions {
  readonly model: string;
  readonly stream: boolean;
  /** The field that carries `maxOutputTokens`; some servers only know the older one. */
  readonly outputLimitField: "max_completion_tokens" | "max_tokens";
  /** Fields that are set last and override the request's. Those about tools go only with tools. */
  readonly extraBody: JsonObject;
  readonly prompts: SentPrompts;
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
  return { text: `{"messages":[${options.prompts.textOf(request)}],${text.slice(1)}`, isStreamed };
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
  return Object.assign(body, fittingFields(options.extraBody, "tools" in body));
}

/** Fields such as `parallel_tool_calls` and `tool_choice`, which servers refuse in a request without tools, like that for a summary. */
const aboutTools = /tool|function/i;

function fittingFields(extraBody: JsonObject, hasTools: boolean): JsonObject {
  if (hasTools || "tools" in extraBody || "functions" in extraBody) return extraBody;
  return Object.fromEntries(Object.entries(extraBody).filter(([name]) => !aboutTools.test(name)));
}

function wireFormat(format: ResponseFormat): WireObject {
  if (format.type === "text") return { type: "text" };
  if (format.type === "json") return { type: "json_object" };
  return { type: "json_schema", json_schema: { name: format.name, schema: format.schema } };
}

/** Of shorter prompts nothing is kept. */
const FEWEST_KEPT = 16;
/** Longer texts are not kept. */
const LONGEST_KEPT = 2 ** 21;

/** The prompts that one model was sent, as they were written out. The next prompt of a conversation goes on with the last one. */
export class SentPrompts {
  readonly #reader: WireWriter;
  readonly #keepsForeignIds: boolean;
  readonly #written = new KnownBeginnings<WrittenPrompt>(FEWEST_KEPT);

  /** `reader`: the model that they are sent to. */
  constructor(reader: WireWriter, { keepsForeignIds = false } = {}) {
    this.#reader = reader;
    this.#keepsForeignIds = keepsForeignIds;
  }

  /** The messages as JSON, without the brackets around them. */
  textOf({ messages, tools }: ModelRequest): string {
    const known = this.#written.find(messages);
    // It is added to, so no other prompt may go on with it.
    if (known) this.#written.forget(known);
    const keepsForeignIds = this.#keepsForeignIds;
    const prompt =
      known?.value ?? new WrittenPrompt(this.#reader, new WireCalls(this.#reader, { tools, keepsForeignIds }));
    for (const message of messages.slice(known?.messages.length ?? 0)) prompt.add(message);
    if (prompt.isKept) this.#written.keep(messages, prompt);
    return prompt.text;
  }
}

const filler = (role: "assistant" | "user", content: string): string => JSON.stringify({ role, content });
/** Stand where a server takes no message of the role that comes next. */
const fillers = {
  /** Between results and what a user writes. */
  answer: filler("assistant", "I have the results."),
  /** Between two answers, and behind one at the end. */
  question: filler("user", "Continue."),
  /** Before an answer with which a prompt begins. */
  start: filler("user", "(Earlier messages are not shown.)"),
} as const;
const EMPTY_RESULT = "(no text)";

/**
 * The messages of a prompt as JSON, in a form that all servers and chat templates take. Every later turn sends the history again, so one
 * message that is refused would end the agent for good. Each call has its one result right behind it, as `legalMessages` provides.
 * 1. At most one system message is sent, the first. Later ones are user messages.
 * 2. Roles alternate. Messages of the user's side that follow each other are one message.
 * 3. Results are followed by an answer. Their images are in a user message behind that.
 * 4. No message is without content, except for answers with calls.
 * 5. The last message is a user's or a result.
 */
class WrittenPrompt {
  readonly #reader: WireWriter;
  readonly #wired: WireCalls;
  #text = "";
  #last: Message["role"] | undefined;
  /** Not written yet, since more may join it: messages of one role, or results of which the images are meant. */
  #open: Message[] = [];

  constructor(reader: WireWriter, wired: WireCalls) {
    this.#reader = reader;
    this.#wired = wired;
  }

  /** Whether the next prompt can go on with it. */
  get isKept(): boolean {
    return !this.#wired.dependsOnTools && this.#text.length <= LONGEST_KEPT;
  }

  get text(): string {
    const { text, last } = this.#withOpen();
    const isComplete = last === "user" || last === "tool" || last === undefined;
    return isComplete ? text : joined(text, fillers.question);
  }

  add(message: Message): void {
    if (message.role === "tool") this.#addResult(message);
    else if (message.role === "assistant") this.#addAnswer(message);
    else if (!isBlank(message.content)) this.#addAsked(message);
  }

  #addAsked(message: Message): void {
    const isFirst = this.#last === undefined && (this.#open.length === 0 || this.#open[0]?.role === "system");
    const isSystem = message.role === "system" && isFirst && !hasImage(message.content);
    if (!isSystem && isFirst) this.#close();
    this.#open.push(isSystem || message.role === "user" ? message : { ...message, role: "user" });
  }

  #addAnswer(message: AssistantMessage): void {
    if (isBlank(textOf(message.content)) && (message.toolCalls ?? []).length === 0) return;
    this.#close();
    if (this.#last === "assistant") this.#write(fillers.question);
    if (this.#last === "system" || this.#last === undefined) this.#write(fillers.start);
    this.#write(assistantMessage(message, this.#reader, this.#wired));
    this.#last = "assistant";
  }

  #addResult(message: ToolMessage): void {
    if (this.#open[0]?.role !== "tool") this.#close();
    const id = JSON.stringify(this.#wired.idOfResult(message));
    const text = isBlank(textOf(message.content)) ? EMPTY_RESULT : sentText(message.content);
    this.#write(`{"role":"tool","tool_call_id":${id},"content":${JSON.stringify(text)}}`);
    this.#last = "tool";
    if (hasImage(message.content)) this.#open.push(message);
  }

  #write(message: string): void {
    this.#text = joined(this.#text, message);
  }

  #close(): void {
    const { text, last } = this.#withOpen();
    this.#text = text;
    this.#last = last;
    this.#open = [];
  }

  #withOpen(): { readonly text: string; readonly last: Message["role"] | undefined } {
    const [first] = this.#open;
    if (first === undefined) return { text: this.#text, last: this.#last };
    const role = first.role === "system" ? "system" : "user";
    const content = JSON.stringify(contentOf(this.#open, (message) => this.#wired.idOfResult(message)));
    const before = this.#last === "tool" ? joined(this.#text, fillers.answer) : this.#text;
    return { text: joined(before, `{"role":"${role}","content":${content}}`), last: role };
  }
}

function joined(text: string, message: string): string {
  return text === "" ? message : `${text},${message}`;
}

/** The content of one message for several: a text, or parts where there are images. */
function contentOf(
  messages: readonly Message[],
  idOf: (message: ToolMessage) => string,
): string | readonly WireObject[] {
  if (!messages.some(({ content }) => hasImage(content)))
    return messages.map(({ content }) => sentText(content)).join("\n\n");
  return messages.flatMap((message) =>
    message.role === "tool" ? toolImages(message, idOf(message)) : userParts(message),
  );
}

function isBlank(content: Content): boolean {
  if (typeof content === "string") return content.trim() === "";
  return content.every((part) => part.type === "text" && part.text.trim() === "");
}

/**
 * A text may be cut inside a surrogate pair. Half a pair is invalid Unicode, and several servers refuse a history that
 * has one.
 */
function sentText(content: Content): string {
  return textOf(content).toWellFormed();
}

function assistantMessage(message: AssistantMessage, reader: WireWriter, wired: WireCalls): string {
  const { toolCalls: calls = [] } = message;
  const reasoning = isOwnModel(message, reader) ? message.reasoning : undefined;
  const text = sentText(message.content);
  const content = isBlank(text) ? null : text;
  const extras = reasoning?.["tool_call_extras"];
  const texts = calls.length === 0 ? [] : sentArguments(message);
  const ids = wired.idsOf(message);
  const asked = calls.map((call, index) => {
    const called = `{"name":"${wired.nameOf(call.name)}","arguments":${JSON.stringify(texts[index])}}`;
    return `{"id":${JSON.stringify(ids[index])},"type":"function","function":${called}${extraContent(call, extras)}}`;
  });
  const fields = calls.length === 0 ? "" : `,"tool_calls":[${asked.join(",")}]`;
  const plain = `{"role":"assistant","content":${JSON.stringify(content)}${fields}}`;
  if (reasoning === undefined) return plain;
  const { tool_call_extras: _extras, ...others } = reasoning;
  return JSON.stringify({ ...(JSON.parse(plain) as WireObject), ...others });
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

function userParts({ content }: Message): readonly WireObject[] {
  if (typeof content === "string") return [{ type: "text", text: sentText(content) }];
  const filled = content.filter((part) => part.type === "image" || part.text.trim() !== "");
  return filled.map((part) =>
    part.type === "text"
      ? { type: "text", text: sentText(part.text) }
      : { type: "image_url", image_url: { url: part.url } },
  );
}

function hasImage(content: Content): boolean {
  return typeof content !== "string" && content.some((part) => part.type === "image");
}

/** Tool messages carry only text, and no message may come between the results of a round, so their images follow the round. */
function toolImages(message: ToolMessage, id: string): readonly WireObject[] {
  const images = typeof message.content === "string" ? [] : message.content.filter((part) => part.type === "image");
  return [{ type: "text", text: toolImagesCaption(id) }, ...userParts({ ...message, content: images })];
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
