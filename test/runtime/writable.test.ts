import { expect, it } from "vitest";
import { InvariantError } from "../../src/errors/index.ts";
import { assertWritable } from "../../src/runtime/agent/writable.ts";
import type { FactBody, Message } from "../../src/state/index.ts";

/** As an effect hands it in that has forgotten to look. */
function body(entry: object): FactBody {
  return entry as FactBody;
}

const deep = JSON.parse(`${"[".repeat(5_000)}${"]".repeat(5_000)}`) as unknown;
const turnId = "a#1";
const message = { id: "m", role: "user", createdAt: 1, content: "x", origin: "user" } as const;

it.each<[string, object]>([
  ["instructions that are no text", { type: "instructions.resolved", turnId, text: undefined }],
  ["a warning without a text", { type: "warning", turnId, code: 5, message: "x" }],
  [
    "an artifact without a name",
    { type: "artifact.saved", turnId, step: 1, artifactId: "a", contentType: "b", size: 1 },
  ],
  [
    "an output that is nested too deeply",
    { type: "output.checked", turnId, step: 1, messageId: "m", valid: true, value: deep },
  ],
  ["a negative usage", { type: "model.responded", model: "m", calls: [], usage: { inputTokens: -1, outputTokens: 1 } }],
])("%s fails in place of being written", (_what, entry) => {
  expect(() => assertWritable(body(entry))).toThrow(InvariantError);
  expect(() => assertWritable(body(entry))).toThrow(
    /could not be read again once it was written: .*; nothing was written/,
  );
});

it("so does a message without a content, and a refund", () => {
  const warning = body({ type: "hooks.settled", turnId, step: 1, phase: "end" });
  const empty = { ...message, content: undefined } as unknown as Message;
  expect(() => assertWritable(warning, { messages: [empty] })).toThrow('message the text "m" could not be read again');
  const reservation = { accountId: "a", tokens: 5, costMicros: 0, outputTokens: 5, model: "m" };
  const settlement = { reservation, tokens: -2_000, costMicros: 0, usage: null, unconfirmed: false };
  expect(() => assertWritable(warning, { moves: [{ type: "settle", settlement }] })).toThrow(
    "cannot settle a call at -2000 tokens; nothing was settled",
  );
  expect(() => assertWritable(warning, { messages: [message] })).not.toThrow();
});
