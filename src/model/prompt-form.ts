import {
  type AssistantMessage,
  type Content,
  type ContentPart,
  type JsonObject,
  type Message,
  type ModelRequest,
  notesOn,
  textOf,
  type ToolMessage,
} from "../state/index.ts";
import { isOwnModel, isOwnServer, WireCalls, type WireWriter } from "./wire-calls.ts";
import { isJsonObject } from "./wire-values.ts";

/** A call in an answer, with the name and the id that are sent. `arguments` is a JSON object as text. */
export interface FormedCall {
  readonly id: string;
  /** The id that the provider gave it when it answered. */
  readonly providerId: string;
  readonly name: string;
  readonly arguments: string;
}

export interface FormedAnswer {
  readonly role: "assistant";
  /** Empty if the answer has only calls. */
  readonly text: string;
  readonly calls: readonly FormedCall[];
  /** The reasoning, if the reader wrote the message. */
  readonly reasoning?: JsonObject | undefined;
}

/** A message of a prompt as every provider accepts it. An adapter only translates it into its own fields. */
export type FormedMessage =
  | { readonly role: "system"; readonly text: string }
  /** One text, or texts, images and files. */
  | { readonly role: "user"; readonly parts: readonly ContentPart[] }
  | FormedAnswer
  | {
      readonly role: "tool";
      readonly id: string;
      /** The name of the tool, as in its call. */
      readonly name: string;
      readonly text: string;
      /** Images and files that are sent in the result. Others follow in a user message after the round. */
      readonly parts: readonly MediaPart[];
      readonly isError: boolean;
    };

/** A part that is no text. */
export type MediaPart = Exclude<ContentPart, { readonly type: "text" }>;

interface FormOptions {
  /** The model that receives the prompt. */
  readonly reader: WireWriter;
  /** Whether ids of calls that another model or server wrote are sent unchanged. */
  readonly keepsForeignIds: boolean;
  /** Longest id of a call that is sent unchanged. Default: any. */
  readonly longestId?: number | undefined;
  /** Whether reasoning goes back to its model at any address, or only to the server that wrote it. Default `model`. */
  readonly reasoningOf?: "model" | "server" | undefined;
  /** Whether an image or a file of a tool result is sent in the result. Default: none is; they follow in a user message. */
  readonly takesInResult?: ((part: MediaPart, result: Pick<ToolMessage, "isError">) => boolean) | undefined;
}

/**
 * The messages of a request in a form that every provider accepts. Files must be in the form of the provider already
 * (`FormFallback.prepared`): those that are left are sent.
 */
export function formedPrompt(request: ModelRequest, options: FormOptions): readonly FormedMessage[] {
  const { reader, keepsForeignIds, longestId } = options;
  const wired = new WireCalls(reader, { tools: request.tools, keepsForeignIds, longestId });
  const prompt = new FormedPrompt(options, wired);
  for (const message of request.messages) prompt.add(message);
  return prompt.end();
}

const answerFiller = (text: string): FormedMessage => ({ role: "assistant", text, calls: [] });
const userFiller = (text: string): FormedMessage => ({ role: "user", parts: [{ type: "text", text }] });
/** Messages inserted where a server would refuse the role of the next one. */
const fillers = {
  /** Between results and a message of the user. */
  answer: answerFiller("I have the results."),
  /** Between two answers, and after a last answer. */
  question: userFiller("Continue."),
  /** Before an answer at the beginning of a prompt. */
  start: userFiller("(Earlier messages are not shown.)"),
} as const;
const EMPTY_RESULT = "(no text)";

/**
 * The messages of a prompt, in a form that all servers and chat templates accept. Every later turn sends the history again, so one
 * refused message would make all later turns fail. `legalMessages` ensures that each call is followed by exactly one result.
 * 1. At most one system message is sent, the first. Later ones are sent as user messages.
 * 2. Roles alternate. Consecutive user messages are joined.
 * 3. Results are followed by an answer, and then by a user message with those of their images and files that they cannot carry.
 * 4. No message is empty, except for answers with calls.
 * 5. The last message is a user message or a result.
 */
class FormedPrompt {
  readonly #takesReasoning: (message: AssistantMessage) => boolean;
  readonly #takesInResult: NonNullable<FormOptions["takesInResult"]>;
  readonly #wired: WireCalls;
  readonly #names = new Map<string, string>();
  readonly #sent: FormedMessage[] = [];
  #last: Message["role"] | undefined;
  /** Messages that are not sent yet, since more may be joined: messages of one role, or results whose images follow. */
  #open: Message[] = [];

