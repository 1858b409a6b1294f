import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { AnswerAccumulator } from "./accumulator.ts";
import { answerError } from "./call-failure.ts";
import { HttpResponse } from "./http.ts";
import type { ModelDelta } from "./language-model.ts";

interface AnswerReading {
  readonly onDelta: ((delta: ModelDelta) => void) | undefined;
  /** Called for each piece of the body, comments included. */
  readonly onBytes: () => void;
  /** Called when the last event has come, before the body ends. */
  readonly onLastEvent: () => void;
}

/** Whether the answer is an event stream. Unless the server names it JSON, it is taken for what was requested. */
export function isEventStream(response: Response, wasRequested: boolean): boolean {
  const type = response.headers.get("content-type") ?? "";
  return type.includes("event-stream") || (wasRequested && !type.includes("json"));
}

/**
 * Reads one JSON text. Throws `SyntaxError` for broken JSON, `ModelError` for an error in it, and errors of the
 * connection.
 */
export async function readWhole(
  response: Response,
  accumulator: AnswerAccumulator,
  reading: AnswerReading,
): Promise<void> {
  let text = "";
  await eachText(response, (piece) => {
    reading.onBytes();
    text += piece;
  });
  accumulator.add(JSON.parse(text), reading.onDelta);
}

/**
 * Reads an event stream. Throws `SyntaxError` for broken JSON, `ModelError` for an error event, and errors of the
 * connection.
 */
export async function readEvents(
  response: Response,
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
  await eachText(response, (piece) => {
    reading.onBytes();
    parser.feed(piece);
  });
  // The last event may come without its blank line.
  parser.feed("\n\n");
}

async function eachText(response: Response, onText: (text: string) => void): Promise<void> {
  if (response instanceof HttpResponse) return response.eachText(onText);
  if (response.body === null) return;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
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
