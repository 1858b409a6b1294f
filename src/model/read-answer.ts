import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { AnswerAccumulator } from "./accumulator.ts";
import { ModelError } from "../errors/index.ts";
import { answerError } from "./call-failure.ts";
import type { ModelDelta } from "./language-model.ts";
import { wireArray, wireJson, wireObject, wireText } from "./openai-wire.ts";

interface AnswerReading {
  /** Ends the reading, and the body. */
  readonly signal: AbortSignal;
  /** What a body is taken for that shows no form and has no type that names one. */
  readonly asksForStream: boolean;
  readonly onDelta: ((delta: ModelDelta) => void) | undefined;
  /** Called before anything is read, once it is known whether the body is an event stream. */
  readonly onForm: (isStream: boolean) => void;
  /** Called for each piece of the body from the first piece of the answer on, comments included. */
  readonly onProgress: () => void;
  /** Called when the last event has come, before the body ends. */
  readonly onLastEvent: () => void;
}

/** Reads the body of one answer into an accumulator. */
interface BodyReader {
  add(text: string): void;
  end(): void;
}

/** The JSON text of an answer is an object, or the list in which some servers put an error. */
const jsonStart = /^\s*[{[]/;
const eventStart = /^\s*(?:data|event|id|retry)?:/;
/** A body that has shown no form within so many characters is taken for what its type names. */
const LONGEST_START = 64;

/**
 * Reads the body of an answer, a JSON text or an event stream. Its beginning decides which of the two it is, then its type, then what
 * was asked for. Throws `SyntaxError` for broken JSON, `ModelError` for an error in the answer, and errors of the connection.
 */
export async function readAnswer(
  answer: Response,
  accumulator: AnswerAccumulator,
  reading: AnswerReading,
): Promise<void> {
  const type = (answer.headers.get("content-type") ?? "").toLowerCase();
  const isNamedStream = type.includes("event-stream") || (reading.asksForStream && !type.includes("json"));
  let beginning = "";
  let reader: BodyReader | undefined;
  const open = (isStream: boolean): BodyReader => {
    reading.onForm(isStream);
    reader = isStream ? new EventReader(accumulator, reading) : new JsonReader(accumulator, reading);
    reader.add(beginning);
    return reader;
  };
  const add = (text: string): void => {
    if (reader !== undefined) return reader.add(text);
    beginning += text;
    if (jsonStart.test(beginning)) open(false);
    else if (eventStart.test(beginning)) open(true);
    else if (beginning.trim().length > LONGEST_START) open(isNamedStream);
  };
  await eachText(answer, add, reading.signal);
  (reader ?? open(isNamedStream)).end();
}

class JsonReader implements BodyReader {
  readonly #accumulator: AnswerAccumulator;
  readonly #reading: AnswerReading;
  #text = "";

  constructor(accumulator: AnswerAccumulator, reading: AnswerReading) {
    this.#accumulator = accumulator;
    this.#reading = reading;
  }

  add(text: string): void {
    this.#text = withinLimit(this.#text + text);
    this.#reading.onProgress();
  }

  end(): void {
    this.#accumulator.add(JSON.parse(this.#text), this.#reading.onDelta);
  }
}

/** Reads an event stream. Text that arrives together is told as one piece. */
class EventReader implements BodyReader {
  readonly #accumulator: AnswerAccumulator;
  readonly #reading: AnswerReading;
  readonly #plain = new PlainChunks();
  readonly #pieces: GatheredPieces | undefined;
  readonly #parser = createParser({
    onEvent: (event) => this.#take(event),
    maxBufferSize: MOST_OF_EVENT,
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") throw tooLong(`an event of more than ${MOST_OF_EVENT} characters`);
    },
  });
  #length = 0;

  constructor(accumulator: AnswerAccumulator, reading: AnswerReading) {
    this.#accumulator = accumulator;
    this.#reading = reading;
    this.#pieces = reading.onDelta && new GatheredPieces(reading.onDelta);
  }

  add(text: string): void {
    this.#length += text.length;
    if (this.#length > MOST_OF_STREAM) throw tooLong(`more than ${MOST_OF_STREAM} characters`);
    try {
      this.#parser.feed(text);
    } finally {
      this.#pieces?.tell();
    }
    if (this.#accumulator.hasBegun) this.#reading.onProgress();
  }

  end(): void {
    // The last event may come without its blank line.
    this.add("\n\n");
  }

  #take({ event, data }: EventSourceMessage): void {
    const text = event === undefined ? this.#plain.textIn(data) : undefined;
    if (text !== undefined) {
      this.#accumulator.addText(text, this.#pieces?.add);
      return;
    }
    if (data === "[DONE]") {
      this.#accumulator.end();
      this.#reading.onLastEvent();
      return;
    }
    const chunk = JSON.parse(data) as unknown;
    this.#accumulator.add(chunk, this.#pieces?.add);
    if (event === "error") throw answerError(chunk);
    this.#plain.learn(data, chunk);
  }
}

/** Tells pieces of one type that come one after the other as one piece. */
class GatheredPieces {
  readonly #onDelta: (delta: ModelDelta) => void;
  #type: ModelDelta["type"] = "text";
  #text = "";

  constructor(onDelta: (delta: ModelDelta) => void) {
    this.#onDelta = onDelta;
  }

