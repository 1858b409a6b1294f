import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type Entry, entrySchema, type Message, messageSchema } from "../../src/state/index.ts";
import { textOfEntries, textOfMessages, wholeEntries, wholeMessages } from "../../src/stores/rules/short-forms.ts";
import { arbitraryOf } from "../state/arbitrary-of.ts";
import { amount } from "../support/full.ts";

const turnId = "desk#1";
const callId = "desk#1:1:0";
const accountId = `turn:${turnId}`;
const of = (seq: number): { turnId: string; step: number; seq: number; at: number; epoch: number } => ({
  turnId,
  step: 1,
  seq,
  at: 1_700_000_000_000,
  epoch: 2,
});
const reservation = { accountId, model: "m", tokens: 500, costMicros: 0, outputTokens: 400, isBound: true };
const usage = { inputTokens: 40, outputTokens: 20 };
const round: readonly Entry[] = [
  {
    type: "model.responded",
    ...of(5),
    attempt: 1,
    model: "m",
    messageId: "desk#1:1",
    hasText: false,
    calls: [{ callId, name: "lookup" }],
    usage,
    costMicros: null,
    finishReason: "tool_calls",
    durationMs: 7,
    settlement: { reservation, tokens: 60, costMicros: 0, usage, unconfirmed: false },
  },
  {
    type: "tool.started",
    ...of(6),
    callId,
    name: "lookup",
    attempt: 1,
    effect: "none",
    idempotencyKey: callId,
    accountId,
    arguments: { key: "a" },
  },
  {
    type: "tool.settled",
    ...of(7),
    callId,
    name: "lookup",
    outcome: "success",
    messageId: callId,
    durationMs: 0,
    error: null,
    artifactId: null,
  },
  {
    type: "model.requested",
    ...of(8),
    step: 2,
    attempt: 1,
    model: "m",
    promptHash: "p",
    messageId: "desk#1:2",
    price: null,
    ask: {
      key: "desk#1:2",
      accountId,
      agentId: "desk",
      promptTokens: 100,
      promptBound: 120,
      outputTokens: 400,
      minimumOutputTokens: 256,
      price: null,
      opensStep: true,
      model: "m",
    },
    reservation,
  },
];
const metadata = { step_id: "desk#1:1", execution_id: turnId, agent_id: "desk", is_trace: true };
const messages: readonly Message[] = [
  {
    role: "assistant",
    id: "desk#1:1",
    createdAt: 1,
    content: "",
    origin: "model",
    metadata,
    toolCalls: [{ callId, providerId: "call_0", name: "lookup", arguments: '{"key":"a"}' }],
  },
  { role: "tool", id: callId, createdAt: 1, content: "42", origin: "tool", metadata, callId, providerId: "call_0" },
];

// What is stored is read by the place of each value: a change of these texts is a new layout of the file.
const storedRound =
  '[["model.responded",30687,"desk#1",1,1700000000000,2,5,"m","desk#1:1",false,[[3,"desk#1:1:0","lookup"]],[3,40,20],' +
  '"tool_calls",7,[11,[26,500,400,true],60,[3,40,20]]],["tool.started",2400,"desk#1:1:0","lookup","none",{"key":"a"}],' +
  '["tool.settled",0],["model.requested",3522,2,"m","p","desk#1:2",[60,"desk",100,120,400],[18,500,true]]]';
const storedMessages =
  '[["assistant",55,"desk#1:1",1,"",[8,true],[[15,"desk#1:1:0","call_0","lookup","{\\"key\\":\\"a\\"}"]]],' +
  '["tool",85,"desk#1:1:0","42",[8,true],"call_0"]]';

test("a round of a turn is stored without names and without what follows from the rest", () => {
  expect(textOfEntries(round)).toBe(storedRound);
  expect(wholeEntries(JSON.parse(storedRound))).toEqual(round);
  expect(textOfMessages(messages)).toBe(storedMessages);
  expect(wholeMessages(JSON.parse(storedMessages))).toEqual(messages);
});

/** Follows the one before as entries of one commit do. */
function joined(entries: readonly Entry[]): Entry[] {
  const before: Entry[] = [];
  for (const entry of entries) {
    const last = before.at(-1);
    const shared = last && "turnId" in last && "turnId" in entry ? { turnId: last.turnId } : {};
    before.push(last ? ({ ...entry, ...shared, seq: last.seq + 1, at: last.at, epoch: last.epoch } as Entry) : entry);
  }
  return before;
}

test("every row comes back as it was", () => {
  const anyEntries = fc.array(arbitraryOf(entrySchema) as fc.Arbitrary<Entry>, { minLength: 1, maxLength: 5 });
  const anyMessages = fc.array(arbitraryOf(messageSchema) as fc.Arbitrary<Message>, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(anyEntries, anyMessages, (entries, said) => {
      for (const row of [entries, joined(entries), joined([...round, ...entries])]) {
        expect(wholeEntries(JSON.parse(textOfEntries(row)))).toEqual(JSON.parse(JSON.stringify(row)));
      }
      const row = [...messages, ...said];
      expect(wholeMessages(JSON.parse(textOfMessages(row)))).toEqual(JSON.parse(JSON.stringify(row)));
    }),
    { numRuns: amount(1_000, 40) },
  );
});

const changes = [null, 0, 1, 300, "", "x", true, {}, { key: 1 }, undefined];

test("a field of a round that is missing, unusual or unknown comes back too", () => {
  for (const [place, entry] of round.entries()) {
    for (const [name, value] of [...Object.entries(entry), ["unknown", 1] as const]) {
      const nested = typeof value === "object" && value !== null && !Array.isArray(value) ? Object.keys(value) : [];
      const changed = changes.flatMap((change) => [
        { ...entry, [name]: change },
        ...[...nested, "unknown"].map((inner) => ({ ...entry, [name]: { ...(value as object), [inner]: change } })),
      ]);
      for (const one of changed) {
        if (name === "type") continue;
        const row = round.toSpliced(place, 1, one as Entry);
        expect(wholeEntries(JSON.parse(textOfEntries(row)))).toEqual(JSON.parse(JSON.stringify(row)));
      }
    }
  }
});

test.each([
  ["no number", '[["tool.settled"]]'],
  ["a text for it", '[["tool.settled","0"]]'],
  ["a value too few", '[["tool.started",2400,"desk#1:1:0","lookup","none"]]'],
  ["a value too many", '[["tool.settled",0,1]]'],
  ["another kind", '[["sudo",0]]'],
  ["nothing before it to follow from", '[["tool.settled",0]]'],
  ["a text", '"x"'],
])("a damaged list is no entry: %s", (_what, text) => {
  expect(entrySchema.array().safeParse(wholeEntries(JSON.parse(text))).success).toBe(false);
});
