import {
  type ToolCallRequest,
  type ToolMessage,
  type AssistantMessage,
  type Content,
  type JsonObject,
  type Message,
  type ModelRequest,
  notesOn,
  type ResponseFormat,
  textOf,
} from "../state/index.ts";
import { isOwnModel, WireCalls, type WireWriter } from "./wire-calls.ts";

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
}

/** The body of a Chat Completions request. */
export type WireBody = WireObject & { readonly model: string };

export function wireBody(request: ModelRequest, options: WireOptions): WireBody {
  const { tools, toolChoice, maxOutputTokens, temperature, responseFormat } = request;
  const body: Record<string, unknown> & { model: string } = { model: options.reader.model };
  if (tools !== undefined && tools.length > 0) {
    body["tools"] = tools.map(({ name, description, parameters }) => ({
      type: "function",
      function: { name, description, parameters },
    }));
    if (toolChoice !== undefined) body["tool_choice"] = toolChoice;
  }
  if (maxOutputTokens !== undefined) body[options.outputLimitField] = maxOutputTokens;
  if (temperature !== undefined) body["temperature"] = temperature;
  if (responseFormat !== undefined) body["response_format"] = wireFormat(responseFormat);
  if (options.stream) {
    body["stream"] = true;
    if (options.extraBody["stream"] !== false) body["stream_options"] = { include_usage: true };
  }
  if (!("messages" in options.extraBody)) body["messages"] = wireMessages(request, options);
  return Object.assign(body, fittingFields(options.extraBody, "tools" in body));
}

/** Fields such as `parallel_tool_calls` and `tool_choice`: servers refuse them in a request without tools, such as one for a summary. */
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

const filler = (role: "assistant" | "user", content: string): WireObject => ({ role, content });
/** Messages inserted where a server would refuse the role of the next one. */
const fillers = {
  /** Between results and a message of the user. */
  answer: filler("assistant", "I have the results."),
  /** Between two answers, and after a last answer. */
  question: filler("user", "Continue."),
  /** Before an answer at the beginning of a prompt. */
  start: filler("user", "(Earlier messages are not shown.)"),
} as const;
const EMPTY_RESULT = "(no text)";

function wireMessages(request: ModelRequest, { reader, keepsForeignIds }: WireOptions): readonly WireObject[] {
  const prompt = new WirePrompt(reader, new WireCalls(reader, { tools: request.tools, keepsForeignIds }));
  for (const message of request.messages) prompt.add(message);
  return prompt.end();
}

/**
 * The messages of a prompt, in a form that all servers and chat templates accept. Every later turn sends the history again, so one
 * refused message would make all later turns fail. `legalMessages` ensures that each call is followed by exactly one result.
 * 1. At most one system message is sent, the first. Later ones are sent as user messages.
 * 2. Roles alternate. Consecutive user messages are joined.
 * 3. Results are followed by an answer, and then by a user message with their images, if there are any.
 * 4. No message is empty, except for answers with calls.
 * 5. The last message is a user message or a result.
 */
class WirePrompt {
  readonly #reader: WireWriter;
  readonly #wired: WireCalls;
  readonly #sent: WireObject[] = [];
  #last: Message["role"] | undefined;
  /** Messages that are not sent yet, since more may be joined: messages of one role, or results whose images follow. */
  #open: Message[] = [];

  constructor(reader: WireWriter, wired: WireCalls) {
    this.#reader = reader;
    this.#wired = wired;
  }

  /** Returns all messages; `add` must not be called afterwards. */
  end(): readonly WireObject[] {
    this.#close();
    const isComplete = this.#last === "user" || this.#last === "tool" || this.#last === undefined;
    if (!isComplete) this.#sent.push(fillers.question);
    return this.#sent;
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
    if (this.#last === "assistant") this.#sent.push(fillers.question);
    if (this.#last === "system" || this.#last === undefined) this.#sent.push(fillers.start);
    this.#sent.push(assistantMessage(message, this.#reader, this.#wired));
    this.#last = "assistant";
  }

  #addResult(message: ToolMessage): void {
    if (this.#open[0]?.role !== "tool") this.#close();
    const content = isBlank(textOf(message.content)) ? EMPTY_RESULT : sentText(message.content);
    this.#sent.push({ role: "tool", tool_call_id: this.#wired.idOfResult(message), content });
    this.#last = "tool";
    if (hasImage(message.content)) this.#open.push(message);
  }

  #close(): void {
    const [first] = this.#open;
    if (first === undefined) return;
    const role = first.role === "system" ? "system" : "user";
    const content = wireContent(this.#open, (message) => this.#wired.idOfResult(message));
    if (this.#last === "tool") this.#sent.push(fillers.answer);
    this.#sent.push({ role, content });
    this.#last = role;
    this.#open = [];
  }
}

/** The content of one message for several: a text, or parts if there are images. */
function wireContent(
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
 * A text may have been cut inside a surrogate pair. Half a pair is invalid Unicode, and several servers refuse a history that contains
 * one.
 */
function sentText(content: Content): string {
  return textOf(content).toWellFormed();
}

function assistantMessage(message: AssistantMessage, reader: WireWriter, wired: WireCalls): WireObject {
  const { toolCalls: calls = [] } = message;
  const { tool_call_extras: extras, ...reasoning } =
    (isOwnModel(message, reader) ? message.reasoning : undefined) ?? {};
  const text = sentText(message.content);
  const plain = { role: "assistant", content: isBlank(text) ? null : text };
  if (calls.length === 0) return { ...plain, ...reasoning };
  const texts = sentArguments(message);
  const ids = wired.idsOf(message);
  const asked = calls.map((call, index) => ({
    id: ids[index],
    type: "function",
    function: { name: wired.nameOf(call.name), arguments: texts[index] },
    ...extraContent(call, extras),
  }));
  return { ...plain, tool_calls: asked, ...reasoning };
}

function extraContent({ providerId }: ToolCallRequest, extras: unknown): WireObject {
  if (extras === undefined) return {};
  const extra = wireObject(wireArray(extras).find((entry) => wireObject(entry)?.["id"] === providerId));
  return extra?.["extra_content"] === undefined ? {} : { extra_content: extra["extra_content"] };
}

/**
 * The arguments of a message's calls. Several servers refuse every later request once a call in the history has broken JSON, so such text
 * is sent inside an object.
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

/** The value of a JSON text; `undefined` if the text is not valid JSON. */
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

/** Tool messages carry only text, and no message may stand between the results of a round, so their images follow the round. */
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

/** A string, or the joined text of the parts of one type. */
export function wireParts(value: unknown, type: string, field: string): string {
  if (typeof value === "string") return value;
  let text = "";
  for (const entry of wireArray(value)) {
    const part = wireObject(entry);
    if (part?.["type"] === type) text += wireParts(part[field], "text", "text");
  }
  return text;
}
