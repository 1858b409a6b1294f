import type { ContentPart, FilePart } from "../state/index.ts";
import type { FormedAnswer, FormedCall, FormedMessage } from "./prompt-form.ts";
import { textSeparator } from "./responses-reasoning.ts";
import { type WireObject, wireArray, wireObject, wireText } from "./wire-values.ts";

/** A prompt as the Responses API takes it. */
interface ResponsesPrompt {
  readonly instructions: string | undefined;
  readonly input: readonly WireObject[];
}

export function responsesPrompt(messages: readonly FormedMessage[]): ResponsesPrompt {
  const [first, ...rest] = messages;
  const [instructions, others] = first?.role === "system" ? [first.text, rest] : [undefined, messages];
  return { instructions, input: others.flatMap(itemsOf) };
}

function itemsOf(message: FormedMessage): readonly WireObject[] {
  switch (message.role) {
    case "system":
      return [{ type: "message", role: "system", content: message.text }];
    case "user":
      return [{ type: "message", role: "user", content: inputContent(message.parts) }];
    case "assistant":
      return writtenItems(message) ?? plainItems(message);
    case "tool":
      return [{ type: "function_call_output", call_id: message.id, output: outputOf(message) }];
    default:
      return message satisfies never;
  }
}

/** A text, or parts if there are images or files. */
function inputContent(parts: readonly ContentPart[]): string | readonly WireObject[] {
  const [first] = parts;
  if (parts.length === 1 && first?.type === "text") return first.text;
  return parts.map(inputPart);
}

function inputPart(part: ContentPart): WireObject {
  if (part.type === "text") return { type: "input_text", text: part.text };
  if (part.type === "image") return { type: "input_image", image_url: part.url, detail: "auto" };
  const { url = "", name = "file.pdf" } = part;
  return url.startsWith("data:")
    ? { type: "input_file", filename: name, file_data: url }
    : { type: "input_file", file_url: url };
}

/** Whether the API has a part for the file: PDF, as data or by its address. */
export function isResponsesFile({ mediaType, url }: FilePart): boolean {
  return mediaType === "application/pdf" && url !== undefined && /^(?:data:|https:)/.test(url);
}

/** A text, or parts if the result has images or files. */
function outputOf({ text, parts }: Extract<FormedMessage, { role: "tool" }>): string | readonly WireObject[] {
  return parts.length === 0 ? text : [{ type: "input_text", text }, ...parts.map(inputPart)];
}

function plainItems({ text, calls }: FormedAnswer): readonly WireObject[] {
  return [...(text === "" ? [] : [answerItem(text)]), ...calls.map(callItem)];
}

/**
 * The items of an answer as its model wrote them, in their order. Sent back only if the message still has the text and the calls that they
 * describe; a hook may have changed it.
 */
function writtenItems({ text, calls, reasoning }: FormedAnswer): readonly WireObject[] | undefined {
  const stored = wireArray(reasoning?.["items"]).map((item) => wireObject(item) ?? {});
  if (stored.length === 0) return undefined;
  const items: WireObject[] = [];
  const left = new Map(calls.map((call) => [call.providerId, call]));
  let at = 0;
  for (const item of stored) {
    const type = wireText(item["type"]);
    if (type === "reasoning") items.push(...thoughtItems(item));
    else if (type === "hosted") items.push(wireObject(item["item"]) ?? {});
    else if (type === "call") {
      const call = left.get(wireText(item["id"]));
      if (call === undefined) return undefined;
      left.delete(call.providerId);
      items.push(callItem(call));
    } else if (typeof item["text"] === "string") items.push(answerItem(item["text"], item["phase"]));
    else {
      if (at > 0 && text.startsWith(textSeparator, at)) at += textSeparator.length;
      const end = at + Number(item["length"]);
      if (!(end <= text.length)) return undefined;
      items.push(answerItem(text.slice(at, end), item["phase"]));
      at = end;
    }
  }
  return at === text.length && left.size === 0 ? items : undefined;
}

/** None for a thought without its content: the server has not kept it, so its id alone would be refused. */
function thoughtItems(stored: WireObject): readonly WireObject[] {
  const { id, summary, content, encrypted_content: encrypted } = stored;
  if (encrypted === undefined && content === undefined) return [];
  return [
    {
      type: "reasoning",
      ...(id === undefined ? {} : { id }),
      summary: wireArray(summary).map((text) => ({ type: "summary_text", text })),
      ...(content === undefined
        ? {}
        : { content: wireArray(content).map((text) => ({ type: "reasoning_text", text })) }),
      ...(encrypted === undefined ? {} : { encrypted_content: encrypted }),
    },
  ];
}

/** Without its id: with one, the server would demand the items that were next to it. */
function answerItem(content: string, phase?: unknown): WireObject {
  return { type: "message", role: "assistant", content, ...(typeof phase === "string" ? { phase } : {}) };
}

function callItem({ id, name, arguments: args }: FormedCall): WireObject {
  return { type: "function_call", call_id: id, name, arguments: args };
}
