import { isBase64, type Json } from "../state/index.ts";
import { nothingToRedact, redactDeep } from "./secrets.ts";
import type { Redact } from "./tool.ts";
import { type ImagePart, readResult, type ResultFile } from "./tool-result.ts";

/** A tool's result for the model. */
export interface RenderedOutput {
  readonly text: string;
  /** Images that are sent with the text. Default: none. */
  readonly images?: readonly ImagePart[];
  /** Files of the result. Default: none. */
  readonly files?: readonly ResultFile[];
  /** The result as data, for programs. Default: none. */
  readonly structured?: Json;
  /** `unreadable`: the output cannot be shown; the text contains the reason. `told`: the tool returned an error. Not set on success. */
  readonly error?: "unreadable" | "told";
}

/**
 * Strings are returned unchanged, `undefined` as "", results in parts as texts, images and files, everything else as JSON text. Never throws.
 * @param redact Removes the secrets of the call from the text. Default: there are none.
 * @param failure Begins the text for an output that cannot be shown.
 */
export function renderOutput(
  value: unknown,
  redact: Redact = nothingToRedact,
  failure = "The tool ran, but its result cannot be shown",
): RenderedOutput {
  const unreadable = (reason: string) => ({ text: `${failure}: ${reason}.`, error: "unreadable" }) as const;
  try {
    const parts = readResult(value);
    if (parts !== undefined) {
      const { images, files, structured, isError } = parts;
      return {
        text: redact(parts.text),
        ...(images.length > 0 ? { images } : {}),
        ...(files.length > 0 ? { files: files.map((file) => redactedFile(file, redact)) } : {}),
        ...(structured === undefined ? {} : { structured: redactDeep(structured, redact) }),
        ...(isError ? { error: "told" as const } : {}),
      };
    }
  } catch (error) {
    return unreadable(headOf(redact(reasonOf(error)), maxReasonCharacters));
  }
  const rendered = outputText(value, redact);
  return rendered.ok ? { text: rendered.text } : unreadable(rendered.reason);
}

/** Names and texts are redacted; a secret inside of base64 is not found. */
function redactedFile({ part, artifact }: ResultFile, redact: Redact): ResultFile {
  const named = part.name === undefined ? part : { ...part, name: redact(part.name) };
  if (artifact === undefined) return { part: named };
  const { name, content, encoding } = artifact;
  const text = encoding === "base64" ? content : redact(content);
  return { part: named, artifact: { ...artifact, name: redact(name), content: text } };
}

type TextOfValue = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string };

/** The result's text, or the reason why it has none. */
export function outputText(value: unknown, redact: Redact = nothingToRedact): TextOfValue {
  if (typeof value === "string") {
    if (isLongImage(value)) return { ok: false, reason: `it is an image as text; return images with ${asParts}` };
    return { ok: true, text: redact(withoutImages(value)) };
  }
  if (value === undefined) return { ok: true, text: "" };
  if (typeof value === "number") return { ok: true, text: String(value) };
  try {
    if (ArrayBuffer.isView(value)) throw new TypeError(`it is ${binaryKind}`);
    return { ok: true, text: redact(JSON.stringify(value, createReplacer()) ?? "") };
  } catch (error) {
    return { ok: false, reason: `it has no JSON form (${headOf(redact(reasonOf(error)), maxReasonCharacters)})` };
  }
}

const maxReasonCharacters = 500;
const maxRenderedValues = 10_000_000;

/**
 * Throws for values that JSON.stringify would silently drop or convert to `{}`, and for more than ten million values, which would block
 * the process for two seconds. Names values that it would convert to `null`.
 */
function createReplacer(): (this: unknown, key: string, value: unknown) => unknown {
  let values = 0;
  return function replace(this: unknown, key, value) {
    values += 1;
    if (values > maxRenderedValues) throw tooManyValues();
    if (typeof value === "string") {
      if (isLongImage(value)) throw imageAsText(key);
      return withoutImages(value);
    }
    // The model would mistake a null for a value of the tool.
    if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
    if (value === undefined) return Array.isArray(this) ? "undefined" : undefined;
    if (value === null) return (this as Record<string, unknown>)[key] instanceof Date ? "Invalid Date" : null;
    const kind = lossyKindOf(value);
    if (kind !== undefined) throw new TypeError(key === "" ? `it is ${kind}` : `"${headOf(key, 100)}" is ${kind}`);
    if (typeof value === "object" && value !== null) lookAhead(value);
    return value;
  };
}

/** Longer images are not shown as text; shorter ones (icons) may be. */
const LONGEST_IMAGE_TEXT = 1_000;
const asFile = 'toolResult({ content: [{ type: "file", data, mediaType, name }] })';
const asParts = 'toolResult({ content: [{ type: "image", data, mimeType }] })';

