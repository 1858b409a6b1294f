import { createParser, type EventSourceMessage } from "eventsource-parser";
import { ModelError } from "../errors/index.ts";
import { answerError } from "./call-failure.ts";
import type { ModelDelta } from "./language-model.ts";
import { wireArray, wireJson, wireObject, wireText } from "./wire-values.ts";

/** An answer that is assembled from the parsed events of a stream, or from one JSON text. */
export interface ReceivedAnswer {
  /** Whether any text, reasoning or call has arrived. */
  readonly hasBegun: boolean;
  /** Whether the server works without sending anything, for instance while the model thinks. Default: false. */
  readonly isWorking?: boolean;
  /** Whether the last event has arrived. */
  readonly isEnded: boolean;
  /** Adds an event or the whole answer. Throws `ModelError` if the server reports an error in it. */
  add(value: unknown, onDelta?: (delta: ModelDelta) => void): void;
  /** Adds the text of an event that has nothing else. Absent if no such event can be told apart without parsing it. */
  addText?(text: string, onDelta?: (delta: ModelDelta) => void): void;
  /** Records that the server has ended the answer. */
  end(onDelta?: (delta: ModelDelta) => void): void;
}

interface AnswerReading {
  /** Stops the reading and cancels the body. */
  readonly signal: AbortSignal;
  /** Whether to read the body as a stream if neither its beginning nor its content type shows the form. */
  readonly asksForStream: boolean;
  readonly onDelta: ((delta: ModelDelta) => void) | undefined;
  /** Called once the form of the body is known, before any of it is added to the accumulator. */
  readonly onForm: (isStream: boolean) => void;
  /** Called for each piece of the body after the answer has begun, comments included. */
  readonly onProgress: () => void;
  /** Called in place of `onProgress` while the server works without sending anything. */
  readonly onWork: () => void;
  /** Called after the last event, before the body ends. */
  readonly onLastEvent: () => void;
}

/** Adds the body of one answer to an accumulator. */
interface BodyReader {
  add(text: string): void;
  end(): void;
}

