import type { FilePart, Message } from "./message.ts";

// Checks and texts of the `file` parts of messages, for every module through which one enters.

/** Longest `data:` URL of a file in a message, in characters: about 15 MB of data. */
export const LONGEST_FILE_URL = 20_000_000;
/** Longest name of a file, in characters. */
const LONGEST_FILE_NAME = 1_000;

/** A media type without parameters (RFC 6838). */
const mediaTypePattern = /^[a-z0-9][\w!#$&^.+-]{0,126}\/[a-z0-9][\w!#$&^.+-]{0,126}$/i;

/** The media type in lower case without its parameters; `undefined` if the text is not a media type. */
export function plainMediaType(given: string): string | undefined {
  const [type = ""] = given.split(";", 1);
  const trimmed = type.trim();
  return mediaTypePattern.test(trimmed) ? trimmed.toLowerCase() : undefined;
}

/** White space is allowed anywhere. Searches for invalid characters, because matching megabytes overflows the stack. */
export function isBase64(text: string): boolean {
  const padding = text.indexOf("=");
  const end = padding < 0 ? text.length : padding;
  return end > 0 && !/[^A-Za-z0-9+/\s]/.test(text.slice(0, end)) && /^={0,2}$/.test(text.slice(end).trim());
}

/** The base64 of a `data:` URL; `undefined` for other URLs and other encodings. */
export function dataOf(url: string): string | undefined {
  const comma = url.indexOf(",");
  return comma > 0 && /^data:[^,]{0,300};base64$/i.test(url.slice(0, comma)) ? url.slice(comma + 1) : undefined;
}

/** Bytes of a base64 text without white space. */
export function sizeOfBase64(data: string): number {
  const padding = data.endsWith("==") ? 2 : data.endsWith("=") ? 1 : 0;
  return Math.max(0, Math.floor((data.length * 3) / 4) - padding);
}

function refuse(problem: string): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem };
}

/**
 * The part in its stored form: media type in lower case, base64 without white space. Otherwise the reason why it is invalid, as the rest
 * of a sentence about the part.
 */
export function checkedFilePart(
  part: FilePart,
  longestUrl = LONGEST_FILE_URL,
): { readonly ok: true; readonly part: FilePart } | { readonly ok: false; readonly problem: string } {
  const { url, artifactId, name } = part;
  const mediaType = plainMediaType(part.mediaType);
  if (mediaType === undefined) {
    return refuse(
      `invalid mediaType ${JSON.stringify(part.mediaType.slice(0, 80))}; use a type such as application/pdf`,
    );
  }
  if (name !== undefined && (name === "" || name.length > LONGEST_FILE_NAME || !name.isWellFormed())) {
    return refuse(`the name of a file must have 1 to ${LONGEST_FILE_NAME} characters of well-formed Unicode`);
  }
  const named = name === undefined ? {} : { name };
  if ((url === undefined) === (artifactId === undefined)) {
    return refuse("a file needs either a url (https: or data:) or the artifactId of an artifact of the agent");
  }
  if (url === undefined) {
    if (artifactId === undefined || !/^[!-~]{1,255}$/.test(artifactId)) {
      return refuse("the artifactId of a file must have 1 to 255 visible ASCII characters");
    }
    return { ok: true, part: { type: "file", mediaType, artifactId, ...named } };
  }
  if (!/^data:/i.test(url)) {
    const isHttps = url.startsWith("https://") && URL.canParse(url) && url.length <= 10_000;
    if (!isHttps) return refuse(`invalid file URL "${url.slice(0, 80)}"; use https:, or data: with base64`);
    return { ok: true, part: { type: "file", mediaType, url: new URL(url).href, ...named } };
  }
  if (url.length > longestUrl) {
    return refuse(`the file has ${url.length} characters; at most ${longestUrl} are allowed: use its https: URL`);
  }
  const data = dataOf(url);
  if (data === undefined || !isBase64(data)) return refuse(`the data: URL must be base64: data:${mediaType};base64,…`);
  return {
    ok: true,
    part: { type: "file", mediaType, url: `data:${mediaType};base64,${data.replaceAll(/\s+/g, "")}`, ...named },
  };
}

const textTypes =
  /^(?:text\/.|application\/(?:json|xml|yaml|x-yaml|toml|javascript|typescript|sql|x-sh|graphql|x-ndjson|x-www-form-urlencoded)$|[^/]+\/[^;]+\+(?:json|xml|yaml)$)/;

/** Whether files of the type are text, which every model reads. */
export function isTextType(mediaType: string): boolean {
  return textTypes.test(plainMediaType(mediaType) ?? "");
}

/** The text of base64 in UTF-8; `undefined` if it is not valid UTF-8, or holds NUL. */
export function textOfBase64(data: string): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(data, "base64"));
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Whether the model can read more of the result with `read_artifact`: it is cut, or has a text file. */
export function isExcerpt(message: Message): boolean {
  if (message.role !== "tool") return false;
  if (message.artifactId !== undefined) return true;
  const { content } = message;
  if (typeof content === "string") return false;
  return content.some((part) => part.type === "file" && part.artifactId !== undefined && isTextType(part.mediaType));
}

/** A number of bytes in words: `1.2 MB`. */
export function sizeInWords(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  const [value, unit] = bytes < 999_950 ? [bytes / 1_000, "kB"] : [bytes / 1_000_000, "MB"];
  return `${value.toFixed(1).replace(/\.0$/, "")} ${unit}`;
}

/** The text that stands for a file where its content cannot: `[file report.pdf, application/pdf, 1.2 MB: artifact ID]`. */
export function fileMark(part: FilePart, size = sizeOfPart(part)): string {
  return `[${fileWords(part, size)}]`;
}

/** The same text for a file that the model is not shown. */
export function hiddenFileMark(part: FilePart, size = sizeOfPart(part)): string {
  const words = fileWords(part, size);
  return words.includes(": ") ? `[${words}, not shown]` : `[${words}: not shown]`;
}

function fileWords({ name, mediaType, url, artifactId }: FilePart, size: number | undefined): string {
  // A name may come from a server that is not trusted: it could break out of the mark, or reverse the direction of the text around it.
  const shown =
    name === undefined
      ? ""
      : ` ${name
          .slice(0, 200)
          .toWellFormed()
          .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}[\]:]/gu, " ")},`;
  const length = size === undefined ? "" : `, ${sizeInWords(size)}`;
  const where = artifactId === undefined ? (url?.startsWith("https:") ? `: ${url}` : "") : `: artifact ${artifactId}`;
  return `file${shown} ${mediaType}${length}${where}`;
}

function sizeOfPart({ url }: FilePart): number | undefined {
  const data = url === undefined ? undefined : dataOf(url);
  return data === undefined ? undefined : sizeOfBase64(data);
}

/** The text with the mark of a file that is not shown: the mark in the text is extended, or a mark is appended. */
export function withHiddenMark(text: string, part: FilePart): string {
  const { artifactId } = part;
  const known = artifactId === undefined ? "" : `: artifact ${artifactId}]`;
  if (known !== "" && text.includes(known)) {
    return text.replace(known, () => `: artifact ${artifactId}, not shown]`);
  }
  const mark = hiddenFileMark(part);
  return text.trim() === "" ? mark : `${text}\n${mark}`;
}
