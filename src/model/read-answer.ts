import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { AnswerAccumulator } from "./accumulator.ts";
import { answerError } from "./call-failure.ts";
import { HttpResponse } from "./http.ts";
import type { ModelDelta } from "./language-model.ts";

export interface AnswerReading {
  readonly onDelta: ((delta: ModelDelta) => void) | undefined;
  /** Called for each piece of the body, comments included. */
  readonly onBytes: () => void;
  /** Called when the last event has come, before the body ends. */
  readonly onLastEvent: () => void;
}

/** Whether the answer is a stream of events. A server that names another type than JSON is taken at the request's word. */
export function isEventStream(response: Response, wasRequested: boolean): boolean {
  const type = response.headers.get("content-type") ?? "";
  return type.includes("event-stream") || (wasRequested && !type.includes("json"));
}

/** Reads one JSON text. Throws `SyntaxError` when it is broken, `ModelError` for an error in it, and what reading throws. */
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

/** Reads a stream of events. Throws `SyntaxError` for broken JSON, `ModelError` for an error event, and what reading throws. */
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
  // A last event without its blank line is an event all the same.
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
    // The rest of the body is of no use; that it cannot be dropped neither.
    void reader.cancel().catch(() => undefined);
    throw error;
  }
}
