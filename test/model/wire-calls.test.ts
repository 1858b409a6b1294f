import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { wireBody } from "../../src/model/openai-wire.ts";
import { promptByteBound } from "../../src/model/index.ts";
import type { AnsweringAdapter, Message, ModelTool } from "../../src/state/index.ts";

interface WiredCall {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}
interface Wired {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly WiredCall[];
  readonly tool_call_id?: string;
}

const reader = { provider: "p", model: "m", server: "s" };
const base = { createdAt: 1, origin: "model", content: "" };

/** A round per answer: each of its calls with a result. */
function rounds(...answers: readonly (readonly { readonly name: string; readonly id: string }[])[]): Message[] {
  return answers.flatMap((calls, step) => {
    const toolCalls = calls.map(({ name, id }, index) => {
      return { callId: `t:${step + 1}:${index}`, providerId: id, name, arguments: "{}" };
    });
    return [
      { role: "assistant", id: `t:${step + 1}`, ...base, toolCalls } as const,
      ...toolCalls.map(
        ({ callId, providerId }) =>
          ({ role: "tool", id: callId, ...base, content: callId, callId, providerId }) as const,
      ),
    ];
  });
}

function wired(
  messages: readonly Message[],
  tools: readonly ModelTool[] = [],
  keepsForeignIds = false,
): readonly Wired[] {
  const options = { stream: false, outputLimitField: "max_tokens", extraBody: {}, reader, keepsForeignIds } as const;
  return wireBody({ messages, tools }, options)["messages"] as readonly Wired[];
}

const callsIn = (messages: readonly Wired[]) => messages.flatMap(({ tool_calls = [] }) => tool_calls);
const all = (ids: readonly string[]) => ids.map((id) => ({ name: "f", id }));
const idsOf = (messages: readonly Wired[]) => callsIn(messages).map(({ id }) => id);
const resultIdsOf = (messages: readonly Wired[]) => messages.flatMap(({ tool_call_id }) => tool_call_id ?? []);
const namesOf = (names: readonly string[], tools?: readonly ModelTool[]) =>
  callsIn(wired(rounds(names.map((name, index) => ({ name, id: `c${index}` }))), tools)).map(
    (call) => call.function.name,
  );

const oddNames = ["", " ", "a b", "a\0b", "functions.add", "x".repeat(100), "🦊", "\ud800", "\udc00", "add:1", "ä"];
const legal = /^[a-zA-Z0-9_-]{1,64}$/;

describe("names of calls", () => {
  it("that providers refuse are sent as legal ones, each unique and always the same", () => {
    const sent = namesOf(oddNames);
    expect(sent.filter((name) => !legal.test(name))).toEqual([]);
    expect(new Set(sent).size).toBe(oddNames.length);
    expect(namesOf(oddNames.toReversed())).toEqual(sent.toReversed());
    expect(sent[4]).toMatch(/^functions_add-/);
  });

  it("that are legal are unchanged", () => {
    const names = ["add", "x".repeat(64), "_", "A-1"];
    expect(namesOf(names)).toEqual(names);
  });

  it("never become the name of a tool of the request", () => {
    const [taken = ""] = namesOf(["functions.add"]);
    const [other = ""] = namesOf(["functions.add"], [{ name: taken, description: "d", parameters: {} }]);
    expect(other).not.toBe(taken);
    expect(other).toMatch(legal);
  });

  it("are legal and distinct for every name from a model", () => {
    const anyName = fc.string({ unit: "binary", maxLength: 120 });
    fc.assert(
      fc.property(fc.uniqueArray(anyName, { maxLength: 8 }), (names) => {
        const sent = namesOf(names);
        expect(sent.every((name) => legal.test(name))).toBe(true);
        expect(new Set(sent).size).toBe(names.length);
      }),
    );
  });
});

