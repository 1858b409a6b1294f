import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isLegal, legalMessages } from "../../src/context/index.ts";
import type { Message } from "../../src/state/index.ts";
import { amount } from "../support/full.ts";
import { brokenConversation, wholeConversation } from "./arbitrary-histories.ts";
import { answer, hookMessage, idsOf, input, round, turn, wholeTurn } from "./messages.ts";

const t = turn(1);

describe("the fault of an illegal list", () => {
  const [asked, first, second] = round(t, 1, 2) as [Message, Message, Message];
  test.each([
    { messages: [asked, first], says: "message 2 is nothing, but the result of agent#1:1:1 was expected" },
    { messages: [asked, second, first], says: "message 1 is the result of agent#1:1:1, but the result of" },
    {
      messages: [asked, first, input(t), second],
      says: "message 2 is user, but the result of agent#1:1:1 was expected",
    },
    { messages: [input(t), first], says: "message 1 is the result of agent#1:1:0, which does not follow its call" },
    {
      messages: [asked, first, second, second],
      says: "message 3 is the result of agent#1:1:1, which does not follow its call",
    },
    { messages: [asked, { ...first, providerId: "x" }, second], says: "has another provider id than its call" },
  ])("$says", ({ messages, says }) => {
    expect(isLegal(messages as Message[])).toContain(says);
  });
});

describe("legalMessages", () => {
  test("messages between a call and its results are moved behind the results", () => {
    const [asked, first, second] = round(t, 1, 2) as [Message, Message, Message];
    const messages = [input(t), asked, hookMessage(t, 1), second, first, answer(t, 2)];
    expect(idsOf(legalMessages(messages))).toEqual(
      idsOf([input(t), asked, first, second, hookMessage(t, 1), answer(t, 2)]),
    );
  });

  test("a missing result is replaced by an error with the provider's id of its call", () => {
    const [asked, first] = round(t, 1, 2) as [Message, Message];
    expect(legalMessages([asked, first])[2]).toMatchObject({
      role: "tool",
      callId: "agent#1:1:1",
      providerId: "provider-agent#1:1:1",
      content: "The result of this call is not in the context.",
      isError: true,
    });
  });

  test("results without their call, and duplicate results, are dropped", () => {
    const [asked, first] = round(t, 1) as [Message, Message];
    const [, stray] = round(t, 7) as [Message, Message];
    expect(legalMessages([stray, asked, first, { ...first, content: "again" }])).toEqual([asked, first]);
  });

  test("a provider may reuse one id for the calls of every round", () => {
    const [asked, result] = round(t, 1) as [Message, Message];
    const later = { ...result, content: "another result" };
    const messages = [asked, result, input(turn(2)), asked, later];
    expect(legalMessages(messages)).toBe(messages);
  });

  test("for every history the output is legal, and only results are dropped or moved", () => {
    fc.assert(
      fc.property(brokenConversation, ({ history }) => {
        const legal = legalMessages(history);
        expect(isLegal(legal)).toBeUndefined();
        expect(legalMessages(legal)).toBe(legal);
        expect(withoutResults(legal)).toEqual(withoutResults(history));
      }),
      { numRuns: amount(2_000, 330) },
    );
  });

  test("a result after its call is the one that is shown", () => {
    fc.assert(
      fc.property(wholeConversation, fc.array(fc.nat(), { maxLength: 5 }), ({ history }, places) => {
        // Messages inserted between calls and their results, at any position.
        const notes = places.map((place, index) => ({
          place: place % (history.length + 1),
          note: hookMessage(`n${index}`, 1),
        }));
        const mixed = history.flatMap((message, index) => [
          ...notes.filter(({ place }) => place === index).map(({ note }) => note),
          message,
        ]);
        const legal = legalMessages(mixed);
        expect(legal.filter(({ origin }) => origin !== "hook:notes")).toEqual(
          history.filter(({ origin }) => origin !== "hook:notes"),
        );
      }),
      { numRuns: amount(500, 83) },
    );
  });

  test("a legal list is returned as is", () => {
    fc.assert(
      fc.property(wholeConversation, ({ history }) => {
        expect(legalMessages(history)).toBe(history);
      }),
    );
  });

  test("a long history in reverse order takes time proportional to its length", () => {
    const messages = Array.from({ length: 20_000 }, (_, index) => wholeTurn(index + 1).toReversed()).flat();
    const startedAt = performance.now();
    const legal = legalMessages(messages);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect(isLegal(legal)).toBeUndefined();
  });
});

function withoutResults(messages: readonly Message[]): string[] {
  return idsOf(messages.filter(({ role }) => role !== "tool"));
}
