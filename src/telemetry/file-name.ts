import { createHash } from "node:crypto";

const longestName = 180;
/** Names that Windows keeps for devices, whatever ending they have. */
const device = /^(?:con|prn|aux|nul|com\d|lpt\d)(?=\.|$)/;

/**
 * An id as the beginning of a file name: never a path, never the same for two ids (guarantee S6), also on file systems
 * that take upper and lower case for one. Lower-case letters, digits, `-`, `_`, `~`, `@` and dots stay as they are, but
 * not signs in front; everything else becomes `%` and the hexadecimal digits of its UTF-8 bytes. Ids that are too long,
 * or no text at all, end in their SHA-256.
 */
export function fileNameOf(id: string): string {
  const bytes = [...Buffer.from(id)];
  const name = bytes.map((byte, index) => (isPlain(byte, index) ? String.fromCharCode(byte) : escaped(byte))).join("");
  const guarded = device.test(name) ? escaped(name.charCodeAt(0)) + name.slice(1) : name;
  if (guarded !== "" && guarded.length <= longestName && id.isWellFormed()) return guarded;
  // "%%" stands in no other name.
  const hash = createHash("sha256").update(id, "utf16le").digest("hex");
  return `${guarded.slice(0, 100).replace(/%.?$/, "")}%%${hash}`;
}

function isPlain(byte: number, index: number): boolean {
  return (index === 0 ? /[a-z0-9_]/ : /[a-z0-9._~@-]/).test(String.fromCharCode(byte));
}

function escaped(byte: number): string {
  return `%${byte.toString(16).padStart(2, "0")}`;
}
