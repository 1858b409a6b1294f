import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  assembleMessages,
  type CompileInput,
  elideResults,
  expandedWindow,
  fullHistory,
  type HistoryCompiler,
  isLegal,
  openTurnStart,
  reactHistory,
  windowHistory,
  withoutTraces,
} from "../../src/context/index.ts";
import type { HookPatch, Message } from "../../src/state/index.ts";
import { amount } from "../support/full.ts";
import { brokenConversation, type Conversation, wholeConversation } from "./arbitrary-histories.ts";
import { idsOf } from "./messages.ts";

/** The most calls of a round in `arbitrary-histories.ts`. */
const mostCalls = 3;

const anyWindow: fc.Arbitrary<HistoryCompiler> = fc.oneof(
  fc.integer({ min: 1, max: 30 }).map((size) => windowHistory(size)),
  fc.integer({ min: 1, max: 30 }).map((size) => windowHistory(size, { upTo: size })),
  fc.integer({ min: 1, max: 12 }).map((contextWindowSize) => reactHistory({ contextWindowSize, expandBy: 2 })),
);
const compiler: fc.Arbitrary<HistoryCompiler> = fc.oneof(
  fc.constant(fullHistory()),
  fc.constant(withoutTraces()),
  fc.integer({ min: 1, max: 4 }).map((keepRounds) => elideResults({ keepRounds, overCharacters: 1_000 })),
  anyWindow,
);

/** A conversation with a prefix from before a compaction, and loaded calls. */
function inputOf(conversation: fc.Arbitrary<Conversation>): fc.Arbitrary<CompileInput> {
  return fc.record({ conversation, cut: fc.nat(), loaded: fc.array(fc.nat(), { maxLength: 4 }) }).map((shape) => {
    const { history, turnId } = shape.conversation;
    const calls = history.flatMap((message) => (message.role === "tool" ? message.callId : []));
    const loadedCallIds = calls.length === 0 ? [] : shape.loaded.map((at) => calls[at % calls.length] ?? "");
    const earlier = history.slice(0, shape.cut % (history.length + 1));
    return { history, turnId, contextWindowSize: null, loadedCallIds, earlier };
  });
}

function contentsOf(messages: readonly Message[]): unknown[] {
  return messages.map(({ content }) => content);
}

describe("for every history", () => {
  test("a window is the same with and without the index of the open turn's start", () => {
    const anyConversation = fc.oneof(wholeConversation, brokenConversation);
    fc.assert(
      fc.property(anyWindow, inputOf(anyConversation), (window, input) => {
        const turnStart = openTurnStart(input.history, input.turnId);
        expect(idsOf(window.compile({ ...input, turnStart }))).toEqual(idsOf(window.compile(input)));
      }),
      { numRuns: amount(5_000, 830) },
    );
  });

  test("a compiler returns a legal list, and every result in it is from the history", () => {
    fc.assert(
      fc.property(compiler, inputOf(brokenConversation), (chosen, input) => {
        const compiled = chosen.compile(input);
        expect(isLegal(compiled)).toBeUndefined();
        const results = compiled.filter((message) => message.role === "tool" && !message.isError);
        expect(contentsOf(input.history)).toEqual(expect.arrayContaining(contentsOf(results)));
      }),
      { numRuns: amount(2_000, 330) },
    );
  });

  test("hooks that remove messages leave a legal list", () => {
    fc.assert(
      fc.property(
        compiler,
        inputOf(brokenConversation),
        fc.array(fc.nat(), { maxLength: 8 }),
        (chosen, input, places) => {
          const ids = idsOf(input.history);
          const removedMessageIds = places.flatMap((place) => ids[place % Math.max(1, ids.length)] ?? []);
          const patch: HookPatch = {
            addedMessageIds: [],
            edited: ids.slice(0, 1).map((messageId) => ({ messageId, content: "edited" })),
            removedMessageIds,
            stop: null,
            continueRequested: false,
          };
          const messages = assembleMessages({ instructions: "Be brief.", compiler: chosen, input, patches: [patch] });
          expect(isLegal(messages)).toBeUndefined();
          expect(messages[0]).toMatchObject({ role: "system", content: "Be brief." });
          for (const { id } of messages) expect(removedMessageIds).not.toContain(id);
        },
      ),
      { numRuns: amount(1_000, 170) },
    );
  });
});

