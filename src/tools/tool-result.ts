import { createId, describeValue } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import {
  checkedFilePart,
  type ContentPart,
  dataOf,
  type FileArtifact,
  fileMark,
  type FilePart,
  isBase64,
  type Json,
  plainMediaType,
  sizeOfBase64,
  takeJson,
} from "../state/index.ts";
import { LONGEST_ARTIFACT, storedContent } from "./run-context.ts";

export type ImagePart = Extract<ContentPart, { readonly type: "image" }>;

/**
 * One item of a tool's result. An image is a PNG, JPEG, GIF or WebP, as an `https:` or `data:` URL or as its bytes. A file is anything
 * else: a PDF, a recording, a document.
 */
export type ToolResultPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly url: string }
  | {
      readonly type: "image";
      /** Bytes, or a base64 text. */
      readonly data: string | Uint8Array;
      /** For instance `image/png`. */
      readonly mimeType: string;
    }
  | {
      readonly type: "file";
      /** For instance `application/pdf`. */
      readonly mediaType: string;
      /** Bytes, or a base64 text. Needed unless `url` or `artifactId` is set. */
      readonly data?: string | Uint8Array | undefined;
      /** An `https:` or `data:` URL. */
      readonly url?: string | undefined;
      /** An artifact of the agent, for instance one that `run.saveArtifact()` stored. */
      readonly artifactId?: string | undefined;
      /** Name of the file, for instance `report.pdf`. Default: none. */
      readonly name?: string | undefined;
    };

/** A result in parts, created by `toolResult()`. */
export interface ToolResult {
  /** Texts, images and files, in order. */
  readonly content: readonly ContentPart[];
  /** The result as JSON, for programs. The model gets it only if `content` has no text. */
  readonly structured?: Json;
  /** Marks the call as failed, also for the model. */
  readonly isError?: boolean;
}

/** A file of a result. */
export interface ResultFile {
  readonly part: FilePart;
  /** Its content, which becomes an artifact of the agent; absent for a URL, and for an artifact that exists. */
  readonly artifact?: FileArtifact;
}

/** A result in parts, converted for the model. */
export interface ReadResult {
  /** Contains a marker at the position of each image and file. */
  readonly text: string;
  readonly images: readonly ImagePart[];
  readonly files: readonly ResultFile[];
  readonly structured?: Json;
  readonly isError: boolean;
}

/** Longer lists are treated as ordinary data. */
const MOST_PARTS = 1_000;
/** Most images of one result that are sent as images, and the total length of their URLs in characters. Further ones are files. */
const MOST_IMAGES = 20;
const LONGEST_IMAGES = 10_000_000;
/** Most files of one result. Their content together is at most `LONGEST_ARTIFACT` characters. */
const MOST_FILES = 100;
/** Longest structured value that is journalled with the call, in characters of JSON. A longer one becomes an artifact. */
const LONGEST_STRUCTURED = 2 ** 18;

/**
 * A tool result in parts: texts, images and files, with a `structured` value for programs. At most 20 images with 10,000,000 characters
 * of base64 in total are sent to the model as images; others become artifacts. At most 100 files with 128 Mi characters of base64 in
 * total. `isError` marks a known failure, also of a `once` tool; the call is not repeated. Throws `InvalidInputError` that names the
 * invalid part.
 */
export function toolResult(given: {
  readonly content: readonly ToolResultPart[];
  readonly structured?: Json | undefined;
  readonly isError?: boolean | undefined;
}): ToolResult {
  const { content: parts, structured, isError } = (given ?? {}) as Partial<Record<keyof ToolResult, unknown>>;
  if (!Array.isArray(parts)) {
    throw new InvalidInputError(
      `toolResult() takes { content: [parts], structured, isError }, not content of ${describeValue(parts)}`,
    );
  }
  if (isError !== undefined && typeof isError !== "boolean") {
    throw new InvalidInputError(`toolResult(): isError is ${describeValue(isError)}; use true or false`);
  }
  const content = parts.map((part: unknown, index) => {
    const read = authoredPart(part, `toolResult(): content[${index}]`);
    if (read !== undefined) return read;
    const right =
      '{ type: "text", text }, { type: "image", data, mimeType } or { type: "file", data, mediaType, name }';
    throw new InvalidInputError(`toolResult(): content[${index}] is ${describeValue(part)}; use ${right}`);
  });
  assertFiles(content);
  const data =
    structured === undefined
      ? {}
      : { structured: takeJson(structured, "toolResult(): structured", { maxSize: LONGEST_ARTIFACT }) };
  return Object.freeze({ content: Object.freeze(content), ...data, ...(isError === true ? { isError } : {}) });
}

