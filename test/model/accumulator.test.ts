import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ModelError } from "../../src/errors/index.ts";
import { AnswerAccumulator } from "../../src/model/accumulator.ts";
import type { ModelDelta } from "../../src/model/index.ts";
import { deltaText } from "../support/model-calls.ts";

const chunkOf = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
});
const pieces = (text: string, cuts: readonly number[]): readonly string[] => {
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((place, index) => text.slice(place, places[index] ?? text.length));
};
const cuts = fc.array(fc.nat(), { maxLength: 6 });
const calls = fc.array(
  fc.record({ name: fc.string({ minLength: 1 }), input: fc.dictionary(fc.string(), fc.jsonValue()) }),
  { maxLength: 4 },
);

describe("AnswerAccumulator", () => {
  it("returns the same answer however the text and the calls were split", () => {
    fc.assert(
      fc.property(fc.string(), calls, cuts, (text, asked, places) => {
        const accumulator = new AnswerAccumulator();
        const heard: ModelDelta[] = [];
        for (const content of pieces(text, places)) accumulator.add(chunkOf({ content }), (delta) => heard.push(delta));
        for (const [index, { name, input }] of asked.entries()) {
          const [first = "", ...rest] = pieces(JSON.stringify(input), places);
          accumulator.add(
            chunkOf({ tool_calls: [{ index, id: `id-${index}`, function: { name, arguments: first } }] }),
          );
          for (const piece of rest)
            accumulator.add(chunkOf({ tool_calls: [{ index, function: { arguments: piece } }] }));
        }
        accumulator.add(chunkOf({}, "stop"));
        const answer = accumulator.answer("m");
        expect(answer.content).toBe(text);
        expect(heard.map(deltaText).join("")).toBe(text);
        expect(answer.toolCalls).toEqual(
          asked.map(({ name, input }, index) => ({ id: `id-${index}`, name, arguments: JSON.stringify(input) })),
        );
        expect(accumulator.isFinished).toBe(true);
      }),
    );
  });

  it("accepts any JSON, and fails only with a ModelError", () => {
    const field = fc.oneof(fc.jsonValue(), fc.constant([{ index: 0 }]), fc.constant([null]));
    const delta = fc.record({
      content: field,
      tool_calls: field,
      reasoning_details: field,
      reasoning: field,
      role: field,
    });
    const anyChunk = fc.oneof(
      fc.jsonValue(),
      fc.record({ usage: fc.jsonValue(), choices: fc.array(fc.record({ delta, finish_reason: fc.jsonValue() })) }),
    );
    fc.assert(
      fc.property(fc.array(anyChunk), (chunks) => {
        const accumulator = new AnswerAccumulator();
        const failures: unknown[] = [];
        for (const chunk of chunks) {
          try {
            accumulator.add(chunk);
          } catch (error) {
            failures.push(error);
          }
        }
        expect(failures.filter((error) => !(error instanceof ModelError))).toEqual([]);
        expect(typeof accumulator.answer("m").content).toBe("string");
      }),
    );
  });

  it("ignores a whole message that repeats what was streamed", () => {
    const accumulator = new AnswerAccumulator();
    accumulator.add(chunkOf({ content: "once" }));
    accumulator.add({ choices: [{ message: { content: "once" }, finish_reason: "stop" }] });
    expect(accumulator.answer("m").content).toBe("once");
  });

  it("joins the pieces of reasoning details by type, index and id, if they have one", () => {
    const accumulator = new AnswerAccumulator();
    const detailsOf = (): unknown => accumulator.answer("m").reasoning?.["reasoning_details"];
    const add = (...reasoning_details: readonly object[]): void => accumulator.add(chunkOf({ reasoning_details }));
    add({ type: "text", index: 0, text: "a" }, { type: "text", index: 1, text: "x", id: "one" });
    add({ type: "text", index: 0, text: "b", id: "zero" }, { type: "text", index: 1, text: "y", id: "two" });
    add({ type: "text", index: 0, text: "c", id: null }, { type: "text", index: 1, text: "z" });
    add({ type: "text", index: 0, text: "d", id: "other" }, { type: "text", index: 1, text: "!", id: "one" });
    add({ type: "summary", index: 0, summary: "s" });
    expect(detailsOf()).toEqual([
      { type: "text", index: 0, text: "abc", id: "zero" },
      { type: "text", index: 1, text: "x!", id: "one" },
      { type: "text", index: 1, text: "yz", id: "two" },
      { type: "text", index: 0, text: "d", id: "other" },
      { type: "summary", index: 0, summary: "s" },
    ]);
  });

  it("keeps the first model name and the last usage", () => {
    const accumulator = new AnswerAccumulator();
    accumulator.add({
      model: "served",
      ...chunkOf({ content: "a" }),
      usage: { prompt_tokens: 1, completion_tokens: 1 },
    });
    accumulator.add({ model: "", choices: [], usage: { prompt_tokens: 1, completion_tokens: 5 } });
    accumulator.add({ choices: [], usage: null });
    expect(accumulator.answer("requested")).toMatchObject({ model: "served", usage: { outputTokens: 5 } });
  });
});
