import { describe, expect, it } from "vitest";
import { newsOf, runInputSchema, toldIn } from "../../src/server/ag-ui/run-input.ts";
import { ClientMessages } from "../../src/server/ag-ui/client-messages.ts";
import { shownMessages, withClientNames } from "../../src/server/ag-ui/stored-messages.ts";
import { chatBodySchema, readChat } from "../../src/server/openai/chat-request.ts";
import { isShown, type ShownItem } from "../../src/server/openai/shown-history.ts";
import { createBodySchema, readInput } from "../../src/server/openai/response-input.ts";
import { defineAgent } from "troupe";
import { scriptedModel } from "troupe/testing";

/** A list whose reads are counted, including those of its items' properties. */
function counted<Item extends object>(items: readonly Item[]): { readonly list: Item[]; readonly reads: () => number } {
  let reads = 0;
  const watch = <T extends object>(value: T): T =>
    new Proxy(value, {
      get(target, name, receiver) {
        reads += 1;
        return Reflect.get(target, name, receiver) as unknown;
      },
    });
  return { list: watch(items.map((item) => watch(item))), reads: () => reads };
}

/** The ratio of reads for a body of twice the length. */
function growth<Item extends object>(itemAt: (index: number) => Item, work: (items: Item[]) => unknown): number {
  const [once, twice] = [500, 1_000].map((length) => {
    const { list, reads } = counted(Array.from({ length }, (_, index) => itemAt(index)));
    work(list);
    return reads();
  }) as [number, number];
  return twice / once;
}

const LINEAR = 2.2;

function shownItemAt(index: number): ShownItem {
  const base = { id: `a#${index}:in`, turnId: `a#${index}`, text: String(index) };
  return index % 2 ? { ...base, kind: "answer", isPrompt: false } : { ...base, kind: "said" };
}

describe("the work on a history grows linearly with its length", () => {
  const said = { id: "u", role: "user", content: "a" } as const;
  const agUi: readonly (readonly [string, (index: number) => object])[] = [
    ["answers of one id", () => ({ id: "a#1:1", role: "assistant", content: "b" })],
    ["pairs of one turn", (index) => (index % 2 ? { id: "a#1:1", role: "assistant", content: "b" } : said)],
    ["pairs of many turns", (index) => (index % 2 ? { id: `a#${index}:1`, role: "assistant", content: "b" } : said)],
    ["results of tools", (index) => ({ id: `t${index}`, role: "tool", toolCallId: `c${index}`, content: "a" })],
  ];

  it.each(agUi)("AG-UI: %s", (_, itemAt) => {
    const messageAt = (index: number) =>
      runInputSchema.parse({ threadId: "t", runId: "r", messages: [itemAt(index)] }).messages[0] ?? said;
    const names = { turnId: "a#1", said: null, keepsSaid: true, isOver: false } as const;
    const factor = growth(messageAt, (messages) => {
      newsOf({ messages });
      const told = toldIn({ messages }, new Map());
      const shown = withClientNames(shownMessages([]), { ...names, told });
      return new ClientMessages(messages).hasJust(shown, new Set([undefined]));
    });
    expect(factor).toBeLessThan(LINEAR);
  });

  it("AG-UI: earlier messages of one turn are collected once", () => {
    const messages = Array.from({ length: 2_000 }, (_, index) =>
      index % 2 ? { id: "a#1:1", role: "assistant" as const, content: "b" } : { ...said, id: `u${index}` },
    );
    const { before, last } = toldIn({ messages }, new Map());
    expect(before.get("a#1")?.map(({ id }) => id)).toEqual(
      Array.from({ length: 1_000 }, (_, index) => `u${index * 2}`),
    );
    expect(last).toEqual([]);
  });

  const definition = defineAgent({ name: "desk", model: scriptedModel(() => "done") });
  const chats: readonly (readonly [string, (index: number) => object])[] = [
    ["messages of a user", () => ({ role: "user", content: "" })],
    ["pairs", (index) => ({ role: index % 2 ? "user" : "assistant", content: "a" })],
    ["results of tools", (index) => ({ role: "tool", tool_call_id: `c${index}`, content: "a" })],
  ];

  it.each(chats)("chat completions: %s", (_, itemAt) => {
    const body = chatBodySchema.parse({ model: "desk", messages: [itemAt(0)] });
    const messageAt = (index: number) =>
      chatBodySchema.parse({ model: "desk", messages: [itemAt(index)] }).messages[0] ?? { role: "user" as const };
    const factor = growth(messageAt, (messages) => readChat({ ...body, messages }, { definition, takesSystem: true }));
    expect(factor).toBeLessThan(LINEAR);
  });

  it("chat completions: a history compared with a stored one", () => {
    const factor = growth(
      (index) => ({ role: index % 2 ? ("assistant" as const) : ("user" as const), text: String(index) }),
      (history) => {
        const items = Array.from({ length: history.length }, (_, index) => shownItemAt(index));
        expect(isShown(items, history)).toBe(true);
      },
    );
    expect(factor).toBeLessThan(LINEAR);
  });

  const inputs: readonly (readonly [string, (index: number) => Record<string, unknown>])[] = [
    ["messages", () => ({ role: "user", content: "a" })],
    ["outputs", (index) => ({ type: "function_call_output", call_id: `c${index}`, output: "a" })],
  ];

  it.each(inputs)("responses: %s", (_, itemAt) => {
    const body = createBodySchema.parse({ model: "desk", input: "a" });
    const factor = growth(itemAt, (input) => readInput({ ...body, input }));
    expect(factor).toBeLessThan(LINEAR);
  });
});

describe("answers of one request", () => {
  it("are at most 1,000", () => {
    const results = Array.from({ length: 1_001 }, (_, index) => ({
      role: "tool",
      tool_call_id: `c${index}`,
      content: "",
    }));
    const definition = defineAgent({ name: "desk", model: scriptedModel(() => "done") });
    const chat = chatBodySchema.parse({ model: "desk", messages: results });
    expect(() => readChat(chat, { definition, takesSystem: true })).toThrow(
      "a request accepts at most 1000 results of tools; it has 1001",
    );
    const outputs = results.map(({ tool_call_id: call_id }) => ({ type: "function_call_output", call_id, output: "" }));
    expect(() => readInput(createBodySchema.parse({ model: "desk", input: outputs }))).toThrow(
      "input accepts at most 1000 answers; it has 1001",
    );
    const resume = results.map(({ tool_call_id: interruptId }) => ({ interruptId, status: "cancelled" }));
    expect(runInputSchema.safeParse({ threadId: "t", runId: "r", messages: [], resume }).error?.issues).toMatchObject([
      { path: ["resume"], code: "too_big", maximum: 1_000 },
    ]);
  });
});