/** The part in our form; a file is named by `where` if it is invalid. */
function authoredPart(part: unknown, where: string): ContentPart | undefined {
  if (fieldOf(part, "type") !== "file") return partOf(part);
  const { data, url, artifactId, name, mediaType } = part as Record<string, unknown>;
  const texts = { url, artifactId, name };
  for (const [field, value] of Object.entries(texts)) {
    if (value === undefined || typeof value === "string") continue;
    throw new InvalidInputError(`${where}: ${field} is ${describeValue(value)}; use a text`);
  }
  if (typeof mediaType !== "string") {
    throw new InvalidInputError(
      `${where}: mediaType is ${describeValue(mediaType)}; use a type such as application/pdf`,
    );
  }
  if (data !== undefined && (url !== undefined || artifactId !== undefined)) {
    throw new InvalidInputError(`${where}: give only one of data, url and artifactId`);
  }
  if (data !== undefined && typeof data !== "string" && !(data instanceof Uint8Array)) {
    throw new InvalidInputError(`${where}: data is ${describeValue(data)}; use bytes or a base64 text`);
  }
  if (data !== undefined && data.length === 0) throw new InvalidInputError(`${where}: data is empty`);
  const from = data === undefined ? url : `data:${mediaType.replace(/;.*$/s, "")};base64,${base64Of(data)}`;
  const checked = checkedFilePart(
    { type: "file", mediaType, ...definedTexts({ url: from, artifactId, name }) },
    LONGEST_ARTIFACT,
  );
  if (checked.ok) return checked.part;
  throw new InvalidInputError(`${where}: ${checked.problem}`);
}

