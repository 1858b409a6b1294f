import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { wireBody } from "../../src/model/openai-wire.ts";
import { promptByteBound } from "../../src/model/index.ts";
import type { Message, ModelTool } from "../../src/state/index.ts";

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

function wired(messages: readonly Message[], tools: readonly ModelTool[] = []): readonly Wired[] {
  const options = { model: "m", stream: false, outputLimitField: "max_tokens", extraBody: {} } as const;
  const { messages: sent } = JSON.parse(wireBody({ messages, tools }, options).text) as { readonly messages: Wired[] };
  return sent;
}

const callsIn = (messages: readonly Wired[]) => messages.flatMap(({ tool_calls = [] }) => tool_calls);
const namesOf = (names: readonly string[], tools?: readonly ModelTool[]) =>
  callsIn(wired(rounds(names.map((name, index) => ({ name, id: `c${index}` }))), tools)).map(
    (call) => call.function.name,
  );

const oddNames = ["", " ", "a b", "a\0b", "functions.add", "x".repeat(100), "🦊", "\ud800", "\udc00", "add:1", "ä"];
const legal = /^[a-zA-Z0-9_-]{1,64}$/;

describe("names of calls", () => {
  it("that providers refuse are sent as legal ones, each as its own and always the same", () => {
    const sent = namesOf(oddNames);
    expect(sent.filter((name) => !legal.test(name))).toEqual([]);
    expect(new Set(sent).size).toBe(oddNames.length);
    expect(namesOf(oddNames.toReversed())).toEqual(sent.toReversed());
    expect(sent[4]).toMatch(/^functions_add-/);
  });

  it("that are legal stay as they are", () => {
    const names = ["add", "x".repeat(64), "_", "A-1"];
    expect(namesOf(names)).toEqual(names);
  });

  it("never become the name of a tool of the request", () => {
    const [taken = ""] = namesOf(["functions.add"]);
    const [other = ""] = namesOf(["functions.add"], [{ name: taken, description: "d", parameters: {} }]);
    expect(other).not.toBe(taken);
    expect(other).toMatch(legal);
  });

  it("are legal and apart, whatever a model writes", () => {
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
  const oddIds = ["", "a b", "functions.add:0", "i".repeat(41), "ü", "a", "a", "\0"];

  it("are legal, one for each call of the request, and each result has its call's", () => {
    const round = oddIds.map((id) => ({ name: "f", id }));
    const sent = wired(rounds(round, round, [{ name: "f", id: "a" }]));
    const ids = callsIn(sent).map(({ id }) => id);
    expect(ids.filter((id) => !/^[a-zA-Z0-9_-]{1,40}$/.test(id))).toEqual([]);
    expect(new Set(ids).size).toBe(oddIds.length * 2 + 1);
    expect(sent.flatMap((message) => message.tool_call_id ?? [])).toEqual(ids);
    expect(sent.flatMap((message) => (message.role === "tool" ? message.content : []))).toEqual(
      [1, 2].flatMap((step) => oddIds.map((_, index) => `t:${step}:${index}`)).concat("t:3:0"),
    );
  });

  it("do not change when the conversation goes on", () => {
    const round = oddIds.map((id) => ({ name: "f", id }));
    const before = wired(rounds(round, round));
    expect(wired(rounds(round, round, round)).slice(0, before.length)).toEqual(before);
  });

  it("of a provider that are legal stay as they are", () => {
    const ids = ["call_1", "x".repeat(40), "9"];
    expect(callsIn(wired(rounds(ids.map((id) => ({ name: "f", id }))))).map(({ id }) => id)).toEqual(ids);
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

it("what is sent is what is counted: the bound of the prompt holds names and ids that were made", () => {
  const odd = rounds([{ name: "", id: "" }]);
  const sent = callsIn(wired(odd))[0];
  const plain = rounds([{ name: sent?.function.name ?? "", id: sent?.id ?? "" }]);
  expect(promptByteBound({ messages: odd })).toBe(promptByteBound({ messages: plain }));
});
