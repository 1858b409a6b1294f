import { dataOf, type FilePart, isTextType, sizeOfBase64 } from "../state/index.ts";
import { constants, inflateSync } from "node:zlib";

/*
 * Tokens to reserve for a file. Providers count a PDF by its pages (text and a picture of each), a recording by its length. Both are read
 * from the file; what cannot be read is estimated from its size, on the high side.
 */

/** Tokens of a page: the text of a dense page and its picture at high detail. */
const PAGE_TOKENS = 5_000;
/** Tokens of a second of sound; providers count 10 to 32. */
const SECOND_TOKENS = 40;
/** Bytes of a file per token if nothing else is known. A recording of 2 kB per second has 62 per token. */
const BYTES_PER_TOKEN = 48;
/** Bytes of a page of a PDF whose pages cannot be counted, because it is encrypted or broken. */
const PAGE_BYTES = 2_000;
/** Tokens of a file that is sent by its URL, whose size is not known. */
const UNKNOWN_TOKENS = 100_000;
/** Name, type and JSON of a part. */
const PART_TOKENS = 64;
/** Most bytes that are decompressed for one PDF: the process waits meanwhile. */
const MOST_DECOMPRESSED = 16_777_216;
/** A file with more tokens is named instead, unless the user sets the tokens of files: it would refuse every prompt. */
export const MOST_FILE_TOKENS = 1_000_000;

/** Cached, because a prompt is counted at every call. */
const known = new WeakMap<FilePart, number>();

/** The tokens to reserve for a file in a prompt. */
export function fileTokensOf(part: FilePart): number {
  let tokens = known.get(part);
  if (tokens === undefined) {
    tokens = PART_TOKENS + contentTokens(part);
    known.set(part, tokens);
  }
  return tokens;
}

function contentTokens({ mediaType, url }: FilePart): number {
  if (url === undefined) return 0;
  const data = dataOf(url);
  if (data === undefined) return UNKNOWN_TOKENS;
  const size = sizeOfBase64(data);
  // A tokenizer never makes more tokens than bytes.
  if (isTextType(mediaType)) return size;
  if (mediaType === "application/pdf") return PAGE_TOKENS * (pagesOf(Buffer.from(data, "base64")) ?? pagesOfSize(size));
  const seconds = /^audio\/(?:x-|vnd\.)?wave?$/.test(mediaType) ? secondsOf(data, size) : undefined;
  return seconds === undefined ? Math.ceil(size / BYTES_PER_TOKEN) : Math.ceil(seconds * SECOND_TOKENS);
}

function pagesOfSize(size: number): number {
  return Math.max(1, Math.ceil(size / PAGE_BYTES));
}

/** Pages of a PDF: its page objects, or the count in its page tree if that is higher; `undefined` if neither is readable. */
function pagesOf(bytes: Buffer): number | undefined {
  let { objects, count } = pagesIn(bytes.toString("latin1"));
  let room = MOST_DECOMPRESSED;
  for (const section of objectSections(bytes)) {
    const text = room > 0 ? decompressed(section, room) : undefined;
    // The rest is unknown.
    if (text === undefined) return Math.max(objects, count, pagesOfSize(bytes.length));
    room -= text.length;
    const found = pagesIn(text);
    objects += found.objects;
    count = Math.max(count, found.count);
  }
  const pages = Math.max(objects, count);
  return pages === 0 ? undefined : pages;
}

function pagesIn(text: string): { readonly objects: number; readonly count: number } {
  const objects = text.match(/\/Type\s*\/Page(?![A-Za-z])/g)?.length ?? 0;
  let count = 0;
  for (const [, digits] of text.matchAll(/\/Count\s+(\d{1,6})(?!\d)/g)) count = Math.max(count, Number(digits));
  // Outlines have a count too, which can only raise the estimate. A count without a page tree is ignored.
  return { objects, count: /\/Type\s*\/Pages\b/.test(text) ? count : 0 };
}

/** The sections of a PDF that hold compressed objects (since PDF 1.5 its pages may be there). */
function* objectSections(bytes: Buffer): Generator<Buffer> {
  let end = 0;
  for (;;) {
    const at = bytes.indexOf("/ObjStm", end);
    const begin = at < 0 ? -1 : bytes.indexOf("stream", at);
    if (begin < 0) return;
    const start = begin + 6 + (bytes[begin + 6] === 0x0d ? 2 : 1);
    end = bytes.indexOf("endstream", start);
    if (end < 0) return;
    yield bytes.subarray(start, end);
  }
}

/** Empty for a section that is encrypted or compressed in another way; `undefined` for one that is longer than there is room. */
function decompressed(section: Buffer, room: number): string | undefined {
  try {
    // A line break may follow the compressed data.
    return inflateSync(section, { maxOutputLength: room, finishFlush: constants.Z_SYNC_FLUSH }).toString("latin1");
  } catch (error) {
    return error instanceof RangeError ? undefined : "";
  }
}

/** The length of a WAV by the byte rate in its header; `undefined` if it has none. */
function secondsOf(data: string, size: number): number | undefined {
  const header = Buffer.from(data.slice(0, 64), "base64");
  if (header.length < 32 || header.toString("latin1", 0, 4) !== "RIFF") return undefined;
  const rate = header.readUInt32LE(28);
  // Rates below telephone sound, or above those of any recorder, are ignored as wrong.
  return rate >= 1_000 && rate <= 2_000_000 ? size / rate : undefined;
}