function definedTexts(texts: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(texts).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

function base64Of(data: string | Uint8Array): string {
  if (typeof data === "string") return data;
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}

/**
 * Reads a result in parts: of `toolResult()`, of an MCP server, or in the forms of other libraries. `undefined` for any other value.
 * Throws `InvalidInputError` for parts that cannot be kept.
 */
export function readResult(value: unknown): ReadResult | undefined {
  const isImage = typeof value === "string" && value.startsWith("data:image/");
  const parts = isImage ? [{ type: "image", url: value }] : listOf(value);
  if (parts === undefined || parts.length > MOST_PARTS || !parts.every(isPart)) return undefined;
  const data = isResult(value) ? structuredOf(value) : undefined;
  if (parts.length === 0 && data === undefined) return undefined;
  const read = parts.map((part) => {
    const known = partOf(part);
    if (known !== undefined) return known;
    throw new InvalidInputError(`it contains a part of type "${part.type}", which cannot be kept`);
  });
  // Texts alone may be ordinary data.
  if (read.every(({ type }) => type === "text") && !isResult(value)) return undefined;
  assertFiles(read);
  const structured =
    data === undefined ? undefined : takeJson(data, "its structured value", { maxSize: LONGEST_ARTIFACT });
  return { ...shownParts(read, structured), isError: fieldOf(value, "isError") === true };
}

function structuredOf({ structured, structuredContent }: Readonly<Record<string, unknown>>): unknown {
  return structured === undefined ? structuredContent : structured;
}

/** The text with marks, and what the marks stand for. */
function shownParts(parts: readonly ContentPart[], structured: Json | undefined): Omit<ReadResult, "isError"> {
  const lines: string[] = [];
  const images: ImagePart[] = [];
  const files: ResultFile[] = [];
  let room = LONGEST_IMAGES;
  const addFile = (file: ResultFile): void => {
    files.push(file);
    lines.push(fileMark(file.part, sizeOf(file)));
  };
  for (const part of parts) {
    if (part.type === "text") lines.push(part.text);
    else if (part.type === "file") addFile(resultFile(part));
    else if (images.length < MOST_IMAGES && part.url.length <= room) {
      room -= part.url.length;
      images.push(part);
      lines.push(`[image ${images.length}]`);
    } else addFile(imageAsFile(part));
  }
  const hasText = parts.some((part) => part.type === "text" && part.text.trim() !== "");
  if (structured === undefined) return { text: lines.join("\n"), images, files };
  const json = JSON.stringify(structured);
  if (!hasText) lines.unshift(json);
  if (json.length <= LONGEST_STRUCTURED) return { text: lines.join("\n"), images, files, structured };
  const whole = { name: "structured.json", contentType: "application/json", content: json } as const;
  addFile(storedFile(whole));
  return { text: lines.join("\n"), images, files };
}

/** The file of a result with its own artifact, if its content is given. */
function resultFile(part: FilePart): ResultFile {
  const data = part.url === undefined ? undefined : dataOf(part.url);
  if (data === undefined) return { part };
  const { mediaType: contentType } = part;
  const name = part.name ?? `file.${extensionOf(contentType)}`;
  return storedFile({ name, contentType, ...storedContent({ contentType, content: Buffer.from(data, "base64") }) });
}

function storedFile(given: Omit<FileArtifact, "artifactId">): ResultFile {
  const artifactId = createId("artifact");
  const { name, contentType: mediaType } = given;
  return { part: { type: "file", mediaType, artifactId, name }, artifact: { artifactId, ...given } };
}

function imageAsFile({ url }: ImagePart): ResultFile {
  const mediaType = /^data:([^;,]*)/.exec(url)?.[1] ?? "image/*";
  return dataOf(url) === undefined
    ? { part: { type: "file", mediaType: "image/jpeg", url } }
    : resultFile({ type: "file", mediaType, url, name: `image.${extensionOf(mediaType)}` });
}

/** A part of a media type that serves as the end of a file's name. */
function extensionOf(mediaType: string): string {
  const [subtype = ""] = (mediaType.split("/", 2)[1] ?? "").split("+", 1);
  const known = { plain: "txt", markdown: "md", mpeg: "mp3", jpeg: "jpg", "octet-stream": "bin" }[subtype];
  return known ?? (/^[a-z0-9]{1,8}$/.test(subtype) ? subtype : "bin");
}

/** The bytes of a file; `undefined` if its content is elsewhere. */
function sizeOf({ artifact }: ResultFile): number | undefined {
  if (artifact === undefined) return undefined;
  return artifact.encoding === "base64" ? sizeOfBase64(artifact.content) : Buffer.byteLength(artifact.content);
}

const resultFields: ReadonlySet<string> = new Set(["content", "structured", "isError", "structuredContent", "_meta"]);

function listOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  if (isResult(value)) return value.content;
  const type = fieldOf(value, "type");
  const parts = fieldOf(value, "value");
  // A tool result of the AI SDK.
  if (type === "content" && Array.isArray(parts)) return parts;
  return typeof type === "string" ? [value] : undefined;
}

function isResult(value: unknown): value is {
  readonly content: readonly unknown[];
  readonly structured?: unknown;
  readonly structuredContent?: unknown;
} {
  if (!Array.isArray(fieldOf(value, "content"))) return false;
  return Object.keys(value as object).every((name) => resultFields.has(name));
}

const textTypes: ReadonlySet<unknown> = new Set(["text", "input_text", "output_text"]);
const imageTypes: ReadonlySet<unknown> = new Set(["image", "image_url", "input_image", "image-data", "image-url"]);
const fileTypes: ReadonlySet<unknown> = new Set([
  "media",
  "file",
  "file-data",
  "file-url",
  "document",
  "audio",
  "input_file",
  "input_audio",
]);

