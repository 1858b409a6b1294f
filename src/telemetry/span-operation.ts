import type { TraceHeaders } from "../base/index.ts";

/** Values that a span may carry. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** One call on a tracer, as a value: spans are named by keys, so that what events mean is a matter of plain data. */
export type SpanOperation =
  | {
      readonly type: "start";
      readonly key: string;
      /** Key of the span above; null: it has none. It may be one that nobody knows. */
      readonly parent: string | null;
      /** What takes the place of a span above that this process did not make itself. */
      readonly under?: TraceHeaders | undefined;
      readonly name: string;
      /** `client`: a call of another system. */
      readonly kind: "client" | "internal";
      /** Milliseconds since the epoch. */
      readonly at: number;
      readonly attributes: SpanAttributes;
    }
  | {
      readonly type: "note";
      readonly key: string;
      readonly name: string;
      readonly at: number;
      readonly attributes: SpanAttributes;
    }
  | {
      readonly type: "end";
      readonly key: string;
      readonly at: number;
      /** Takes the place of the first name. */
      readonly name?: string | undefined;
      readonly attributes: SpanAttributes;
      /** What it failed with; null: it did not. */
      readonly error: SpanError | null;
    };

export interface SpanError {
  /** One of few words: a code, never a text. */
  readonly type: string;
  /** The text; shown where contents are. */
  readonly message: string;
}