/** The first characters of PNG, JPEG, GIF and WebP in base64. */
const imageStart = /^(?:data:image\/|iVBORw0KGg|\/9j\/|R0lGOD[dl]|UklGR)/;
const imageHead = /data:image\/[\w.+-]{1,40};base64,/g;

/** Whether the text is only an image: a data URL, or base64. */
function isLongImage(text: string): boolean {
  if (text.length <= LONGEST_IMAGE_TEXT || !imageStart.test(text)) return false;
  return text.startsWith("data:") ? !/\s\S/.test(text) : isBase64(text);
}

/** Pages and documents may contain images in their text, which a model cannot use there. */
function withoutImages(text: string): string {
  let kept = "";
  let from = 0;
  for (const { index, 0: head } of text.matchAll(imageHead)) {
    const rest = text.slice(index + head.length);
    const length = head.length + (/[^A-Za-z0-9+/=]/.exec(rest)?.index ?? rest.length);
    if (index < from || length - head.length < LONGEST_IMAGE_TEXT) continue;
    kept += `${text.slice(from, index)}[image of ${length} characters left out]`;
    from = index + length;
  }
  return kept + text.slice(from);
}

function imageAsText(key: string): TypeError {
  return new TypeError(`"${headOf(key, 100)}" is an image; return images with ${asParts}`);
}

/** Runs before `toJSON`, because a Buffer would become an array of numbers, many times its size. */
function lookAhead(container: object): void {
  // A sparse array may have a length of billions.
  if (Array.isArray(container) && container.length > maxRenderedValues) throw tooManyValues();
  const members: readonly unknown[] = Array.isArray(container) ? container : Object.values(container);
  for (const member of members) {
    if (typeof member === "object" && ArrayBuffer.isView(member)) throw new TypeError(`it holds ${binaryKind}`);
  }
}

function tooManyValues(): TypeError {
  return new TypeError(`it has more than ${maxRenderedValues} values; return fewer, or a text`);
}

const binaryKind = `binary data; return an image with ${asParts}, other data with ${asFile}`;

function lossyKindOf(value: unknown): string | undefined {
  if (typeof value === "bigint") return "a bigint";
  if (typeof value === "function") return "a function";
  if (typeof value === "symbol") return "a symbol";
  if (typeof value !== "object" || value === null) return undefined;
  if (value instanceof Map) return "a Map";
  if (value instanceof Set) return "a Set";
  if (value instanceof Promise) return "a promise that was not awaited";
  if (value instanceof Error) return "an error, which should have been thrown";
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return binaryKind;
  return hasNothingToShow(value) ? `an object of class ${classOf(value)}, which is empty as JSON` : undefined;
}

/** Values with their content behind methods and private fields (a RegExp, a Response, an iterator), which JSON represents as `{}`. */
function hasNothingToShow(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === Object.prototype || prototype === null || Array.isArray(value);
  return !isPlain && Object.keys(value).length === 0;
}

function classOf(value: object): string {
  const { name } = value.constructor ?? {};
  return typeof name === "string" && name !== "" ? headOf(name, 100) : "unknown";
}

function reasonOf(error: unknown): string {
  if (error instanceof RangeError) return "it is nested too deeply or too large";
  if (!(error instanceof Error)) return "it could not be turned into JSON";
  return error.message.startsWith("Converting circular") ? "it refers to itself" : error.message;
}

/**
 * Head and tail of a text that is too long for the model, with a note about the cut between them. Characters are UTF-16 units; a
 * surrogate pair is never split. A text that fits is returned unchanged. The result has at most `maxCharacters`, unless the note alone is
 * longer.
 */
export function excerptOf(text: string, maxCharacters: number, artifactId: string): string {
  if (text.length <= maxCharacters) return text;
  const sentenceFor = (cut: number) =>
    `\n\n[${cut} of ${text.length} characters were cut here; read_artifact shows them. The whole text is stored as artifact ${artifactId}.]\n\n`;
  const room = Math.max(0, maxCharacters - sentenceFor(text.length).length);
  const tailLength = Math.floor(room / 3);
  let headEnd = room - tailLength;
  let tailStart = text.length - tailLength;
  if (splitsPair(text, headEnd)) headEnd -= 1;
  if (splitsPair(text, tailStart)) tailStart += 1;
  return text.slice(0, headEnd) + sentenceFor(tailStart - headEnd) + text.slice(tailStart);
}

/** The first characters of a text, without half of a surrogate pair at the cut. */
export function headOf(text: string, characters: number): string {
  return text.slice(0, splitsPair(text, characters) ? characters - 1 : characters);
}

/** The index itself, or the one before it if it would split a surrogate pair. */
export function pairStart(text: string, at: number): number {
  return splitsPair(text, at) ? at - 1 : at;
}

function splitsPair(text: string, at: number): boolean {
  return at > 0 && at < text.length && (text.codePointAt(at - 1) ?? 0) > 0xff_ff;
}
