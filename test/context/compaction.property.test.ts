import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type CompactedView,
  type Compaction,
  type CompactionInput,
  type CompactionStrategy,
  dropOldest,
  isLegal,
  legalMessages,
  summarize,
  viewOf,
} from "../../src/context/index.ts";
import type { Message, ModelResponse } from "../../src/state/index.ts";
import { amount } from "../support/full.ts";
import { brokenConversation, type Conversation, wholeConversation } from "./arbitrary-histories.ts";
import { idsOf, input, round, summary, turn, wholeTurn } from "./messages.ts";

const response: ModelResponse = {
  content: "in short",
  toolCalls: [],
  usage: { inputTokens: 1, outputTokens: 1 },
  finishReason: "stop",
  model: "m",
};

const generate = (): Promise<ModelResponse> => Promise.resolve(response);

function compactionInput(messages: readonly Message[], turnId: string, isTooLong: boolean): CompactionInput {
  return { messages, shown: (all) => all, turnId, isTooLong, generate, signal: new AbortController().signal };
}

/** Messages and their last compaction, as the runtime stores them. */
class Store {
  history: Message[];
  compaction: CompactedView | null = null;
  #compactions = 0;

  constructor(history: readonly Message[]) {
    this.history = [...history];
  }

  view(): readonly Message[] {
    return viewOf(this.history, this.compaction);
  }

  async compact(strategy: CompactionStrategy, turnId: string, isTooLong: boolean): Promise<Compaction | null> {
    const result = await strategy.compact(compactionInput(this.view(), turnId, isTooLong));
    if (!result) return null;
    this.#compactions += 1;
    const message = result.summary === null ? undefined : summary(turnId, 100 + this.#compactions);
    if (message) this.history.push(message);
    this.compaction = { through: result.through, summaryMessageId: message?.id ?? null, kept: result.keepIds ?? [] };
    return result;
  }
}

const strategyOf = (keep: number) => fc.constantFrom(dropOldest({ keep }), summarize({ keep }));
const setting = fc
  .integer({ min: 1, max: 12 })
  .chain((keep) => fc.record({ keep: fc.constant(keep), strategy: strategyOf(keep), isTooLong: fc.boolean() }));

function isSummary({ origin }: Message): boolean {
  return origin === "compaction";
}

/** The task of the open turn: the last user message before or in it. */
function taskOf({ history, turnId }: Conversation): Message | undefined {
  return history.find(({ id }) => id === `${turnId}:in`) ?? history.findLast(({ origin }) => origin === "user");
}

describe("conversations as the runtime writes them", () => {
  test("each compaction hides more, splits no round, keeps the task, and finally finds nothing left to hide", async () => {
    await fc.assert(
      fc.asyncProperty(wholeConversation, setting, async (conversation, { strategy, isTooLong }) => {
        const store = new Store(conversation.history);
        const task = taskOf(conversation);
        let hidden = new Set<string>();
        for (let count = 0; ; count += 1) {
          expect(count).toBeLessThanOrEqual(conversation.history.length);
          const before = idsOf(store.view());
          if (!(await store.compact(strategy, conversation.turnId, isTooLong))) break;
          const view = store.view();
          expect(isLegal(view)).toBeUndefined();
          expect(!task || view.includes(task)).toBe(true);
          expect(view.filter(isSummary)).toHaveLength(strategy.name === "summarize" ? 1 : 0);
          // No hidden message comes back, and at least one more is hidden.
          const shown = new Set(idsOf(view));
          const gone = new Set(idsOf(store.history.filter(({ id }) => !shown.has(id))));
          for (const id of hidden) expect(gone).toContain(id);
          expect(before.some((id) => gone.has(id) && !id.endsWith(":compact"))).toBe(true);
          hidden = gone;
        }
      }),
      { numRuns: amount(1_000, 170) },
    );
  });

  test("the newest `keep` messages stay unchanged", async () => {
    await fc.assert(
      fc.asyncProperty(wholeConversation, setting, async ({ history, turnId }, { keep, strategy }) => {
        const store = new Store(history);
        while (await store.compact(strategy, turnId, false)) {
          const view = store.view().filter((message) => !isSummary(message));
          const newest = history.slice(-keep);
          expect(view.slice(-newest.length)).toEqual(newest);
        }
      }),
      { numRuns: amount(1_000, 170) },
    );
  });

  test("messages before the open turn are dropped before any of its own", async () => {
    await fc.assert(
      fc.asyncProperty(wholeConversation, setting, async (conversation, { strategy, isTooLong }) => {
        const { history, turnId } = conversation;
        const store = new Store(history);
        const own = history.filter(({ id }) => id.startsWith(`${turnId}:`));
        const task = taskOf(conversation);
        while (await store.compact(strategy, turnId, isTooLong)) {
          const view = store.view().filter((message) => !isSummary(message));
          const isCutOpen = own.some((message) => !view.includes(message));
          const foreign = view.filter((message) => !own.includes(message));
          expect(isCutOpen && foreign.some((message) => message !== task)).toBe(false);
        }
      }),
      { numRuns: amount(1_000, 170) },
    );
  });

  test("over many turns, with compactions anywhere, hidden messages never come back", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ rounds: fc.integer({ min: 0, max: 4 }), setting: fc.option(setting) }), { maxLength: 8 }),
        async (turns) => {
          const store = new Store([]);
          const hidden = new Set<string>();
          for (const [index, { rounds, setting }] of turns.entries()) {
            const turnId = turn(index + 1);
            const steps = Array.from({ length: rounds }, (_, step) => round(turnId, step + 1));
            store.history.push(input(turnId), ...steps.flat());
            if (setting) await store.compact(setting.strategy, turnId, setting.isTooLong);
            const shown = idsOf(store.view());
            for (const id of shown) expect(hidden).not.toContain(id);
            expect(new Set(shown).size).toBe(shown.length);
            expect(shown).toContain(`${turnId}:in`);
            expect(isLegal(store.view())).toBeUndefined();
            for (const { id } of store.history) if (!shown.includes(id)) hidden.add(id);
            store.history.push(
              ...wholeTurn(index + 1)
                .slice(-1)
                .map((message) => ({ ...message, id: `${turnId}:end` })),
            );
          }
        },
      ),
      { numRuns: amount(1_000, 170) },
    );
  });
});

test("it also ends in broken histories, and the shown messages can be made legal without losing a result", async () => {
  await fc.assert(
    fc.asyncProperty(brokenConversation, setting, async ({ history, turnId }, { strategy, isTooLong }) => {
      // Ids are unique in every store.
      const messages = history.filter(({ id }, index) => history.findIndex((other) => other.id === id) === index);
      const absentBefore = absentResults(messages);
      const store = new Store(messages);
      for (let count = 0; await store.compact(strategy, turnId, isTooLong); count += 1) {
        expect(count).toBeLessThanOrEqual(messages.length);
        for (const id of absentResults(store.view())) expect(absentBefore).toContain(id);
      }
    }),
    { numRuns: amount(1_000, 170) },
  );
});

/** Ids of the results that legalMessages() has to invent for these messages. */
function absentResults(messages: readonly Message[]): string[] {
  return idsOf(legalMessages(messages)).filter((id) => id.endsWith(":absent"));
}
