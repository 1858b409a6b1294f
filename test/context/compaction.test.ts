import { describe, expect, test } from "vitest";
import {
  type CompactedView,
  type CompactionInput,
  type CompactionStrategy,
  compactionDue,
  dropOldest,
  viewOf,
} from "../../src/context/index.ts";
import type { Message } from "../../src/state/index.ts";
import { answer, hookMessage, idsOf, input, round, summary, turn, wholeTurn } from "./messages.ts";

const generate = (): Promise<never> => Promise.reject(new Error("dropOldest() calls no model"));

function given(messages: readonly Message[], more: Partial<CompactionInput> = {}): CompactionInput {
  return { messages, shown: (all) => all, turnId: turn(9), generate, signal: new AbortController().signal, ...more };
}

/** The ids shown after a compaction of these messages, or `undefined` if nothing could be dropped. */
async function shownAfter(
  strategy: CompactionStrategy,
  messages: readonly Message[],
  more: Partial<CompactionInput> = {},
): Promise<string[] | undefined> {
  const compaction = await strategy.compact(given(messages, more));
  if (!compaction) return undefined;
  const { through, keepIds = [] } = compaction;
  return idsOf(viewOf(messages, { through, kept: keepIds, summaryMessageId: null }));
}

describe("dropOldest", () => {
  const history = [...wholeTurn(1), ...wholeTurn(2), input(turn(9))];

  test("leaves the newest messages unchanged", async () => {
    expect(await dropOldest({ keep: 5 }).compact(given(history))).toEqual({
      through: answer(turn(1), 2).id,
      summary: null,
      keepIds: [],
    });
    expect(await shownAfter(dropOldest({ keep: 5 }), history)).toEqual(idsOf(history.slice(4)));
  });

  test("keeps more messages rather than separate a call from its results", async () => {
    // The third newest message is the result of the second turn's call.
    expect(await shownAfter(dropOldest({ keep: 3 }), history)).toEqual(idsOf(history.slice(5)));
  });

  test("one compaction can set its own `keep`", async () => {
    expect(await shownAfter(dropOldest(), history, { keep: 5 })).toEqual(idsOf(history.slice(4)));
  });

  test("a conversation of at most `keep` messages is not compacted", async () => {
    expect(await dropOldest().compact(given(history))).toBeNull();
    expect(await dropOldest().compact(given([]))).toBeNull();
    expect(await dropOldest().compact(given([], { isTooLong: true }))).toBeNull();
  });

  test.each([0, 2.5, -3])("keep of %s is refused", (keep) => {
    expect(() => dropOldest({ keep })).toThrow(/dropOldest\(\): keep is .*; expected a whole number of at least 1/);
  });

  test("a prompt that was too long loses half of its messages, even with a larger `keep`", async () => {
    expect(await shownAfter(dropOldest({ keep: 50 }), history, { isTooLong: true })).toEqual(idsOf(history.slice(5)));
  });

  test("the open turn's task stays even if nothing else could be dropped", async () => {
    const messages = [summary(turn(8), 1), input(turn(9))];
    expect(await dropOldest().compact(given(messages, { isTooLong: true }))).toBeNull();
  });

  test("a question that was too long for every turn so far is dropped for the next one", async () => {
    const messages = [input(turn(1)), input(turn(2)), input(turn(9))];
    expect(await shownAfter(dropOldest(), messages, { isTooLong: true })).toEqual([input(turn(9)).id]);
  });
});

