/*
 * Reads the answer to one request of HTTP/1.1 out of the bytes of a connection (RFC 9112). Owns nothing but its place in
 * them, and waits for nothing.
 * 1. However the bytes are cut into pieces, the same is told of them.
 * 2. What does not keep to the grammar is an error, and never a guess: two who disagree about where an answer ends take a part of it
 *    for something else.
 * 3. Of a head, a trailer or a line, 32 KB at most are kept until its end has come.
 */

/** Is told of an answer as it comes. */
export interface AnswerListener {
  /** The names, in small letters, and the values of the fields, in turn. Interim answers are not told. */
  onHead(status: number, fields: readonly string[]): void;
  /** A part of the body. The bytes are others as soon as the call is over. */
  onBytes(bytes: Buffer): void;
}

/** Longest head, and longest trailer, in bytes. */
const longestHead = 32_768;
/** Longest line with the size of a chunk, in bytes. */
const longestSizeLine = 4_096;
const headEnd = Buffer.from("\r\n\r\n");
const headStart = "HTTP/1.";

const statusLine = /HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/y;
const fieldLine = /([\w!#$%&'*+.^`|~-]+):([\t\x20-\x7e\x80-\xff]*)\r\n/y;
const sizeLine = /^([\da-f]{1,13})(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n$/i;

const cr = 13;
const lf = 10;

/** `rest`: the body goes on until the connection ends. */
type Part = "head" | "body" | "size" | "chunk" | "chunk end" | "trailer" | "rest" | "ended";

export class AnswerReader {
  readonly #listener: AnswerListener;
  #part: Part = "head";
  /** How much of the body, of the chunk or of the line's end behind it is missing. */
  #missing = 0;
  /** The beginning of a head or line, of which the end is missing. */
  #kept = "";
  #trailerLength = 0;
  #mayStay = false;
  #stayMs: number | undefined;
  #hasExtra = false;

  constructor(listener: AnswerListener) {
    this.#listener = listener;
  }

  /** The whole answer has been read. */
  get hasEnded(): boolean {
    return this.#part === "ended";
  }

  /** After the end: whether another exchange may follow on the connection. */
  get mayStay(): boolean {
    return this.#mayStay && !this.#hasExtra;
  }

  /** How long the server keeps the connection while it is free, in milliseconds, if it said so. */
  get stayMs(): number | undefined {
    return this.#stayMs;
  }

  /** Takes the bytes that came. Throws when they are no answer; the reader must not be used after that. */
  read(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length && this.#part !== "ended") at = this.#step(bytes, at);
    this.#hasExtra = at < bytes.length;
  }

  /** The connection was ended by the server. Tells whether this ends the answer well. */
  finish(): boolean {
    if (this.#part === "rest") this.#part = "ended";
    return this.hasEnded;
  }

  /** Reads on at this place; gives the next one. */
  #step(bytes: Buffer, at: number): number {
    switch (this.#part) {
      case "head":
        return this.#readHead(bytes, at);
      case "body":
        return this.#readBody(bytes, at, "ended");
      case "chunk":
        return this.#readBody(bytes, at, "chunk end");
      case "chunk end":
        return this.#readChunkEnd(bytes, at);
      case "size":
      case "trailer":
        return this.#readLine(bytes, at);
      default:
        this.#listener.onBytes(at === 0 ? bytes : bytes.subarray(at));
        return bytes.length;
    }
  }

  #readHead(bytes: Buffer, at: number): number {
    const before = this.#kept.length;
    const whole = before === 0 ? bytes.indexOf(headEnd, at) : -1;
    const text = this.#kept + bytes.toString("latin1", at, whole === -1 ? bytes.length : whole + headEnd.length);
    const end = text.indexOf("\r\n\r\n", Math.max(0, before - 3));
    if ((end === -1 ? text.length : end) > longestHead) throw malformed(`the head is longer than ${longestHead} bytes`);
    if (end === -1) {
      refuseEarly(text, before);
      this.#kept = text;
      return bytes.length;
    }
    const length = end + headEnd.length;
    this.#kept = "";
    this.#takeHead(text.slice(0, length));
    return at + length - before;
  }

  /** Takes a head with the blank line at its end. */
  #takeHead(text: string): void {
    statusLine.lastIndex = 0;
    const [, version, digits] = statusLine.exec(text) ?? [];
    if (digits === undefined) throw malformed("no status line");
    const fields = fieldsOf(text, statusLine.lastIndex, text.length - 2);
    const status = Number(digits);
    if (status === 101) throw malformed("another protocol, for which nobody asked");
    if (status < 200) return;
    this.#frame(status, version === "1", fields);
    this.#listener.onHead(status, fields);
  }

  /** Finds out where the body ends, and whether the connection may go on after it (RFC 9112, 6.3 and 9.3). */
  #frame(status: number, isCurrent: boolean, fields: readonly string[]): void {
    const length = fieldOf(fields, "content-length");
    const coding = fieldOf(fields, "transfer-encoding");
    const connection =
      fieldOf(fields, "connection")
        ?.toLowerCase()
        .split(/[\t ,]+/) ?? [];
    const isClosing = connection.includes("close");
    this.#mayStay = isCurrent ? !isClosing : connection.includes("keep-alive") && !isClosing && coding === undefined;
    const stay = /(?:^|[\t ,;])timeout=(\d{1,9})/i.exec(fieldOf(fields, "keep-alive") ?? "");
    this.#stayMs = stay === null ? undefined : Number(stay[1]) * 1_000;
    if (length !== undefined && !/^\d{1,15}$/.test(length)) throw malformed("its length is no number");
    if (coding !== undefined && coding.toLowerCase() !== "chunked") throw malformed("its transfer coding is not known");
    if (coding !== undefined && length !== undefined) throw malformed("it has a length, and chunks too");
    if (status === 204 || status === 304) this.#part = "ended";
    else if (coding !== undefined) this.#part = "size";
    else if (length !== undefined) {
      this.#missing = Number(length);
      this.#part = this.#missing === 0 ? "ended" : "body";
    } else {
      this.#mayStay = false;
      this.#part = "rest";
    }
  }

  #readBody(bytes: Buffer, at: number, next: Part): number {
    const end = Math.min(bytes.length, at + this.#missing);
    this.#missing -= end - at;
    if (this.#missing === 0) {
      this.#part = next;
      if (next === "chunk end") this.#missing = 2;
    }
    this.#listener.onBytes(bytes.subarray(at, end));
    return end;
  }

  #readChunkEnd(bytes: Buffer, at: number): number {
    if (bytes[at] !== (this.#missing === 2 ? cr : lf)) throw malformed("a chunk is not of its size");
    this.#missing -= 1;
    if (this.#missing === 0) this.#part = "size";
    return at + 1;
  }

  #readLine(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(lf, at);
    const next = end === -1 ? bytes.length : end + 1;
    const line = this.#kept + bytes.toString("latin1", at, next);
    if (line.length > (this.#part === "size" ? longestSizeLine : longestHead)) throw malformed("a line is too long");
    this.#kept = end === -1 ? line : "";
    if (end !== -1) {
      if (this.#part === "size") this.#takeSize(line);
      else this.#takeTrailer(line);
    }
    return next;
  }

  #takeSize(line: string): void {
    const [, digits] = sizeLine.exec(line) ?? [];
    if (digits === undefined) throw malformed("the size of a chunk is no number");
    this.#missing = Number.parseInt(digits, 16);
    this.#part = this.#missing === 0 ? "trailer" : "chunk";
  }

  /** Nobody wants the fields behind the body, but they must be some. */
  #takeTrailer(line: string): void {
    this.#trailerLength += line.length;
    if (this.#trailerLength > longestHead) throw malformed(`the trailer is longer than ${longestHead} bytes`);
    if (line === "\r\n") this.#part = "ended";
    else fieldsOf(line, 0, line.length);
  }
}

/** The fields between these places, names in small letters. */
function fieldsOf(text: string, start: number, end: number): readonly string[] {
  const fields: string[] = [];
  fieldLine.lastIndex = start;
  while (fieldLine.lastIndex < end) {
    const match = fieldLine.exec(text);
    if (match === null) throw malformed("a header is none");
    const [, name = "", value = ""] = match;
    fields.push(name.toLowerCase(), withoutBlanks(value));
  }
  return fields;
}

/** A field's value, of several fields one after the other; undefined if there is none. */
export function fieldOf(fields: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let at = 0; at < fields.length; at += 2) {
    if (fields[at] !== name) continue;
    const next = fields[at + 1] ?? "";
    value = value === undefined ? next : `${value}, ${next}`;
  }
  return value;
}

/** Without blanks and tabs around it, and with nothing else lost, as `trim` would have it. */
function withoutBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** Refuses the beginning of a head that cannot become one, so that nobody waits for its end. */
function refuseEarly(text: string, before: number): void {
  if (before < headStart.length && !headStart.startsWith(text.slice(0, headStart.length)))
    throw malformed("no status line");
  for (let at = text.indexOf("\n", before); at !== -1; at = text.indexOf("\n", at + 1)) {
    if (text.charCodeAt(at - 1) !== cr) throw malformed("a line of the head ends without a carriage return");
  }
}

function malformed(what: string): Error {
  return Object.assign(new Error(`The answer does not keep to HTTP/1.1: ${what}`), { code: "HPE_INVALID" });
}