/** Whether the value is a part of a result; ordinary data may have a `type` of the same name. */
function isPart(value: unknown): value is { readonly type: string } {
  const type = fieldOf(value, "type");
  if (textTypes.has(type)) return typeof fieldOf(value, "text") === "string";
  if (imageTypes.has(type)) return /^(?:data:|https?:)/i.test(urlOf(value) ?? "");
  if (fileTypes.has(type)) return /^data:image\//i.test(urlOf(value) ?? "") || fileOf(value) !== undefined;
  if (type === "resource_link") return typeof fieldOf(value, "uri") === "string";
  return type === "resource" && typeof fieldOf(fieldOf(value, "resource"), "uri") === "string";
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** The part in our form; `undefined` if it has no content. */
function partOf(part: unknown): ContentPart | undefined {
  const type = fieldOf(part, "type");
  const source = type === "resource" ? fieldOf(part, "resource") : part;
  const text = fieldOf(source, "text");
  if ((textTypes.has(type) || type === "resource") && typeof text === "string") return { type: "text", text };
  // An empty file has no content to keep.
  if (type === "resource" && fieldOf(source, "blob") === "") return { type: "text", text: "" };
  if (type === "resource_link") return { type: "text", text: String(fieldOf(part, "uri")) };
  const url = urlOf(source);
  const isImage = imageTypes.has(type) || /^data:image\//i.test(url ?? "");
  if (isImage && url !== undefined && !isOtherImage(url)) return { type: "image", url: checkedUrl(url) };
  return fileOf(source);
}

/** Whether the data is an image of a type that is not sent as an image, such as TIFF: it is a file. */
function isOtherImage(url: string): boolean {
  return /^data:image\//i.test(url) && !imagePattern.test(url) && isBase64(dataOf(url) ?? "");
}

/** A file in the forms that libraries use; `undefined` if the value is not a file. */
function fileOf(given: unknown): FilePart | undefined {
  // Chat Completions have the content in a member named as the type.
  const part = fieldOf(given, "file") ?? fieldOf(given, "input_audio") ?? given;
  const url = fileUrlOf(part);
  const artifactId = fieldOf(part, "artifactId");
  const source = fieldOf(part, "source") ?? part;
  const format = fieldOf(part, "format");
  const embedded = /^data:([^;,]+)/i.exec(url ?? "")?.[1];
  const mediaType = mediaTypeOf(source) ?? (typeof format === "string" ? `audio/${format}` : embedded);
  if (mediaType === undefined && fieldOf(part, "blob") === undefined) return undefined;
  const names = ["name", "filename", "title"].map((field) => fieldOf(part, field));
  const name = names.find((one) => typeof one === "string" && one !== "") ?? nameInUri(fieldOf(part, "uri"));
  const checked = checkedFilePart(
    {
      type: "file",
      mediaType: mediaType ?? "application/octet-stream",
      ...definedTexts({ url, artifactId, name }),
    },
    Number.POSITIVE_INFINITY,
  );
  return checked.ok ? checked.part : undefined;
}

function fileUrlOf(part: unknown): string | undefined {
  const source = fieldOf(part, "source") ?? part;
  const given = fieldOf(source, "data") ?? fieldOf(source, "blob") ?? fieldOf(source, "file_data");
  // A file of the AI SDK 7 names the kind of its data.
  const data = fieldOf(given, "data") ?? fieldOf(given, "url") ?? given;
  const format = fieldOf(part, "format");
  const type = mediaTypeOf(source) ?? (typeof format === "string" ? `audio/${format}` : "application/octet-stream");
  if (data instanceof Uint8Array || (typeof data === "string" && !hasScheme.test(data))) {
    return data.length === 0 ? undefined : `data:${plainMediaType(type) ?? type};base64,${base64Of(data)}`;
  }
  const url = fieldOf(source, "url") ?? fieldOf(source, "file_url") ?? data;
  return url instanceof URL ? url.href : typeof url === "string" ? url : undefined;
}

/** The last segment of the address of a resource. */
function nameInUri(uri: unknown): string | undefined {
  if (typeof uri !== "string") return undefined;
  const [, name] = /([^/?#]{1,200})\/?(?:[?#].*)?$/s.exec(uri) ?? [];
  return name;
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

function assertFiles(parts: readonly ContentPart[]): void {
  const files = parts.filter((part) => part.type === "file");
  if (files.length > MOST_FILES) {
    throw new InvalidInputError(`it has ${files.length} files; at most ${MOST_FILES} can be kept`);
  }
  const length = parts.reduce((sum, part) => sum + (part.type === "text" ? 0 : (part.url?.length ?? 0)), 0);
  if (length <= LONGEST_ARTIFACT) return;
  throw new InvalidInputError(
    `its images and files have ${length} characters of base64; at most ${LONGEST_ARTIFACT} can be kept`,
  );
}
