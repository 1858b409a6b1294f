import { createHash } from "node:crypto";
import { refusedPath } from "./workspace-path.ts";

/** The text of a file. Throws `InvalidInputError` if it is not UTF-8 text. A byte order mark stays part of the text. */
export function textOfContent(path: string, content: Uint8Array): string {
  const text = textIn(content);
  if (text !== undefined) return text;
  throw refusedPath(path, `it is not a text file in UTF-8 (${content.byteLength} bytes)`);
}

/** `undefined` if the content is not UTF-8 text. */
export function textIn(content: Uint8Array): string | undefined {
  if (content.subarray(0, 8_192).includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return undefined;
  }
}

/** The lines of a text, without their ends; a line break at the end begins no further line. */
export function linesOf(text: string): readonly string[] {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

export function hashOfContent(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

const imageTypes: readonly (readonly [type: string, start: readonly number[], offset: number])[] = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47], 0],
  ["image/jpeg", [0xff, 0xd8, 0xff], 0],
  ["image/gif", [0x47, 0x49, 0x46, 0x38], 0],
  ["image/webp", [0x57, 0x45, 0x42, 0x50], 8],
];

/** The media type of an image that models can see, by its first bytes. */
export function imageTypeOf(content: Uint8Array): string | undefined {
  return imageTypes.find(([, start, offset]) => start.every((byte, index) => content[offset + index] === byte))?.[0];
}
