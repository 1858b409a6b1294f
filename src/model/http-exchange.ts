/*
 * One request and its answer: what the connection tells becomes text for whoever reads it. A body that is packed is unpacked.
 */
import type { Transform } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import type * as zlibModule from "node:zlib";
import type { LineUser } from "./http-line.ts";
import { fieldOf } from "./http-reader.ts";
import type { HttpAnswer } from "./read-answer.ts";

interface ExchangeParts {
  /** Called when the head of the answer has come. */
  readonly begin: (exchange: Exchange) => void;
  readonly reject: (error: Error) => void;
}

/** One request and its answer, told by its connection as they go on. */
export class Exchange implements HttpAnswer, LineUser {
  status = 0;
  wasSent = false;
  readonly #parts: ExchangeParts;
  #way: { readonly end: (reason: Error) => void } | undefined;
  #fields: readonly string[] = [];
  /** What came before anybody read. */
  #early: Buffer[] = [];
  #reader: Reader | undefined;
  #isOver = false;
  #error: Error | undefined;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
  }

  get headers(): Headers {
    const headers = new Headers();
    for (let at = 0; at < this.#fields.length; at += 2)
      headers.append(this.#fields[at] ?? "", this.#fields[at + 1] ?? "");
    return headers;
  }

  header(name: string): string {
    return fieldOf(this.#fields, name) ?? "";
  }

  /** It has ended, well or not. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Ends the exchange and its connection; what waits for it is rejected with the reason. No effect when it is over. */
  cut(reason: Error): void {
    if (this.#isOver) return;
    this.#fail(reason);
    this.#way?.end(reason);
  }

  arrivedText(): string | undefined {
    if (!this.#isOver || this.#error !== undefined || this.header("content-encoding") !== "") return undefined;
    const [first, ...others] = this.#early.splice(0);
    if (first === undefined) return "";
    return withoutMark((others.length === 0 ? first : Buffer.concat([first, ...others])).toString());
  }

  async eachText(onText: (text: string) => void): Promise<void> {
    const decoder = new StringDecoder("utf8");
    let isFirst = true;
    const onBytes = (bytes: Buffer): void => {
      const decoded = decoder.write(bytes);
      const text = isFirst ? withoutMark(decoded) : decoded;
      if (decoded !== "") isFirst = false;
      if (text !== "") onText(text);
    };
    const codings = codingsOf(this.header("content-encoding"));
    if (codings.length === 0) await this.#eachBytes(onBytes);
    else await this.#eachUnpacked(codings, onBytes);
    const rest = decoder.end();
    if (rest !== "") onText(rest);
  }

  onWay(way: { readonly end: (reason: Error) => void }): void {
    this.#way = way;
  }

  onSent(): void {
    this.wasSent = true;
  }

  onHead(status: number, fields: readonly string[]): void {
    if (this.#isOver) return;
    this.status = status;
    this.#fields = fields;
    this.#parts.begin(this);
  }

  onBytes(bytes: Buffer): void {
    if (this.#isOver) return;
    // They are others as soon as this call is over.
    if (this.#reader === undefined) this.#early.push(Buffer.from(bytes));
    else this.#hand(bytes, this.#reader);
  }

  onEnd(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#reader?.resolve();
  }

  onError(told?: Error): void {
    if (this.#isOver) return;
    const hasBegun = this.status !== 0;
    const cause = told ?? closedError(hasBegun ? "aborted" : "socket hang up");
    const words = hasBegun
      ? "terminated: the connection was cut before the answer had ended"
      : `fetch failed: ${cause.message}`;
    this.#fail(Object.assign(new TypeError(words, { cause }), { wasSent: this.wasSent }));
  }

  #eachBytes(onBytes: (bytes: Buffer) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const reader = { onBytes, resolve, reject };
      for (const bytes of this.#early.splice(0)) this.#hand(bytes, reader);
      if (this.#error !== undefined) reject(this.#error);
      else if (this.#isOver) resolve();
      else this.#reader = reader;
    });
  }

  /** Unpacks a body that the server has packed although it was asked not to. */
  async #eachUnpacked(codings: readonly Coding[], onBytes: (bytes: Buffer) => void): Promise<void> {
    const [zlib, { PassThrough, pipeline, Writable }] = await Promise.all([import("node:zlib"), import("node:stream")]);
    const packed = new PassThrough();
    const reader = new Writable({
      write: (bytes: Buffer, _encoding, done) => {
        try {
          onBytes(bytes);
          done();
        } catch (thrown) {
          done(thrown as Error);
        }
      },
    });
    const stages = codings.map((coding) => unpackers[coding](zlib));
    const unpacked = new Promise<void>((resolve, reject) => {
      pipeline([packed, ...stages, reader], (error) => (error ? reject(error) : resolve()));
    });
    const onPacked = (bytes: Buffer): void => {
      packed.write(Buffer.from(bytes));
      if (packed.writableLength > MOST_PACKED) throw new Error("The answer comes faster than it can be unpacked");
    };
    this.#eachBytes(onPacked).then(
      () => packed.end(),
      (error: Error) => packed.destroy(error),
    );
    try {
      await unpacked;
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      this.cut(error);
      throw error;
    }
  }

  #hand(bytes: Buffer, reader: Reader): void {
    if (this.#error !== undefined) return;
    try {
      reader.onBytes(bytes);
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      reader.reject(error);
      this.#error = error;
      this.cut(error);
    }
  }

  #fail(error: Error): void {
    this.#isOver = true;
    this.#error = error;
    this.#early = [];
    this.#parts.reject(error);
    this.#reader?.reject(error);
  }
}

/** Most bytes that wait to be unpacked. */
const MOST_PACKED = 2 ** 26;

interface Reader {
  readonly onBytes: (bytes: Buffer) => void;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** That the server closed the connection, in the words of Node, which whoever reads the code of an error knows. */
function closedError(words: string): Error {
  return Object.assign(new Error(words), { code: "ECONNRESET" });
}

/** As browsers do, a body that ends early is unpacked as far as it goes. */
const unpackers = {
  gzip: (zlib: typeof zlibModule): Transform => zlib.createGunzip({ finishFlush: zlib.constants.Z_SYNC_FLUSH }),
  deflate: (zlib: typeof zlibModule): Transform => zlib.createInflate({ finishFlush: zlib.constants.Z_SYNC_FLUSH }),
  br: (zlib: typeof zlibModule): Transform =>
    zlib.createBrotliDecompress({ finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH }),
} as const;
type Coding = keyof typeof unpackers;

/** The codings to undo, the last one first. A body in a coding that is not known is read as it is. */
function codingsOf(header: string): readonly Coding[] {
  if (header === "") return [];
  const names = header.split(",").map((name) => name.trim().toLowerCase().replace("x-gzip", "gzip"));
  const codings = names.filter((name): name is Coding => Object.hasOwn(unpackers, name)).toReversed();
  return names.every((name) => name === "identity" || Object.hasOwn(unpackers, name)) ? codings : [];
}

/** Without the byte order mark that a text may begin with, as `fetch` reads it. */
function withoutMark(text: string): string {
  return text.charCodeAt(0) === 0xfe_ff ? text.slice(1) : text;
}