/** The JSON text of an answer is an object, or an array in which some servers put an error. */
const jsonStart = /^\s*[{[]/;
const eventStart = /^\s*(?:data|event|id|retry)?:/;
/** If the form is still unclear after this many characters, the content type decides. */
const LONGEST_START = 64;

/**
 * Reads the body of an answer: a JSON text or an event stream. The form follows from its beginning, else from its content type, else from
 * the request. Throws `SyntaxError` for broken JSON, `ModelError` for an error in the answer, and errors of the connection.
 */
export async function readAnswer(answer: Response, accumulator: ReceivedAnswer, reading: AnswerReading): Promise<void> {
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
  readonly #accumulator: ReceivedAnswer;
  readonly #reading: AnswerReading;
  #text = "";

  constructor(accumulator: ReceivedAnswer, reading: AnswerReading) {
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

/** Reads an event stream. Text that arrives together is reported as one piece. */
class EventReader implements BodyReader {
  readonly #accumulator: ReceivedAnswer;
  readonly #reading: AnswerReading;
  readonly #plain: PlainChunks | undefined;
  readonly #pieces: GatheredPieces | undefined;
  readonly #parser = createParser({
    onEvent: (event) => this.#take(event),
    maxBufferSize: MOST_OF_EVENT,
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") throw tooLong(`an event of more than ${MOST_OF_EVENT} characters`);
    },
  });
  #length = 0;

  constructor(accumulator: ReceivedAnswer, reading: AnswerReading) {
    this.#accumulator = accumulator;
    this.#reading = reading;
    this.#plain = accumulator.addText && new PlainChunks();
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
    if (!this.#accumulator.hasBegun) return;
    if (this.#accumulator.isWorking === true) this.#reading.onWork();
    else this.#reading.onProgress();
  }

  end(): void {
    // The last event may lack its final blank line.
    this.add("\n\n");
  }

  #take({ event, data }: EventSourceMessage): void {
    const text = event === undefined ? this.#plain?.textIn(data) : undefined;
    if (text !== undefined) {
      this.#accumulator.addText?.(text, this.#pieces?.add);
      return;
    }
    if (data === "[DONE]") this.#accumulator.end(this.#pieces?.add);
    else {
      const chunk = JSON.parse(data) as unknown;
      this.#accumulator.add(chunk, this.#pieces?.add);
      if (event === "error") throw answerError(chunk);
      this.#plain?.learn(data, chunk);
    }
    if (this.#accumulator.isEnded) this.#reading.onLastEvent();
  }
}

/** Joins consecutive pieces of one kind, for arguments those of one call, and reports them as one. */
class GatheredPieces {
  readonly #onDelta: (delta: ModelDelta) => void;
  #pending: Exclude<ModelDelta, { type: "tool-call" }> | undefined;

  constructor(onDelta: (delta: ModelDelta) => void) {
    this.#onDelta = onDelta;
  }

  readonly add = (delta: ModelDelta): void => {
    if (delta.type === "tool-call") {
      this.tell();
      this.#onDelta(delta);
      return;
    }
    const before = this.#pending;
    const continues = before?.type === delta.type && indexOf(before) === indexOf(delta);
    if (!continues) this.tell();
    this.#pending = continues ? { ...delta, text: before.text + delta.text } : delta;
  };

  tell(): void {
    const delta = this.#pending;
    this.#pending = undefined;
    if (delta !== undefined && delta.text !== "") this.#onDelta(delta);
  }
}

function indexOf(delta: ModelDelta): number | undefined {
  return delta.type === "tool-arguments" ? delta.index : undefined;
}

/** Characters that end a JSON string or begin an escape in it. */
const irregular = /["\\\p{Cc}]/u;
const opening = /"content"\s*:\s*"/;
/** Some servers hide the length of texts with a field of random letters at the end of each chunk. */
const padding = /^(.*"obfuscation"\s*:\s*")[^"\\]*("\s*\})$/s;

/**
 * A fast path for chunks that add only text. Nearly all of them differ only in that text, so after parsing one, the texts of chunks with
 * the same characters around it are sliced out. All other chunks are parsed.
 */
class PlainChunks {
  #before = "";
  #after = "";
  /** The characters after the padding; `undefined` if chunks have no padding. */
  #end: string | undefined;
  /** How many more chunks may become the pattern. */
  #tries = 8;

  /** The text of a chunk that matches the pattern; `undefined` if the chunk has to be parsed. */
  textIn(data: string): string | undefined {
    const start = this.#before.length;
    if (start === 0 || !data.startsWith(this.#before)) return undefined;
    const quote = data.indexOf('"', start);
    if (quote < 0 || !data.startsWith(this.#after, quote) || !this.#ends(data, quote + this.#after.length))
      return undefined;
    const text = data.slice(start, quote);
    return irregular.test(text) ? undefined : text;
  }

  /** Uses a parsed chunk as the pattern for later ones, if it adds only text. */
  learn(data: string, chunk: unknown): void {
    const text = plainText(chunk);
    if (text === "" || irregular.test(text) || this.#tries === 0) return;
    this.#tries -= 1;
    const match = opening.exec(data);
    if (!match) return;
    const start = match.index + match[0].length;
    const before = data.slice(0, start);
    const after = data.slice(start + text.length);
    // Another field may also be called `content`.
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

/** The text of a chunk that adds only text; "" for any other chunk. */
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
 * Passes the body to `onText` as UTF-8 text, in pieces as they arrive. Rejects with the signal's reason, with the connection's error, and
 * with errors of `onText`; then cancels the rest of the body.
 */
async function eachText(answer: Response, onText: (text: string) => void, signal: AbortSignal): Promise<void> {
  const body = answer.body as ReadableStream<Uint8Array> | null;
  if (body === null) return;
  const reader = body.getReader();
  // A user's `fetch` may ignore the signal; cancelling ends a pending read.
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

/**
 * The beginning of a body whose rest is not needed: the text received until it ends, breaks, is too long or takes longer than
 * `longestMs`.
 */
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

/** Most characters of one JSON text, of a stream including its framing, and of one event, all decompressed. */
const MOST_OF_WHOLE = 2 ** 26;
const MOST_OF_STREAM = 2 ** 28;
const MOST_OF_EVENT = 2 ** 25;
/** Limits for the body of a refusal: characters, and milliseconds. */
const MOST_OF_ERROR = 2 ** 16;
export const LONGEST_REFUSAL_MS = 1_000;

function withinLimit(text: string): string {
  if (text.length > MOST_OF_WHOLE) throw tooLong(`more than ${MOST_OF_WHOLE} characters`);
  return text;
}

/** Not retryable: another attempt would cost as much and most likely fail again. */
function tooLong(what: string): ModelError {
  const outcome = { retryable: false, mayHaveBeenSent: true, details: { kind: "malformed" } };
  return new ModelError(`The model's answer is too long: it has ${what}.`, outcome);
}
