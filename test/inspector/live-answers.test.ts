import { expect, test } from "vitest";
import { type Given, LiveAnswers } from "../../src/inspector/feed/live-answers.ts";
import type { LivePart } from "../../src/runtime/index.ts";

const said = {
  agentId: "a",
  agentName: "desk",
  parentAgentId: null,
  rootAgentId: "a",
  sessionId: null,
  turnId: "a#1",
  step: 1,
  attempt: 1,
  at: 0,
  cursor: "1.1.0",
  seq: 5,
} as const;
const piece = (index: number, offset: number, text: string): LivePart => ({
  kind: "call",
  ...said,
  index,
  callId: `a#1:1:${index}`,
  name: "look",
  offset,
  text,
});
const lackedBy = (answers: LiveAnswers, given: Given) =>
  [...answers.lackedBy(given, 1)].map((event) => {
    if (event.type === "text.snapshot") return [event.type, event.text, event.calls?.map(({ text }) => text)];
    return event.type === "call.delta" ? [event.type, event.index, event.offset, event.text] : [event.type];
  });

test("a reader gets the calls of an answer, then only what is new of each", () => {
  const answers = new LiveAnswers();
  const given: Given = new Map();
  expect(answers.take(piece(0, 0, ""))).toBe(true);
  expect(answers.take(piece(0, 0, '{"a"'))).toBe(true);
  expect(lackedBy(answers, given)).toEqual([["text.snapshot", "", ['{"a"']]]);
  answers.take(piece(0, 4, ":1}"));
  answers.take(piece(1, 0, ""));
  expect(lackedBy(answers, given)).toEqual([
    ["call.delta", 0, 4, ":1}"],
    ["call.delta", 1, 0, ""],
  ]);
  expect(lackedBy(answers, given)).toEqual([]);
  // A reader that comes later gets all of it at once.
  expect(lackedBy(answers, new Map())).toEqual([["text.snapshot", "", ['{"a":1}', ""]]]);
});

test("a missing piece of a call asks for the whole answer, which replaces it", () => {
  const answers = new LiveAnswers();
  answers.take(piece(0, 0, "{"));
  expect(answers.take(piece(0, 5, "}"))).toBe(false);
  expect(lackedBy(answers, new Map())).toEqual([]);
  const calls = [{ index: 0, callId: "a#1:1:0", name: "look", text: '{"a":1}' }];
  expect(answers.take({ kind: "whole", ...said, text: "", reasoning: "", calls })).toBe(true);
  expect(lackedBy(answers, new Map())).toEqual([["text.snapshot", "", ['{"a":1}']]]);
});

test("calls above the limit are left out, and the rest of the answer goes on", () => {
  const answers = new LiveAnswers();
  for (let index = 0; index < 200; index += 1) {
    expect(answers.take(piece(index, 0, ""))).toBe(true);
    expect(answers.take(piece(index, 0, "{}"))).toBe(true);
    expect(answers.take(piece(index, 2, " "))).toBe(true);
  }
  expect(lackedBy(answers, new Map())[0]?.[2]).toHaveLength(100);
});
