import type { Artifact } from "../state/index.ts";
import { pairStart } from "./output.ts";
import { compilePattern } from "./pattern.ts";
import type { ReadArtifactArguments } from "./runtime-tools.ts";

/** The result of reading an artifact: text for the model, or the reason why there is none. */
export type ArtifactReading =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly code: string; readonly message: string };

/**
 * A range of an artifact's text, or the passages that match a pattern: at most `length` characters, after a line with their positions and
 * the position to continue from. Characters are UTF-16 units; no surrogate pair is split. A search yields to the event loop regularly,
 * and rejects when the signal is aborted.
 */
export async function readArtifactText(
  artifact: Artifact,
  args: ReadArtifactArguments,
  signal: AbortSignal,
): Promise<ArtifactReading> {
  const { artifactId, name, contentType, content, encoding, size } = artifact;
  const shown = `Artifact ${artifactId} (${name}, ${contentType})`;
  if (encoding === "base64" || isBinary(contentType)) {
    const message = `${shown} is binary (${size} bytes) and cannot be read as text.`;
    return { ok: false, code: "not_text", message };
  }
  if (args.from > 0 && args.from >= content.length) {
    const message = `${shown} has ${content.length} characters: there is nothing from ${args.from} on.`;
    return { ok: false, code: "past_the_end", message };
  }
  if (args.pattern !== undefined) return await searched(shown, content, { ...args, pattern: args.pattern }, signal);
  const from = pairStart(content, args.from);
  const to = endOf(content, from, args.length);
  const range = `characters ${from} to ${to} of ${content.length}`;
  return { ok: true, text: `${shown}, ${range}${goOn(to, content)}:\n\n${content.slice(from, to)}` };
}

const textTypes = /^(?:text\/|[^/]+\/(?:[^;]+\+)?(?:json|xml)\b)/;
const binaryTypes =
  /^(?:image|audio|video|font|model)\/|^application\/(?:octet-stream|pdf|zip|gzip|wasm|vnd\.|msword|java-archive|x-(?:tar|gzip|bzip|7z|rar|zip|sqlite))/;

function isBinary(contentType: string): boolean {
  const type = contentType.trim().toLowerCase();
  return binaryTypes.test(type) && !textTypes.test(type);
}

function endOf(content: string, from: number, length: number): number {
  const to = Math.min(content.length, from + length);
  const end = pairStart(content, to);
  // A single pair is shown complete, otherwise reading would not advance.
  return end > from ? end : Math.min(content.length, to + 1);
}

function goOn(to: number, content: string): string {
  return to < content.length ? `; go on with from: ${to}` : "";
}

/** Lines are searched one by one; long lines in pieces of this many characters, each overlapping the next by half. */
const pieceLength = 400;
/** A search stops after this time, in milliseconds. */
const SEARCH_MS = 2_000;
/** How long a search may block the event loop, in milliseconds. */
const AT_ONCE_MS = 4;

interface Piece {
  readonly from: number;
  readonly to: number;
}

async function searched(
  shown: string,
  content: string,
  { from, length, pattern: source }: ReadArtifactArguments & { readonly pattern: string },
  signal: AbortSignal,
): Promise<ArtifactReading> {
  let pattern: RegExp;
  try {
    pattern = compilePattern(source);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { ok: false, code: "bad_pattern", message: `The pattern is invalid: ${error.message}.` };
  }
  const { TooSlowError } = await import("./time-limit.ts");
  try {
    const { found, end } = await piecesOf(content, { from: pairStart(content, from), length, pattern }, signal);
    const places = found.map((piece) => `[${piece.from}] ${content.slice(piece.from, piece.to)}`);
    const range = `searched from character ${from} to ${end} of ${content.length}${goOn(end, content)}`;
    const count = places.length === 0 ? "nothing matches" : `${places.length} places match`;
    return { ok: true, text: [`${shown}, ${range}: ${count}.`, ...places].join("\n\n") };
  } catch (error) {
    if (!(error instanceof TooSlowError)) throw error;
    return { ok: false, code: "bad_pattern", message: "The pattern takes too long to search with: use a simpler one." };
  }
}

interface Search {
  readonly from: number;
  readonly length: number;
  readonly pattern: RegExp;
}

/** Matching pieces, and the position at which the search stopped for lack of space or time. */
async function piecesOf(
  content: string,
  { from, length, pattern }: Search,
  signal: AbortSignal,
): Promise<{ readonly found: readonly Piece[]; readonly end: number }> {
  const { nextTask, withinLimit } = await import("./time-limit.ts");
  const deadline = performance.now() + SEARCH_MS;
  const found: Piece[] = [];
  let room = length;
  for (let start = from; ; ) {
    const { matching, end } = withinLimit(() => testSome(content, start, pattern));
    for (const piece of matching) {
      const last = found.at(-1);
      const overlap = last && piece.from < last.to ? last.to - piece.from : 0;
      const news = piece.to - piece.from - overlap;
      if (news > room && found.length > 0) return { found, end: piece.from + overlap };
      room -= news;
      if (last && overlap > 0) found[found.length - 1] = { from: last.from, to: piece.to };
      else found.push(piece);
    }
    if (end >= content.length || performance.now() > deadline) return { found, end };
    start = end;
    await nextTask();
    signal.throwIfAborted();
  }
}

/** Tests pieces for a few milliseconds. */
function testSome(
  content: string,
  from: number,
  pattern: RegExp,
): { readonly matching: readonly Piece[]; readonly end: number } {
  const until = performance.now() + AT_ONCE_MS;
  const matching: Piece[] = [];
  for (const piece of cutUp(content, from)) {
    if (piece.from > from && performance.now() > until) return { matching, end: piece.from };
    if (pattern.test(content.slice(piece.from, piece.to))) matching.push(piece);
  }
  return { matching, end: content.length };
}

function* cutUp(content: string, start: number): Generator<Piece> {
  for (let line = start; line < content.length; ) {
    const lineEnd = content.indexOf("\n", line);
    const end = lineEnd < 0 ? content.length : lineEnd;
    for (let from = line; from < end; from = pairStart(content, from + pieceLength / 2)) {
      const to = Math.min(end, endOf(content, from, pieceLength));
      yield { from, to };
      if (to === end) break;
    }
    line = end + 1;
  }
}
