import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { AnswerAccumulator } from "../../src/model/accumulator.ts";
import type { ModelDelta } from "../../src/model/index.ts";
import { readAnswer } from "../../src/model/read-answer.ts";
import { deltaText } from "../support/model-calls.ts";

/** An answer whose body arrives in these pieces, which may end inside a character. */
function answerOf(reads: readonly string[]): Response {
  const bytes = Buffer.from(reads.join(""));
  const body = new ReadableStream({
    start: (controller) => {
      let start = 0;
      for (const index of reads.keys()) {
        const end = Buffer.byteLength(reads.slice(0, index + 1).join(""));
        if (end > start) controller.enqueue(bytes.subarray(start, end));
        start = Math.max(start, end);
      }
      controller.close();
    },
  });
  return new Response(body);
}

const reading = {
  signal: new AbortController().signal,
  asksForStream: true,
  onForm: () => undefined,
  onProgress: () => undefined,
  onWork: () => undefined,
  onLastEvent: () => undefined,
};

async function readOf(reads: readonly string[]) {
  const accumulator = new AnswerAccumulator();
  const heard: ModelDelta[] = [];
  const onDelta = (delta: ModelDelta): number => heard.push(delta);
  await readAnswer(answerOf(reads), accumulator, { ...reading, onDelta });
  return { answer: accumulator.answer("m"), isFinished: accumulator.isFinished, heard };
}

const event = (data: string): string => `data: ${data}\n\n`;
const toldOf = (heard: readonly ModelDelta[], wanted: ModelDelta["type"]): string =>
  heard.map((delta) => (delta.type === wanted ? deltaText(delta) : "")).join("");
const piece = (content: string, fields: object = {}): string =>
  event(JSON.stringify({ id: "a", choices: [{ index: 0, delta: { content } }], ...fields }));

/** The fields of a chunk other than its text. */
interface Shape {
  readonly extra: object;
  readonly beside: object;
  readonly isFirst: boolean;
  readonly isPadded: boolean;
}

const chunkOf = (content: string, { extra, beside, isFirst, isPadded }: Shape): object => ({
  id: "a",
  ...(isFirst ? extra : {}),
  choices: [{ index: 0, delta: isFirst ? { ...beside, content } : { content, ...beside }, finish_reason: null }],
  ...(isFirst ? {} : extra),
  ...(isPadded ? { obfuscation: "x".repeat(content.length % 5) } : {}),
});

describe("an event stream", () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: "binary" }),
    fc.constantFrom("word", 'say "no"', "a\nb", "\\", "é"),
  );
  const extra = fc.constantFrom<object>(
    {},
    { usage: null },
    { usage: { prompt_tokens: 3, completion_tokens: 2 } },
    { service_tier: null, content: "decoy" },
  );
  const beside = fc.constantFrom<object>(
    {},
    { role: "assistant" },
    { refusal: null, tool_calls: [] },
    { reasoning: "think" },
    { refusal: "no" },
    { tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }] },
  );
  const shape = fc.record({ extra, beside, isFirst: fc.boolean(), isSpaced: fc.boolean(), isPadded: fc.boolean() });

  it("returns the parsed chunks, also if a chunk equals the one before", async () => {
    const part = fc.record({ shape, texts: fc.array(text, { minLength: 1, maxLength: 5 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 4 }), fc.nat(), async (parts, cut) => {
        const chunks = parts.flatMap(({ shape, texts }) =>
          texts.map((content) => {
            const json = JSON.stringify(chunkOf(content, shape));
            return shape.isSpaced ? json.replaceAll('":', '": ') : json;
          }),
        );
        const accumulator = new AnswerAccumulator();
        const expected: ModelDelta[] = [];
        for (const json of chunks) accumulator.add(JSON.parse(json), (delta) => expected.push(delta));
        const body = chunks.map(event).join("");
        const place = cut % (body.length + 1);
        const { answer, heard } = await readOf([body.slice(0, place), body.slice(place)]);
        expect(answer).toEqual(accumulator.answer("m"));
        expect(toldOf(heard, "text")).toBe(toldOf(expected, "text"));
        expect(toldOf(heard, "reasoning")).toBe(toldOf(expected, "reasoning"));
      }),
    );
  });

  it("parses only the first of chunks that differ in their text only", async () => {
    const parse = vi.spyOn(JSON, "parse");
    const chunks = ["one", " two", " three", ""].map((text) => piece(text, { obfuscation: "x".repeat(text.length) }));
    const { answer } = await readOf(chunks);
    const parsed = parse.mock.calls.length;
    parse.mockRestore();
    expect(answer.content).toBe("one two three");
    // From the second time on the pattern is used.
    expect(parsed).toBe(2);
  });

  it("reports text that arrives together as one piece, and the part before an error", async () => {
    const thought = event(JSON.stringify({ choices: [{ delta: { reasoning: "hm" } }] }));
    const { heard } = await readOf([piece("a") + piece("b") + thought + piece("c"), piece("d")]);
    expect(heard).toEqual([
      { type: "text", text: "ab" },
      { type: "reasoning", text: "hm" },
      { type: "text", text: "c" },
      { type: "text", text: "d" },
    ]);
    const cut: ModelDelta[] = [];
    const onDelta = (delta: ModelDelta): number => cut.push(delta);
    const broken = answerOf([piece("a") + piece("b") + event("{")]);
    const read = readAnswer(broken, new AnswerAccumulator(), { ...reading, onDelta });
    await expect(read).rejects.toThrow(SyntaxError);
    expect(cut).toEqual([{ type: "text", text: "ab" }]);
  });

  it("refuses broken JSON that looks like a chunk of text", async () => {
    for (const text of ["a\u0001b", String.raw`a\xb`]) {
      const whole = piece("ab");
      await expect(readOf([whole + whole.replace('"ab"', `"${text}"`)])).rejects.toThrow(SyntaxError);
    }
  });
});
