import { describeValue } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { ContentPart } from "../state/index.ts";

export type ImagePart = Extract<ContentPart, { readonly type: "image" }>;

/** One item of a tool's result. An image is a PNG, JPEG, GIF or WebP, as an `https:` or `data:` URL or as its bytes. */
export type ToolResultPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly url: string }
  | {
      readonly type: "image";
      /** Bytes, or a base64 text. */
      readonly data: string | Uint8Array;
      /** For instance `image/png`. */
      readonly mimeType: string;
    };

/** A result in parts, created by `toolResult()`. */
export interface ToolResult {
  /** Texts and images, in order. */
  readonly content: readonly ContentPart[];
  /** Marks the call as failed, also for the model. */
  readonly isError?: boolean;
}

/** A result in parts, converted for the model. */
export interface ReadResult {
  /** Contains a marker at the position of each image. */
  readonly text: string;
  readonly images: readonly ImagePart[];
  readonly isError: boolean;
}

/** Longer lists are treated as ordinary data. */
const MOST_PARTS = 1_000;
/** Most images of one result, and the total length of their URLs in characters. */
const MOST_IMAGES = 20;
const LONGEST_IMAGES = 10_000_000;

/**
 * A tool result in parts: texts and images. At most 20 images, with 10,000,000 characters of base64 in total. Throws `InvalidInputError`
 * that names the invalid part.
 */
export function toolResult(given: {
  readonly content: readonly ToolResultPart[];
  readonly isError?: boolean | undefined;
}): ToolResult {
  const parts: unknown = (given as Partial<typeof given> | undefined)?.content;
  if (!Array.isArray(parts)) {
    throw new InvalidInputError(
      `toolResult() takes { content: [parts], isError }, not content of ${describeValue(parts)}`,
    );
  }
  const content = parts.map((part: unknown, index) => {
    const read = partOf(part);
    if (read !== undefined) return read;
    const right = '{ type: "text", text }, { type: "image", url } or { type: "image", data, mimeType }';
    throw new InvalidInputError(`toolResult(): content[${index}] is ${describeValue(part)}; use ${right}`);
  });
  assertBounded(content.filter((part) => part.type === "image"));
  return Object.freeze({ content: Object.freeze(content), ...(given.isError === true ? { isError: true } : {}) });
}

/**
 * Reads a result in parts: of `toolResult()`, of an MCP server, or in the forms of other libraries. `undefined` for any other value.
 * Throws `InvalidInputError` for images that cannot be sent.
 */
export function readResult(value: unknown): ReadResult | undefined {
  const isImage = typeof value === "string" && value.startsWith("data:image/");
  const parts = isImage ? [{ type: "image", url: value }] : listOf(value);
  if (parts === undefined || parts.length === 0 || parts.length > MOST_PARTS || !parts.every(isPart)) return undefined;
  const read = parts.map((part) => {
    const known = partOf(part);
    if (known !== undefined) return known;
    throw new InvalidInputError(`it contains a part of type "${part.type}", which cannot be shown to a model`);
  });
  const images = read.filter((part) => part.type === "image");
  // Texts alone may be ordinary data.
  if (images.length === 0 && !isResult(value)) return undefined;
  assertBounded(images);
  let marks = 0;
  const text = read.map((part) => (part.type === "text" ? part.text : `[image ${(marks += 1)}]`)).join("\n");
  return { text, images, isError: fieldOf(value, "isError") === true };
}

const resultFields: ReadonlySet<string> = new Set(["content", "isError", "structuredContent", "_meta"]);

function listOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  if (isResult(value)) return value.content;
  const type = fieldOf(value, "type");
  const parts = fieldOf(value, "value");
  // A tool result of the AI SDK.
  if (type === "content" && Array.isArray(parts)) return parts;
  return typeof type === "string" ? [value] : undefined;
}

function isResult(value: unknown): value is { readonly content: readonly unknown[] } {
  if (!Array.isArray(fieldOf(value, "content"))) return false;
  return Object.keys(value as object).every((name) => resultFields.has(name));
}

const textTypes: ReadonlySet<unknown> = new Set(["text", "input_text", "output_text"]);
const imageTypes: ReadonlySet<unknown> = new Set(["image", "image_url", "input_image", "image-data", "image-url"]);
const fileTypes: ReadonlySet<unknown> = new Set(["media", "file", "file-data", "file-url"]);