describe("with only the open turn left", () => {
  const t = turn(9);
  const rounds = [1, 2, 3, 4].flatMap((step) => [...round(t, step), hookMessage(t, step)]);

  test("its older rounds are dropped, and its task and last complete round stay", async () => {
    const messages = [input(t), ...rounds];
    expect(await dropOldest({ keep: 6 }).compact(given(messages))).toEqual({
      through: hookMessage(t, 2).id,
      summary: null,
      keepIds: [input(t).id],
    });
    expect(await shownAfter(dropOldest({ keep: 1 }), messages)).toEqual([
      input(t).id,
      ...idsOf([...round(t, 4), hookMessage(t, 4)]),
    ]);
  });

  test("later messages of the user stay too, and messages of hooks do not", async () => {
    const said: Message = { ...input(t), id: `${t}:later`, content: "and be quick" };
    const messages = [input(t), ...round(t, 1), said, hookMessage(t, 1), ...round(t, 2)];
    expect(await shownAfter(dropOldest({ keep: 2 }), messages)).toEqual([input(t).id, said.id, ...idsOf(round(t, 2))]);
  });

  test("a round with missing results is not the last complete one", async () => {
    const messages = [input(t), ...round(t, 1), ...round(t, 2), ...round(t, 3, 2).slice(0, 2)];
    expect(await shownAfter(dropOldest({ keep: 1 }), messages)).toEqual([input(t).id, ...idsOf(messages.slice(3))]);
  });

  test("messages of earlier turns are dropped first", async () => {
    const messages = [...wholeTurn(1), input(t), ...rounds];
    expect(await shownAfter(dropOldest({ keep: 2 }), messages)).toEqual(idsOf(messages.slice(4)));
  });

  test("a summary written by the open turn does not count as its message: earlier turns are still dropped first", async () => {
    const messages = [summary(t, 1), ...wholeTurn(1), ...wholeTurn(2), input(t), ...round(t, 1), ...round(t, 2)];
    const compaction = await dropOldest({ keep: 1 }).compact(given(messages));
    expect(compaction).toEqual({ through: answer(turn(2), 2).id, summary: null, keepIds: [] });
  });

  test("a turn without an input message keeps the one it continues from (row L5)", async () => {
    const messages = [...wholeTurn(1), input(turn(8)), ...round(turn(8), 1), ...round(t, 1), ...round(t, 2)];
    expect(await shownAfter(dropOldest({ keep: 1 }), messages)).toEqual(idsOf(messages.slice(4)));
    expect(await shownAfter(dropOldest({ keep: 1 }), messages.slice(4))).toEqual([
      input(turn(8)).id,
      ...idsOf(round(t, 2)),
    ]);
  });

  test("a single round that is too long is not dropped", async () => {
    expect(await dropOldest().compact(given([input(t), ...round(t, 1, 3)], { isTooLong: true }))).toBeNull();
  });

  test("a later view is not cut at messages that an earlier compaction kept: what followed them is hidden", async () => {
    const store = [input(t), ...rounds];
    const first = await dropOldest({ keep: 3 }).compact(given(store));
    const compaction = { through: first?.through ?? "", kept: first?.keepIds ?? [], summaryMessageId: null };
    const next = [...store, answer(t, 5), input(turn(10))];
    const view = viewOf(next, compaction);
    expect(idsOf(view)).toEqual(idsOf([input(t), ...rounds.slice(-3), answer(t, 5), input(turn(10))]));
    // With one message fewer only the task would be dropped; it is dropped with the round after it.
    expect(await dropOldest({ keep: 5 }).compact(given(view, { turnId: turn(10) }))).toBeNull();
    const second = await dropOldest({ keep: 4 }).compact(given(view, { turnId: turn(10) }));
    expect(second).toBeNull();
    const third = await dropOldest({ keep: 3 }).compact(given(view, { turnId: turn(10) }));
    expect(third).toMatchObject({ through: `${t}:4:0:result`, keepIds: [] });
  });
});

describe("viewOf", () => {
  const store = [
    ...wholeTurn(1),
    input(turn(2)),
    ...round(turn(2), 1),
    ...round(turn(2), 2),
    summary(turn(2), 2),
    answer(turn(2), 3),
  ];
  const compaction: CompactedView = {
    through: `${turn(2)}:1:0:result`,
    summaryMessageId: summary(turn(2), 2).id,
    kept: [input(turn(2)).id],
  };

  test("contains the summary once, the kept messages, and the messages after the cut", () => {
    expect(idsOf(viewOf(store, compaction))).toEqual(
      idsOf([summary(turn(2), 2), input(turn(2)), ...round(turn(2), 2), answer(turn(2), 3)]),
    );
  });

  test("without a compaction is the history itself", () => {
    expect(viewOf(store, null)).toBe(store);
  });

  test("includes the latest summary only", () => {
    const later = { through: `${turn(2)}:1:0:result`, summaryMessageId: summary(turn(3), 1).id, kept: [] };
    const messages = [...store, input(turn(3)), summary(turn(3), 1)];
    expect(idsOf(viewOf(messages, later)).filter((id) => id.endsWith(":compact"))).toEqual([summary(turn(3), 1).id]);
  });

  test("shows everything of a history that was loaded from after the cut", () => {
    expect(viewOf([answer(turn(2), 3)], { through: "long ago", summaryMessageId: "gone", kept: [] })).toEqual([
      answer(turn(2), 3),
    ]);
  });
});

describe("compactionDue", () => {
  test.each([
    { given: { messages: 50, contextPercent: null }, due: false },
    { given: { messages: 50, maxMessages: 50, contextPercent: null }, due: false },
    { given: { messages: 51, maxMessages: 50, contextPercent: null }, due: true },
    { given: { messages: 1, contextPercent: 79.9 }, due: false },
    { given: { messages: 1, contextPercent: 80 }, due: true },
    { given: { messages: 1, contextPercent: 80, atPercent: 90 }, due: false },
  ])("$given: $due", ({ given, due }) => {
    expect(compactionDue(given)).toBe(due);
  });
});
