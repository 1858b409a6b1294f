// What the wire formats in this folder have in common. Each file writes answers as one provider documents them, so that examples and
// tests can stand in for the provider's server.

/** An answer of a model in general terms. */
export interface WireReply {
  readonly thought?: string;
  readonly text?: string;
  readonly calls?: readonly WireCall[];
  /** Default `stop`. `refusal`: the model declines to answer, and `text` has its words. */
  readonly end?: WireEnd;
  /** Default: 100 input tokens, 40 of them cached, and 30 output tokens, 10 of them for the thought. `unusable`: impossible counts. */
  readonly usage?: "none" | "unusable";
  /** The message of an error inside the stream, after the text and instead of the end. */
  readonly error?: string;
  /** Adds an event and fields that the format does not have yet. */
  readonly unknown?: true;
  /** The name of a tool that the provider has executed itself. */
  readonly executed?: string;
}

export type WireEnd = "stop" | "length" | "filter" | "refusal";

export interface WireCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: object;
}

/** A refusal with an HTTP status. */
export interface WireRefusal {
  readonly status: number;
  readonly message: string;
  /** The provider's name of the error. */
  readonly type?: string;
}

/** How one provider writes its answers. */
export interface WireFormat {
  readonly contentType: string;
  /** Endings that the format has beside `stop`. */
  readonly ends: readonly WireEnd[];
  /** The events of a streamed answer, in order. */
  readonly events: (reply: WireReply) => readonly (string | Uint8Array)[];
  readonly refusal: (refusal: WireRefusal) => { readonly body: object; readonly headers?: Record<string, string> };
}

/** The counts that an answer reports. */
export const wireUsage = { input: 100, cached: 40, output: 30, reasoning: 10 } as const;
export const unusableCount = { negative: -5, huge: 10 ** 15 } as const;

/** One server-sent event. */
export function serverEvent(data: object | string, name?: string): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${text}\n\n`;
}

/** A text in two pieces; `[]` for none. */
export function halves(text: string | undefined): readonly string[] {
  if (text === undefined) return [];
  const half = Math.ceil(text.length / 2);
  return [text.slice(0, half), text.slice(half)];
}