/** Whether the value is a part of a result; ordinary data may have a `type` of the same name. */
function isPart(value: unknown): value is { readonly type: string } {
  const type = fieldOf(value, "type");
  if (textTypes.has(type)) return typeof fieldOf(value, "text") === "string";
  if (imageTypes.has(type)) return /^(?:data:|https?:)/i.test(urlOf(value) ?? "");
  if (fileTypes.has(type)) return /^data:image\//i.test(urlOf(value) ?? "");
  if (type === "audio") return urlOf(value) !== undefined && mediaTypeOf(value) !== undefined;
  if (type === "resource_link") return typeof fieldOf(value, "uri") === "string";
  return type === "resource" && typeof fieldOf(fieldOf(value, "resource"), "uri") === "string";
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** The part in our form; `undefined` if a model cannot use it. */
function partOf(part: unknown): ContentPart | undefined {
  const type = fieldOf(part, "type");
  const text = fieldOf(type === "resource" ? fieldOf(part, "resource") : part, "text");
  if ((textTypes.has(type) || type === "resource") && typeof text === "string") return { type: "text", text };
  if (type === "resource_link") return { type: "text", text: String(fieldOf(part, "uri")) };
  if (type === "audio") return undefined;
  const url = urlOf(type === "resource" ? fieldOf(part, "resource") : part);
  return url === undefined ? undefined : { type: "image", url: checkedUrl(url) };
}

/** The URL of an image in the forms that libraries use: a URL, or data and a type. */
function urlOf(part: unknown): string | undefined {
  const source = fieldOf(part, "source") ?? part;
  const image = fieldOf(part, "image_url") ?? fieldOf(part, "image");
  const data = fieldOf(source, "data") ?? fieldOf(source, "blob") ?? fieldOf(source, "base64") ?? image;
  const type = mediaTypeOf(source);
  if (type !== undefined && data instanceof Uint8Array) {
    return `data:${type};base64,${Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64")}`;
  }
  if (type !== undefined && typeof data === "string" && !hasScheme.test(data)) return `data:${type};base64,${data}`;
  const url = fieldOf(source, "url") ?? fieldOf(image, "url") ?? data;
  return typeof url === "string" ? url : undefined;
}

const hasScheme = /^[a-z]+:/i;

function mediaTypeOf(source: unknown): string | undefined {
  const names = ["mimeType", "mediaType", "media_type", "mime_type"];
  return names.map((name) => fieldOf(source, name)).find((type) => typeof type === "string");
}

const imagePattern = /^data:image\/(?:png|jpe?g|gif|webp);base64,/i;

/** White space is allowed anywhere. Searches for invalid characters, because matching megabytes overflows the stack. */
export function isBase64(text: string): boolean {
  const padding = text.indexOf("=");
  const end = padding < 0 ? text.length : padding;
  return end > 0 && !/[^A-Za-z0-9+/\s]/.test(text.slice(0, end)) && /^={0,2}$/.test(text.slice(end).trim());
}

/** If a server refused an image, it would also refuse every later prompt that contains it. */
function checkedUrl(url: string): string {
  const isData = imagePattern.test(url) && isBase64(url.slice(url.indexOf(",") + 1));
  if (isData) return `${headOfData(url)}${url.slice(url.indexOf(",")).replaceAll(/\s+/g, "")}`;
  if (url.startsWith("https://") && URL.canParse(url)) return url;
  const shown = JSON.stringify(url.slice(0, 60));
  throw new InvalidInputError(
    `its image ${shown} cannot be sent; use a PNG, JPEG, GIF or WebP in base64, or an https: URL`,
  );
}

/** Servers compare the media type case-sensitively. */
function headOfData(url: string): string {
  return url.slice(0, url.indexOf(",")).toLowerCase().replace("image/jpg", "image/jpeg");
}

function assertBounded(images: readonly ImagePart[]): void {
  if (images.length > MOST_IMAGES) {
    throw new InvalidInputError(`it has ${images.length} images; at most ${MOST_IMAGES} can be sent`);
  }
  const length = images.reduce((sum, { url }) => sum + url.length, 0);
  if (length <= LONGEST_IMAGES) return;
  throw new InvalidInputError(`its images have ${length} characters of base64; at most ${LONGEST_IMAGES} can be sent`);
}