  constructor({ reader, reasoningOf, takesInResult = () => false }: FormOptions, wired: WireCalls) {
    const isWriter = reasoningOf === "server" ? isOwnServer : isOwnModel;
    this.#takesReasoning = (message) => isWriter(message, reader);
    this.#takesInResult = takesInResult;
    this.#wired = wired;
  }

  /** Returns all messages; `add` must not be called afterwards. */
  end(): readonly FormedMessage[] {
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
    const isSystem = message.role === "system" && isFirst && !hasMedia(message.content);
    if (!isSystem && isFirst) this.#close();
    this.#open.push(isSystem || message.role === "user" ? message : { ...message, role: "user" });
  }

  #addAnswer(message: AssistantMessage): void {
    if (isBlank(textOf(message.content)) && (message.toolCalls ?? []).length === 0) return;
    this.#close();
    if (this.#last === "assistant") this.#sent.push(fillers.question);
    if (this.#last === "system" || this.#last === undefined) this.#sent.push(fillers.start);
    this.#sent.push(this.#answer(message));
    this.#last = "assistant";
  }

  #answer(message: AssistantMessage): FormedAnswer {
    const text = sentText(message.content);
    const reasoning = this.#takesReasoning(message) ? message.reasoning : undefined;
    return {
      role: "assistant",
      text: isBlank(text) ? "" : text,
      calls: this.#calls(message),
      ...(reasoning === undefined ? {} : { reasoning }),
    };
  }

  #calls(message: AssistantMessage): readonly FormedCall[] {
    const { toolCalls = [] } = message;
    if (toolCalls.length === 0) return [];
    const texts = sentArguments(message);
    const ids = this.#wired.idsOf(message);
    return toolCalls.map(({ name: given, providerId }, index) => {
      const id = ids[index] ?? "";
      const name = this.#wired.nameOf(given);
      this.#names.set(id, name);
      return { id, providerId, name, arguments: texts[index] ?? "{}" };
    });
  }

  #addResult(message: ToolMessage): void {
    if (this.#open[0]?.role !== "tool") this.#close();
    const text = isBlank(textOf(message.content)) ? EMPTY_RESULT : sentText(message.content);
    const id = this.#wired.idOfResult(message);
    const name = this.#names.get(id) ?? "unknown";
    const media = typeof message.content === "string" ? [] : message.content.filter((part) => part.type !== "text");
    const parts = media.filter((part) => this.#takesInResult(part, message));
    this.#sent.push({ role: "tool", id, name, text, parts, isError: message.isError === true });
    this.#last = "tool";
    if (parts.length === media.length) return;
    const following = media.filter((part) => !parts.includes(part));
    this.#open.push({ ...message, content: following });
  }

  #close(): void {
    const [first] = this.#open;
    if (first === undefined) return;
    const parts = joinedParts(this.#open, (message) => this.#wired.idOfResult(message));
    if (this.#last === "tool") this.#sent.push(fillers.answer);
    const role = first.role === "system" ? "system" : "user";
    // A system message with an image or a file is sent as a user message.
    this.#sent.push(role === "system" ? { role, text: textOf(parts) } : { role, parts });
    this.#last = role;
    this.#open = [];
  }
}

/** The content of one message for several: one text, or parts if there are images or files. */
function joinedParts(messages: readonly Message[], idOf: (message: ToolMessage) => string): readonly ContentPart[] {
  if (!messages.some(({ content }) => hasMedia(content)))
    return [{ type: "text", text: messages.map(({ content }) => sentText(content)).join("\n\n") }];
  return messages.flatMap((message) =>
    message.role === "tool" ? toolMedia(message, idOf(message)) : sentParts(message.content),
  );
}

export function isBlank(content: Content): boolean {
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

function sentParts(content: Content): readonly ContentPart[] {
  if (typeof content === "string") return [{ type: "text", text: sentText(content) }];
  const filled = content.filter((part) => part.type !== "text" || part.text.trim() !== "");
  return filled.map((part) => (part.type === "text" ? { type: "text", text: sentText(part.text) } : part));
}

/** Whether the content has images or files. */
export function hasMedia(content: Content): boolean {
  return typeof content !== "string" && content.some((part) => part.type !== "text");
}

/** No message may stand between the results of a round, so what they cannot carry follows the round. */
function toolMedia({ content }: ToolMessage, id: string): readonly ContentPart[] {
  const media = typeof content === "string" ? [] : content.filter((part) => part.type !== "text");
  const caption = media.every(({ type }) => type === "image") ? toolImagesCaption(id) : toolFilesCaption(id);
  return [{ type: "text", text: caption }, ...media];
}

/** The longest caption of images and files. */
export function toolImagesCaption(id: string): string {
  return `Images from the result of tool call ${id}:`;
}

function toolFilesCaption(id: string): string {
  return `Files from the result of tool call ${id}:`;
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
