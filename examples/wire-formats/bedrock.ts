// Converse of Amazon Bedrock: a binary event stream of AWS, whose frames have headers, a JSON payload and checksums.
import { crc32 } from "node:zlib";
import { halves, unusableCount, wireUsage, type WireFormat } from "./wire-format.ts";

const stopReasons = {
  stop: "end_turn",
  length: "max_tokens",
  filter: "content_filtered",
  refusal: "guardrail_intervened",
} as const;
const exceptions: Readonly<Record<number, string>> = {
  400: "ValidationException",
  401: "UnrecognizedClientException",
  403: "UnrecognizedClientException",
  429: "ThrottlingException",
  500: "InternalServerException",
  503: "ServiceUnavailableException",
};

export const bedrockFormat: WireFormat = {
  contentType: "application/vnd.amazon.eventstream",
  ends: ["stop", "length", "filter", "refusal"],
  events: ({ thought, text, calls = [], end = "stop", usage, error, unknown }) => {
    const frames = [event("messageStart", { role: "assistant" })];
    let contentBlockIndex = 0;
    const block = (start: object | undefined, ...deltas: readonly object[]): void => {
      if (start !== undefined) frames.push(event("contentBlockStart", { start, contentBlockIndex }));
      for (const delta of deltas) frames.push(event("contentBlockDelta", { delta, contentBlockIndex }));
      frames.push(event("contentBlockStop", { contentBlockIndex }));
      contentBlockIndex += 1;
    };
    if (thought !== undefined) {
      block(undefined, ...halves(thought).map((piece) => ({ reasoningContent: { text: piece } })), {
        reasoningContent: { signature: `signature of ${thought}` },
      });
    }
    if (text !== undefined) block(undefined, ...halves(text).map((piece) => ({ text: piece })));
    for (const { id, name, arguments: args } of calls) {
      const pieces = halves(JSON.stringify(args));
      block({ toolUse: { toolUseId: id, name } }, ...pieces.map((input) => ({ toolUse: { input } })));
    }
    if (unknown) frames.push(event("noteOfNextYear", { note: "new" }));
    if (error !== undefined) return [...frames, exception("serviceUnavailableException", { message: error })];
    const stopReason = end === "stop" && calls.length > 0 ? "tool_use" : stopReasons[end];
    frames.push(event("messageStop", { stopReason }));
    if (usage !== "none") frames.push(event("metadata", { usage: counts(usage), metrics: { latencyMs: 1 } }));
    return frames;
  },
  refusal: ({ status, message, type = exceptions[status] ?? "ValidationException" }) => ({
    body: { message },
    headers: { "x-amzn-errortype": type, "x-amzn-requestid": "req_1" },
  }),
};

function counts(usage: "unusable" | undefined): object {
  if (usage === "unusable") return { inputTokens: unusableCount.huge, outputTokens: unusableCount.negative };
  return {
    inputTokens: wireUsage.input - wireUsage.cached,
    cacheReadInputTokens: wireUsage.cached,
    outputTokens: wireUsage.output,
    totalTokens: wireUsage.input + wireUsage.output,
  };
}

function event(type: string, payload: object): Uint8Array {
  // The padding `p` hides the length of a text.
  return frame({ ":event-type": type, ":message-type": "event" }, { ...payload, p: "abcd" });
}

function exception(type: string, payload: object): Uint8Array {
  return frame({ ":exception-type": type, ":message-type": "exception" }, payload);
}

/** Lengths of the whole frame and of its headers, the checksum of both, headers, payload, and the checksum of everything. */
function frame(names: Readonly<Record<string, string>>, payload: object): Uint8Array {
  const headers = Buffer.concat(
    Object.entries({ ...names, ":content-type": "application/json" }).map(([name, value]) => header(name, value)),
  );
  const body = Buffer.from(JSON.stringify(payload));
  const whole = Buffer.alloc(16 + headers.length + body.length);
  whole.writeUInt32BE(whole.length, 0);
  whole.writeUInt32BE(headers.length, 4);
  whole.writeUInt32BE(crc32(whole.subarray(0, 8)), 8);
  headers.copy(whole, 12);
  body.copy(whole, 12 + headers.length);
  whole.writeUInt32BE(crc32(whole.subarray(0, -4)), whole.length - 4);
  return whole;
}

/** Length and name, the type of a text (7), length and value. */
function header(name: string, value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(Buffer.byteLength(value));
  return Buffer.concat([
    Buffer.from([Buffer.byteLength(name)]),
    Buffer.from(name),
    Buffer.from([7]),
    length,
    Buffer.from(value),
  ]);
}