  readonly add = ({ type, text }: ModelDelta): void => {
    if (type !== this.#type) this.tell();
    this.#type = type;
    this.#text += text;
  };

  tell(): void {
    const text = this.#text;
    this.#text = "";
    if (text !== "") this.#onDelta({ type: this.#type, text });
  }
}

/** What in a JSON text would end a string, or stand for something else in it. */
const irregular = /["\\\p{Cc}]/u;
const opening = /"content"\s*:\s*"/;
/** Some servers hide the lengths of texts by a field of random letters at the end of each chunk. */
const padding = /^(.*"obfuscation"\s*:\s*")[^"\\]*("\s*\})$/s;

/**
 * The chunks of an answer that add nothing but text. Nearly all differ only in that text, so once one was parsed, the texts of those
 * with the same characters around it are cut out. All others are parsed.
 */
class PlainChunks {
  #before = "";
  #after = "";
  /** What is behind the padding; undefined where chunks have none. */
  #end: string | undefined;
  /** How many chunks may still be taken as the pattern. */
  #tries = 8;

  /** The text of a chunk that is like the one that was learnt; `undefined` if the chunk has to be parsed. */
  textIn(data: string): string | undefined {
    const start = this.#before.length;
    if (start === 0 || !data.startsWith(this.#before)) return undefined;
    const quote = data.indexOf('"', start);
    if (quote < 0 || !data.startsWith(this.#after, quote) || !this.#ends(data, quote + this.#after.length))
      return undefined;
    const text = data.slice(start, quote);
    return irregular.test(text) ? undefined : text;
  }

  /** Takes a chunk that was parsed as the pattern of those to come, if it adds nothing but text. */
  learn(data: string, chunk: unknown): void {
    const text = plainText(chunk);
    if (text === "" || irregular.test(text) || this.#tries === 0) return;
    this.#tries -= 1;
    const match = opening.exec(data);
    if (!match) return;
    const start = match.index + match[0].length;
    const before = data.slice(0, start);
    const after = data.slice(start + text.length);
    // Another field may have the same name.
    if (!data.startsWith(text, start) || plainText(wireJson(`${before}${text}.${after}`)) !== `${text}.`) return;
    const [, padded, end] = padding.exec(after) ?? [];
    this.#before = before;
    this.#after = padded ?? after;
    this.#end = end;
  }

  #ends(data: string, at: number): boolean {
    if (this.#end === undefined) return at === data.length;
    const quote = data.indexOf('"', at);
    const isLast = quote + this.#end.length === data.length && data.endsWith(this.#end);
    return quote >= 0 && isLast && !irregular.test(data.slice(at, quote));
  }
}

/** The text of a chunk that adds nothing else; "" for any other chunk. */
function plainText(chunk: unknown): string {
  const [choice] = wireArray(wireObject(chunk)?.["choices"]);
  const { content, role: _role, ...others } = wireObject(wireObject(choice)?.["delta"]) ?? {};
  const isAlone = Object.values(others).every((value) => value === null || value === "" || isEmptyList(value));
  return isAlone ? wireText(content) : "";
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/**
 * Hands over the body as UTF-8 text, in pieces as they arrive. Rejects with the reason of the signal, with the connection's error, and with
 * what `onText` threw; then the rest of the body is cancelled.
 */
async function eachText(answer: Response, onText: (text: string) => void, signal: AbortSignal): Promise<void> {
  const body = answer.body as ReadableStream<Uint8Array> | null;
  if (body === null) return;
  const reader = body.getReader();
  // A `fetch` of the user's may not heed the signal. A read that waits is told the end.
  const cancel = (): void => void reader.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener("abort", cancel, { once: true });
  const decoder = new TextDecoder();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      onText(decoder.decode(next.value, { stream: true }));
    }
    signal.throwIfAborted();
    onText(decoder.decode());
  } catch (error) {
    cancel();
    throw error;
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

/** The beginning of a body of which the rest is not needed: what has come of it when it ends, breaks, is too long or takes longer than this. */
export async function beginningOf(answer: Response, longestMs: number): Promise<string> {
  const enough = new AbortController();
  const late = setTimeout(() => enough.abort(), longestMs);
  let text = "";
  try {
    await eachText(
      answer,
      (piece) => {
        text += piece;
        if (text.length > MOST_OF_ERROR) enough.abort();
      },
      enough.signal,
    );
  } catch (error) {
    if (text === "" && !enough.signal.aborted) return error instanceof Error ? error.message : String(error);
  } finally {
    clearTimeout(late);
  }
  return text;
}

/** Characters of one JSON text, of a stream with all that is around its pieces, and of one event in it, unpacked. */
const MOST_OF_WHOLE = 2 ** 26;
const MOST_OF_STREAM = 2 ** 28;
const MOST_OF_EVENT = 2 ** 25;
/** Of the body with which a server refuses a call: characters, and milliseconds for which it is read. */
const MOST_OF_ERROR = 2 ** 16;
export const LONGEST_REFUSAL_MS = 1_000;

function withinLimit(text: string): string {
  if (text.length > MOST_OF_WHOLE) throw tooLong(`more than ${MOST_OF_WHOLE} characters`);
  return text;
}

/** To ask again would cost as much, and most likely end in the same way. */
function tooLong(what: string): ModelError {
  const outcome = { retryable: false, mayHaveBeenSent: true, details: { kind: "malformed" } };
  return new ModelError(`The model's answer is too long to be read: it has ${what}.`, outcome);
}
