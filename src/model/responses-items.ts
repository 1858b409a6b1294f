import type { AnswerSource, JsonObject } from "../state/index.ts";
import type { ModelDelta } from "./language-model.ts";
import { type StoredItem, textSeparator } from "./responses-reasoning.ts";
import { type WireObject, wireObject, wireText } from "./wire-values.ts";

export type Listener = ((delta: ModelDelta) => void) | undefined;

interface Item {
  id: string;
  isDone: boolean;
}
export interface MessageItem extends Item {
  readonly type: "message";
  phase: string | undefined;
  readonly text: TextParts;
  isRefusal: boolean;
  /** How its text is reported; for a commentary this is decided at the next item. */
  shownAs: "text" | "reasoning" | undefined;
  isReported: boolean;
}
export interface ReasoningItem extends Item {
  readonly type: "reasoning";
  readonly summary: TextParts;
  readonly content: TextParts;
  encrypted: string;
}
export interface CallItem extends Item {
  readonly type: "call";
  /** Its position among the calls. */
  readonly index: number;
  callId: string;
  name: string;
  readonly arguments: TextParts;
  isReported: boolean;
}
interface HostedItem extends Item {
  readonly type: "hosted";
  item: JsonObject;
}
/** An item of which nothing is used. */
interface OtherItem extends Item {
  readonly type: "other";
}
export type AnswerItem = MessageItem | ReasoningItem | CallItem | HostedItem | OtherItem;

/** Calls of tools that the server has executed, and their tools. They are sent back, since reasoning may refer to them. */
export const hostedTypes: Readonly<Record<string, string>> = {
  web_search_call: "web_search",
  file_search_call: "file_search",
  code_interpreter_call: "code_interpreter",
  mcp_call: "mcp",
  mcp_list_tools: "mcp",
};

const itemTypes: Readonly<Record<string, AnswerItem["type"]>> = {
  message: "message",
  reasoning: "reasoning",
  function_call: "call",
};

export function typeOf(wireType: string): AnswerItem["type"] {
  if (Object.hasOwn(itemTypes, wireType)) return itemTypes[wireType] ?? "other";
  return Object.hasOwn(hostedTypes, wireType) ? "hosted" : "other";
}

/** A text that arrives in numbered parts, each in pieces and once more as a whole. */
export class TextParts {
  readonly #parts = new Map<number, string>();

  /** Adds a piece and returns it. */
  add(part: number, piece: string): string {
    this.#parts.set(part, (this.#parts.get(part) ?? "") + piece);
    return piece;
  }

  /** Sets a part to its complete text and returns what had not arrived before. */
  complete(part: number, whole: string): string {
    if (whole === "") return "";
    const before = this.#parts.get(part) ?? "";
    this.#parts.set(part, whole);
    return whole.startsWith(before) ? whole.slice(before.length) : "";
  }

  addSeparated(part: number, piece: string): string {
    return this.#separator(part) + this.add(part, piece);
  }

  completeSeparated(part: number, whole: string): string {
    const separator = this.#separator(part);
    const rest = this.complete(part, whole);
    return rest === "" ? "" : separator + rest;
  }

  get text(): string {
    return this.list().join("");
  }

  list(): readonly string[] {
    return [...this.#parts.values()].filter((part) => part !== "");
  }

  /** Stands before a part that begins after another one. */
  #separator(part: number): string {
    return this.#parts.size > 0 && !this.#parts.has(part) ? textSeparator : "";
  }
}

/** Reports a call once its name is known, with the arguments so far. */
export function announce(call: CallItem, onDelta: Listener): void {
  if (call.name === "") return;
  call.isReported = true;
  onDelta?.({ type: "tool-call", index: call.index, id: call.callId, name: call.name });
  reportArguments(call, call.arguments.text, onDelta);
}

export function reportArguments({ isReported, index }: CallItem, text: string, onDelta: Listener): void {
  if (isReported && text !== "") onDelta?.({ type: "tool-arguments", index, text });
}

export function storedThought({ id, summary, content, encrypted }: ReasoningItem): readonly StoredItem[] {
  const summaries = summary.list();
  const contents = content.list();
  if (summaries.length === 0 && contents.length === 0 && encrypted === "") return [];
  return [
    {
      type: "reasoning",
      ...(id === "" ? {} : { id }),
      ...(summaries.length === 0 ? {} : { summary: summaries }),
      ...(contents.length === 0 ? {} : { content: contents }),
      ...(encrypted === "" ? {} : { encrypted_content: encrypted }),
    },
  ];
}

/** The place of an item, by which later events name it. */
export function keyOf(event: WireObject): unknown {
  const index = event["output_index"];
  return typeof index === "number" ? index : wireText(event["item_id"]) || wireText(wireObject(event["item"])?.["id"]);
}

export function indexOf(event: WireObject, field: string): number {
  const index = event[field];
  return typeof index === "number" ? index : 0;
}

export function textIn(part: unknown): string {
  return wireText(wireObject(part)?.["text"]);
}

export function argumentsIn({ arguments: given }: WireObject): string {
  return typeof given === "object" && given !== null ? JSON.stringify(given) : wireText(given);
}

/** The source that an annotation of a text names. */
export function sourceIn(annotation: unknown): AnswerSource | undefined {
  const { type, url, title, file_id: fileId, filename } = wireObject(annotation) ?? {};
  if (type === "url_citation" && wireText(url) !== "") return { type: "url", url: wireText(url), ...named(title) };
  const isFile = type === "file_citation" || type === "container_file_citation";
  return isFile && wireText(fileId) !== "" ? { type: "document", id: wireText(fileId), ...named(filename) } : undefined;
}

function named(title: unknown): { readonly title?: string } {
  return wireText(title) === "" ? {} : { title: wireText(title) };
}