describe("for conversations as the runtime writes them", () => {
  test("a shown call has its own result, the order is that of the history, and the open turn is complete", () => {
    fc.assert(
      fc.property(compiler, inputOf(wholeConversation), (chosen, input) => {
        const compiled = chosen.compile({ ...input, loadedCallIds: [] });
        expect(compiled.filter(({ id }) => id.endsWith(":absent"))).toEqual([]);
        const places = idsOf(compiled).map((id) => idsOf(input.history).indexOf(id));
        expect(places).toEqual([...places].sort((one, other) => one - other));
        const own = input.history.filter(({ id }) => id.startsWith(`${input.turnId}:`));
        expect(compiled.slice(compiled.length - own.length)).toEqual(own);
      }),
      { numRuns: amount(1_000, 170) },
    );
  });

  test("loaded calls add their rounds before the open turn, and change nothing else", () => {
    fc.assert(
      fc.property(inputOf(wholeConversation), (input) => {
        const chosen = reactHistory({ contextWindowSize: 3 });
        const compiled = chosen.compile(input);
        expect(compiled.filter(({ id }) => !id.startsWith("loaded:"))).toEqual(
          chosen.compile({ ...input, loadedCallIds: [] }),
        );
        const ownCalls = input.loadedCallIds.filter((id) => id.startsWith(`${input.turnId}:`));
        const foreign = new Set(input.loadedCallIds.filter((id) => !ownCalls.includes(id)));
        expect(compiled.filter(({ id }) => id.startsWith("loaded:"))).toHaveLength(2 * foreign.size);
        const results = compiled.flatMap((message) => (message.role === "tool" ? message.callId : []));
        for (const callId of input.loadedCallIds) expect(results.filter((id) => id === callId)).toHaveLength(1);
      }),
      { numRuns: amount(1_000, 170) },
    );
  });

  test("windowHistory returns the end of the history: at least the size, and no more than a round above upTo", () => {
    const window = fc.record({ size: fc.integer({ min: 1, max: 20 }), room: fc.integer({ min: 1, max: 20 }) });
    fc.assert(
      fc.property(window, inputOf(wholeConversation), ({ size, room }, input) => {
        const { history, turnId } = input;
        const compiled = windowHistory(size, { upTo: size + room }).compile(input);
        expect(compiled).toEqual(history.slice(history.length - compiled.length));
        const own = history.filter(({ id }) => id.startsWith(`${turnId}:`)).length;
        expect(compiled.length).toBeGreaterThanOrEqual(Math.min(size, history.length));
        expect(compiled.length).toBeLessThanOrEqual(Math.max(size + room + mostCalls, own));
      }),
      { numRuns: amount(1_000, 170) },
    );
  });

  test("with upTo equal to its size, windowHistory returns no more than the size, and as much as it allows", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), inputOf(wholeConversation), (size, input) => {
        const { history, turnId } = input;
        const compiled = windowHistory(size, { upTo: size }).compile(input);
        expect(compiled).toEqual(history.slice(history.length - compiled.length));
        const own = history.filter(({ id }) => id.startsWith(`${turnId}:`)).length;
        expect(compiled.length).toBeLessThanOrEqual(Math.max(size, own));
        // One more message would exceed the size, or the previous cut position is before a round that does not fit.
        const next = history.slice(0, history.length - compiled.length).findLastIndex(({ role }) => role !== "tool");
        expect(next < 0 || history.length - next > size).toBe(true);
      }),
      { numRuns: amount(1_000, 170) },
    );
  });

  test("a conversation that grows moves a block only once for each block of new messages or rounds", () => {
    const cases = fc.record({
      block: fc.integer({ min: 2, max: 6 }),
      isWindow: fc.boolean(),
      conversation: wholeConversation,
    });
    fc.assert(
      fc.property(cases, ({ block, isWindow, conversation: { history } }) => {
        const chosen = isWindow ? windowHistory(block) : elideResults({ keepRounds: block, overCharacters: 1 });
        // The prompts of all calls of one process: each begins with the turn's messages so far.
        const prompts = history.flatMap(({ role }, index) => {
          if (role === "assistant" || history[index + 1]?.role === "tool") return [];
          const shown = history.slice(0, index + 1);
          const turnId = /^agent#\d+/.exec(shown.at(-1)?.id ?? "")?.[0] ?? "";
          return [chosen.compile({ history: shown, turnId, contextWindowSize: null, loadedCallIds: [], earlier: [] })];
        });
        const breaks = prompts.filter((prompt, index) => {
          const before = prompts[index - 1] ?? [];
          return before.some(
            (message, place) => message.id !== prompt[place]?.id || message.content !== prompt[place].content,
          );
        });
        expect(breaks.length).toBeLessThanOrEqual(Math.ceil(history.length / block));
      }),
      { numRuns: amount(1_000, 170) },
    );
  });

  test("each expansion of reactHistory adds messages, until every text message is shown", () => {
    fc.assert(
      fc.property(inputOf(wholeConversation), (input) => {
        const chosen = reactHistory({ contextWindowSize: 1, expandBy: 2 });
        let size = 1;
        let shown = idsOf(chosen.compile(input));
        for (;;) {
          const next = expandedWindow(chosen, { ...input, contextWindowSize: size });
          if (!next || next.size === size) break;
          const wider = idsOf(chosen.compile({ ...input, contextWindowSize: next.size }));
          expect(wider).toEqual(expect.arrayContaining(shown));
          expect(wider.length).toBeGreaterThan(shown.length);
          size = next.size;
          shown = wider;
        }
        const said = input.history.filter(({ role, content }) => role !== "tool" && content !== "");
        expect(shown).toEqual(expect.arrayContaining(idsOf(said)));
      }),
      { numRuns: amount(1_000, 170) },
    );
  });
});

test("a hook's edit of a message applies to this call only", () => {
  const history: Message[] = [{ id: "a#1:in", role: "user", createdAt: 1, content: "my number is 12", origin: "user" }];
  const input = { history, turnId: "a#1", contextWindowSize: null, loadedCallIds: [], earlier: [] };
  const patch = { addedMessageIds: [], removedMessageIds: [], stop: null, continueRequested: false };
  const patches: HookPatch[] = [{ ...patch, edited: [{ messageId: "a#1:in", content: "my number is [hidden]" }] }];
  const call = { instructions: "", compiler: fullHistory(), input };
  expect(assembleMessages({ ...call, patches })).toMatchObject([{ content: "my number is [hidden]" }]);
  expect(assembleMessages({ ...call, patches: [] })).toEqual(history);
});