describe("ids of calls", () => {
  const signed = `call_1__thought__${"s".repeat(300)}`;
  const oddIds = ["a b", "functions.add:0", signed, "ü", '"\\', "a", "9"];
  const by = (adapter: Partial<AnsweringAdapter>, messages = rounds(all(oddIds))) =>
    messages.map((message) =>
      message.role === "assistant"
        ? { ...message, reasoningBy: { provider: "p", model: "m", adapter: { ...reader, ...adapter } } }
        : message,
    );
  const portable = /^[a-zA-Z0-9]{9}$/;

  it.each<readonly [string, readonly Message[]]>([
    ["from the same server", by({})],
    ["of a model with an unknown server", by({ server: undefined })],
    ["of a message without a model", rounds(all(oddIds))],
  ])("%s are sent back unchanged", (_what, messages) => {
    const sent = wired(messages);
    expect(idsOf(sent)).toEqual(oddIds);
    expect(resultIdsOf(sent)).toEqual(oddIds);
  });

  it.each<readonly [string, readonly Message[]]>([
    ["provider", by({ provider: "other" })],
    ["model", by({ model: "other" })],
    ["address", by({ server: "other" })],
  ])("from another %s are sent in a form that all servers accept, always the same", (_what, messages) => {
    const sent = wired(messages);
    expect(idsOf(sent).filter((id) => !portable.test(id))).toEqual([]);
    expect(new Set(idsOf(sent)).size).toBe(oddIds.length);
    expect(resultIdsOf(sent)).toEqual(idsOf(sent));
    expect(idsOf(wired(messages))).toEqual(idsOf(sent));
    expect(idsOf(wired(messages, [], true))).toEqual(oddIds);
  });

  it("keep a form that all servers accept", () => {
    expect(idsOf(wired(by({ model: "other" }, rounds(all(["D681PevKs", "x"]))))).slice(0, 1)).toEqual(["D681PevKs"]);
  });

  it("are unique for each call of the request, and each result has its call's", () => {
    const ids = [...oddIds, "a", "", " ", "\ud800", "\ud801"];
    for (const messages of [rounds(all(ids), all(ids)), by({ model: "other" }, rounds(all(ids), all(ids)))]) {
      const sent = wired(messages);
      expect(new Set(idsOf(sent)).size).toBe(ids.length * 2);
      expect(resultIdsOf(sent)).toEqual(idsOf(sent));
      expect(sent.flatMap((message) => (message.role === "tool" ? message.content : []))).toEqual(
        [1, 2].flatMap((step) => ids.map((_, index) => `t:${step}:${index}`)),
      );
    }
    const [first, second] = [idsOf(wired(rounds(all(oddIds), all(oddIds)))).slice(0, 7), oddIds];
    expect(first).toEqual(second);
  });

  it("do not change when the conversation continues", () => {
    const round = all([...oddIds, "a", ""]);
    expect(idsOf(wired(rounds(round, round, round))).slice(0, 18)).toEqual(idsOf(wired(rounds(round, round))));
  });

  it("are distinct, and the server's own unchanged, for all ids from a model", () => {
    const anyIds = fc.array(fc.string({ unit: "binary", maxLength: 30 }), { maxLength: 6 });
    fc.assert(
      fc.property(anyIds, anyIds, fc.boolean(), (one, other, isOwn) => {
        const messages = rounds(all(one), all(other)).filter(
          (message) => message.role !== "assistant" || (message.toolCalls ?? []).length > 0,
        );
        const sent = wired(isOwn ? by({}, messages) : by({ model: "other" }, messages));
        expect(new Set(idsOf(sent)).size).toBe(one.length + other.length);
        expect(resultIdsOf(sent)).toEqual(idsOf(sent));
        const [first] = [...one, ...other].map((id) => id.toWellFormed());
        const isKept = first === undefined || first.trim() === "" || idsOf(sent)[0] === first;
        expect(isOwn ? isKept : idsOf(sent).every((id) => portable.test(id))).toBe(true);
      }),
    );
  });
});

it("texts are Unicode: half a surrogate pair is replaced", () => {
  const messages: Message[] = [
    { role: "system", id: "s", ...base, content: "a\ud800" },
    { role: "user", id: "u", ...base, content: [{ type: "text", text: "b\udc00" }] },
    {
      role: "assistant",
      id: "a",
      ...base,
      content: "c\ud800",
      toolCalls: [{ callId: "t:1:0", providerId: "x", name: "f", arguments: '{"q":"\ud800"}' }],
    },
    { role: "tool", id: "t", ...base, content: "d\udc00", callId: "t:1:0", providerId: "x" },
  ];
  expect(JSON.stringify(wired(messages))).not.toMatch(/\\ud[89a-f]/i);
  expect(JSON.stringify(wired(messages))).toContain('"q\\":\\"\ufffd');
});

it("the sent prompt is the counted one: its bound includes derived names and ids", () => {
  const odd = rounds([{ name: "", id: "" }]);
  const sent = callsIn(wired(odd))[0];
  const plain = rounds([{ name: sent?.function.name ?? "", id: sent?.id ?? "" }]);
  expect(promptByteBound({ messages: odd })).toBe(promptByteBound({ messages: plain }));
});
