import { describeValue } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { ContentPart } from "../state/index.ts";

export type ImagePart = Extract<ContentPart, { readonly type: "image" }>;

/** A part of a tool's result. An image is a PNG, JPEG, GIF or WebP, by `https:` or `data:` URL or by its bytes. */
export type ToolResultPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly url: string }
  | {
      readonly type: "image";
      /** Bytes, or a text in base64. */
      readonly data: string | Uint8Array;
      /** For instance `image/png`. */
      readonly mimeType: string;
    };

/** What `toolResult()` gives: a result in parts. */
export interface ToolResult {
  /** Texts and images, in order. */
  readonly content: readonly ContentPart[];
  /** The call counts as failed, and the model is told so. */
  readonly isError?: boolean;
}

/** What a model gets of a result in parts. */
export interface ReadResult {
  /** With a mark for each image at its place. */
  readonly text: string;
  readonly images: readonly ImagePart[];
  readonly isError: boolean;
}

/** Longer lists are data like any other. */
const MOST_PARTS = 1_000;
/** Most images of one result, and the characters of their URLs together. */
const MOST_IMAGES = 20;
const LONGEST_IMAGES = 10_000_000;

/**
 * The result of a tool in parts: texts and images. At most 20 images, and 10,000,000 characters of base64 together.
 * Throws `InvalidInputError` that names the part that is wrong.
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
 * Reads a value that is a result in parts: one of `toolResult()`, of an MCP server, or parts as other libraries write them. Undefined
 * for any other value. Throws `InvalidInputError` for images that cannot be sent.
 */
export function readResult(value: unknown): ReadResult | undefined {
  const isImage = typeof value === "string" && value.startsWith("data:image/");
  const parts = isImage ? [{ type: "image", url: value }] : listOf(value);
  if (parts === undefined || parts.length === 0 || parts.length > MOST_PARTS || !parts.every(isPart)) return undefined;
  const read = parts.map((part) => {
    const known = partOf(part);
    if (known !== undefined) return known;
    throw new InvalidInputError(`it holds a part of type "${part.type}", which cannot be shown to a model`);
  });
  const images = read.filter((part) => part.type === "image");
  // A list of texts may be data like any other.
  if (images.length === 0 && Array.isArray(value)) return undefined;
  assertBounded(images);
  let marks = 0;
  const text = read.map((part) => (part.type === "text" ? part.text : `[image ${(marks += 1)}]`)).join("\n");
  return { text, images, isError: fieldOf(value, "isError") === true };
}

const resultFields: ReadonlySet<string> = new Set(["content", "isError", "structuredContent", "_meta"]);

function listOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  if (typeof value !== "object" || value === null) return undefined;
  const { type, content } = value as { readonly type?: unknown; readonly content?: unknown };
  if (typeof type === "string") return [value];
  const isResult = Array.isArray(content) && Object.keys(value).every((name) => resultFields.has(name));
  return isResult ? (content as readonly unknown[]) : undefined;
}

const partTypes: ReadonlySet<unknown> = new Set(["image_url", "input_image", "audio", "resource", "resource_link"]);

function isPart(value: unknown): value is { readonly type: string } {
  const type = fieldOf(value, "type");
  if (type === "text") return typeof fieldOf(value, "text") === "string";
  return type === "image" ? urlOf(value) !== undefined : partTypes.has(type);
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** The part in our form; undefined for one that is of no use to a model. */
function partOf(part: unknown): ContentPart | undefined {
  const type = fieldOf(part, "type");
  const text = fieldOf(type === "resource" ? fieldOf(part, "resource") : part, "text");
  if ((type === "text" || type === "resource") && typeof text === "string") return { type: "text", text };
  if (type === "resource_link") return { type: "text", text: String(fieldOf(part, "uri")) };
  if (type === "audio") return undefined;
  const url = urlOf(type === "resource" ? fieldOf(part, "resource") : part);
  return url === undefined ? undefined : { type: "image", url: checkedUrl(url) };
}

/** The address of an image as libraries write it: by a URL, or by data and type. */
function urlOf(part: unknown): string | undefined {
  const source = fieldOf(part, "source") ?? part;
  const data = fieldOf(source, "data") ?? fieldOf(source, "blob");
  const type = fieldOf(source, "mimeType") ?? fieldOf(source, "mediaType") ?? fieldOf(source, "media_type");
  if (typeof type === "string" && typeof data === "string") return `data:${type};base64,${data}`;
  if (typeof type === "string" && data instanceof Uint8Array) {
    return `data:${type};base64,${Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64")}`;
  }
  const image = fieldOf(part, "image_url");
  const url = fieldOf(source, "url") ?? fieldOf(image, "url") ?? image;
  return typeof url === "string" ? url : undefined;
}

const imagePattern = /^data:image\/(?:png|jpeg|gif|webp);base64,/;

/** An image that a server refuses would be refused with every later prompt too. */
function checkedUrl(url: string): string {
  const isData = imagePattern.test(url) && /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(url.slice(url.indexOf(",") + 1));
  if (isData || (url.startsWith("https://") && URL.canParse(url))) return url;
  const shown = JSON.stringify(url.slice(0, 60));
  throw new InvalidInputError(
    `its image ${shown} cannot be sent; use a PNG, JPEG, GIF or WebP in base64, or an https: URL`,
  );
}

function assertBounded(images: readonly ImagePart[]): void {
  if (images.length > MOST_IMAGES) {
    throw new InvalidInputError(`it has ${images.length} images, and ${MOST_IMAGES} can be sent`);
  }
  const length = images.reduce((sum, { url }) => sum + url.length, 0);
  if (length <= LONGEST_IMAGES) return;
  throw new InvalidInputError(
    `its images have ${length} characters of base64, and ${LONGEST_IMAGES} can be sent; make them smaller`,
  );
}
