import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { AnswerAccumulator } from "./accumulator.ts";
import { answerError } from "./call-failure.ts";
import type { ModelDelta } from "./language-model.ts";

/** An answer of which the head has come, and the body is still to be read. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** A header's value, its name in small letters; empty if there is none. */
  header(name: string): string;
  /**
   * Hands over the body as UTF-8 text, in pieces as they arrive. To be called once. Resolves at a proper end; rejects with the
   * reason of a cut, with a `TypeError` when the connection broke, and with what `onText` threw, which ends the connection.
   */
  eachText(onText: (text: string) => void): Promise<void>;
}

interface AnswerReading {
  readonly onDelta: ((delta: ModelDelta) => void) | undefined;
  /** Called for each piece of the body, comments included. */
  readonly onBytes: () => void;
  /** Called when the last event has come, before the body ends. */
  readonly onLastEvent: () => void;
}

/** Whether the answer is an event stream. Unless the server names it JSON, it is taken for what was requested. */
export function isEventStream(answer: HttpAnswer, wasRequested: boolean): boolean {
  const type = answer.header("content-type");
  return type.includes("event-stream") || (wasRequested && !type.includes("json"));
}

/**
 * Reads one JSON text. Throws `SyntaxError` for broken JSON, `ModelError` for an error in it, and errors of the
 * connection.
 */
export async function readWhole(
  answer: HttpAnswer,
  accumulator: AnswerAccumulator,
  reading: AnswerReading,
): Promise<void> {
  const text = await wholeText(answer, reading.onBytes);
  accumulator.add(JSON.parse(text), reading.onDelta);
}

/**
 * Reads an event stream. Throws `SyntaxError` for broken JSON, `ModelError` for an error event, and errors of the
 * connection.
 */
export async function readEvents(
  answer: HttpAnswer,
  accumulator: AnswerAccumulator,
  reading: AnswerReading,
): Promise<void> {
  const onEvent = ({ event, data }: EventSourceMessage): void => {
    if (data === "[DONE]") {
      reading.onLastEvent();
      return;
    }
    const chunk = JSON.parse(data) as unknown;
    accumulator.add(chunk, reading.onDelta);
    if (event === "error") throw answerError(chunk);
  };
  const parser = createParser({ onEvent });
  await answer.eachText((piece) => {
    reading.onBytes();
    parser.feed(piece);
  });
  // The last event may come without its blank line.
  parser.feed("\n\n");
}

/** A standard response, as an answer. */
export class WebAnswer implements HttpAnswer {
  readonly #response: Response;

  constructor(response: Response) {
    this.#response = response;
  }

  get status(): number {
    return this.#response.status;
  }

  get headers(): Headers {
    return this.#response.headers;
  }

  header(name: string): string {
    return this.headers.get(name) ?? "";
  }

  async eachText(onText: (text: string) => void): Promise<void> {
    const body = this.#response.body as ReadableStream<Uint8Array> | null;
    if (body === null) return;
    const reader = body.getReader();
    const decoder = new TextDecoder();
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        onText(decoder.decode(next.value, { stream: true }));
      }
      onText(decoder.decode());
    } catch (error) {
      // The rest of the body is not needed, and it does not matter if cancelling fails.
      void reader.cancel().catch(() => undefined);
      throw error;
    }
  }
}

/** The whole body of an answer; `onBytes` is called for each piece. */
export async function wholeText(answer: HttpAnswer, onBytes?: () => void): Promise<string> {
  let text = "";
  await answer.eachText((piece) => {
    onBytes?.();
    text += piece;
  });
  return text;
}
