import type { ModelError } from "../errors/index.ts";
import { type Message, type ModelRequest, textOf } from "../state/index.ts";

/*
 * A model without vision refuses every prompt that contains an image. An image from a tool would make all later turns fail, since every
 * later turn sends it again. Images of users are kept: their question is about them.
 */

const statuses: ReadonlySet<unknown> = new Set([400, 404, 415, 422, 500, 501]);
const texts: readonly RegExp[] = [
  // OpenAI, DeepSeek, OpenRouter, xAI, Mistral, llama.cpp, Ollama
  /image_url\b.{0,60}(?:only supported|not supported|expected `?text)/is,
  /support image input|image inputs? (?:is|are) not (?:supported|enabled)|required for image input/i,
  // vLLM, SGLang
  /not a multi-?modal model|at most 0 image/i,
  /(?:does not|doesn't|cannot) (?:support|accept|process) (?:images?|vision|image_url)\b/i,
  // Groq
  /\bcontent must be a string/i,
];

/** Whether a server refused a call because its model does not accept images. */
export function refusesImages({ status, message, partialOutputTokens }: ModelError): boolean {
  return partialOutputTokens === undefined && statuses.has(status) && texts.some((text) => text.test(message));
}

const NOTE = "(You cannot see the images of this result: your server takes none.)";
/** One copy per message, because token counts and texts of messages are cached by object. */
const copies = new WeakMap<Message, Message>();

/** The request with a note in place of images from tools; the same object if it has none. */
export function withoutToolImages(request: ModelRequest): ModelRequest {
  if (!request.messages.some(hasToolImage)) return request;
  return {
    ...request,
    messages: request.messages.map((message) => (hasToolImage(message) ? noted(message) : message)),
  };
}

function hasToolImage({ role, content }: Message): boolean {
  return role === "tool" && typeof content !== "string" && content.some(({ type }) => type === "image");
}

function noted(message: Message): Message {
  let copy = copies.get(message);
  if (copy === undefined) {
    const text = `${textOf(message.content)}\n${NOTE}`;
    const files = typeof message.content === "string" ? [] : message.content.filter(({ type }) => type === "file");
    copy = { ...message, content: files.length === 0 ? text : [{ type: "text", text }, ...files] };
    copies.set(message, copy);
  }
  return copy;
}
