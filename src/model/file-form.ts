import type { ModelError } from "../errors/index.ts";
import {
  type Content,
  type ContentPart,
  dataOf,
  fileMark,
  type FilePart,
  isTextType,
  type Message,
  type ModelRequest,
  textOfBase64,
  withHiddenMark,
  hiddenFileMark,
} from "../state/index.ts";

/*
 * Files in a prompt. Text is sent as text, to every model. Of other files a provider gets those that it accepts; for the rest the model
 * reads a mark with name, type, size and artifact, so that nothing is lost and no prompt fails because of a file.
 */

/** Whether the messages have files. */
export function hasFiles({ messages }: ModelRequest): boolean {
  return messages.some(({ content }) => hasFile(content));
}

function hasFile(content: Content): boolean {
  return typeof content !== "string" && content.some(({ type }) => type === "file");
}

/** The files of one model. Copies of messages are kept, because token counts and texts of messages are cached by object. */
export class FileForm {
  readonly #takes: (part: FilePart) => boolean;
  readonly #accepted = new WeakSet<FilePart>();
  readonly #refused = new WeakSet<FilePart>();
  #copies = new WeakMap<Message, Message>();

  /** @param takes Whether the provider accepts the file. */
  constructor(takes: (part: FilePart) => boolean) {
    this.#takes = takes;
  }

  /** The request with texts in place of files that are not sent; the same object if it has no files. */
  formed(request: ModelRequest): ModelRequest {
    if (!hasFiles(request)) return request;
    const messages = request.messages.map((message) => (hasFile(message.content) ? this.#formed(message) : message));
    return { ...request, messages };
  }

  /** Notes that a server has accepted the files of a formed request. */
  accept(request: ModelRequest): void {
    for (const part of filesIn(request)) this.#accepted.add(part);
  }

  /**
   * Notes that a server has refused files of a formed request; they are not sent again. Files that it has accepted before are among them
   * only if there are no others. Returns false if the request has no files.
   */
  refuse(request: ModelRequest): boolean {
    const parts = filesIn(request);
    if (parts.length === 0) return false;
    const fresh = parts.filter((part) => !this.#accepted.has(part));
    for (const part of fresh.length > 0 ? fresh : parts) this.#refused.add(part);
    this.#copies = new WeakMap();
    return true;
  }

  #formed(message: Message): Message {
    let copy = this.#copies.get(message);
    if (copy === undefined) {
      copy = { ...message, content: this.#content(message) };
      this.#copies.set(message, copy);
    }
    return copy;
  }

  #content({ role, content }: Message): Content {
    if (typeof content === "string") return content;
    const parts = role === "tool" ? this.#resultParts(content) : content.map((part) => this.#part(part));
    return parts.every(({ type }) => type === "text") ? textsOf(parts) : parts;
  }

  #part(part: ContentPart): ContentPart {
    if (part.type !== "file") return part;
    const text = shownText(part);
    if (text !== undefined) return { type: "text", text: `\n${fileMark(part)}\n${text}\n` };
    if (part.url !== undefined && isImageUrl(part.url)) return { type: "image", url: part.url };
    return this.#isSent(part) ? part : { type: "text", text: `\n${hiddenFileMark(part)}\n` };
  }

  /** The text of a result, which has the marks of its files already, and the parts that are sent with it. */
  #resultParts(content: readonly ContentPart[]): readonly ContentPart[] {
    let text = textsOf(content);
    const sent: ContentPart[] = [];
    for (const part of content) {
      if (part.type === "text") continue;
      const shown = part.type === "file" ? shownText(part) : undefined;
      if (part.type === "image" || (shown === undefined && this.#isSent(part))) sent.push(part);
      else if (shown === undefined) text = withHiddenMark(text, part);
      else text += `\n${fileMark(part)}\n${shown}`;
    }
    return [{ type: "text", text }, ...sent];
  }

  #isSent(part: FilePart): boolean {
    return part.url !== undefined && !this.#refused.has(part) && this.#takes(part);
  }
}

/** Images that every model with vision accepts. */
function isImageUrl(url: string): boolean {
  return /^data:image\/(?:png|jpeg|gif|webp);/.test(url);
}

function filesIn({ messages }: ModelRequest): readonly FilePart[] {
  return messages.flatMap(({ content }) => (typeof content === "string" ? [] : content.filter(isFile)));
}

function isFile(part: ContentPart): part is FilePart {
  return part.type === "file";
}

function textsOf(parts: readonly ContentPart[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** The text of a text file; `undefined` for others. */
function shownText({ mediaType, url }: FilePart): string | undefined {
  const data = url === undefined || !isTextType(mediaType) ? undefined : dataOf(url);
  return data === undefined ? undefined : textOfBase64(data);
}

const statuses: ReadonlySet<unknown> = new Set([400, 404, 413, 415, 422, 500, 501]);
const subjects = String.raw`files?|file_data|input_file|documents?|pdfs?|input_audio|audio|video|media(?: types?)?`;
const faults = String.raw`not (?:supported|valid|allowed|accepted)|unsupported|unknown|invalid|unrecognized|cannot|can't|could not|too large|too many|exceeds?|encrypted|password|expected|fetches no`;
const refusal = new RegExp(
  String.raw`\b(?:${subjects})\b.{0,120}(?:${faults})|(?:${faults}).{0,120}\b(?:${subjects})\b`,
  "is",
);
// AI SDK providers that cannot translate a part.
const untranslated = /functionality not supported/i;
const generic = /content must be a string|unsupported content|unknown part type|invalid (?:content|part|message) type/i;

/** Whether a call with files was refused because of them. */
export function refusesFiles({ status, message, partialOutputTokens, details }: ModelError): boolean {
  if (partialOutputTokens !== undefined) return false;
  const isLocal = details?.["kind"] === "configuration" && status === undefined;
  if (isLocal) return untranslated.test(message) || refusal.test(message);
  return statuses.has(status) && (refusal.test(message) || generic.test(message));
}
