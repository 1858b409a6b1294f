import * as fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ModelError } from "../../src/errors/index.ts";
import { ToolCallParts } from "../../src/model/tool-call-parts.ts";

/** A piece from servers that repeat the tool's name and send neither id nor index. */
const piece = (args: string, name = "look") => ({ function: { name, arguments: args } });

const added = (...pieces: readonly object[]): ToolCallParts => {
  const parts = new ToolCallParts();
  for (const each of pieces) parts.add(each, false);
  return parts;
};

const argumentsOf = (...texts: readonly string[]): readonly string[] =>
  added(...texts.map((text) => piece(text)))
    .calls("seed")
    .map((call) => call.arguments);

/** Whether a text parses as one object. */
function isObject(text: string): boolean {
  try {
    return text.trimStart().startsWith("{") && typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe("a tool call whose name is sent with every piece", () => {
  it("continues until its arguments are one complete object; the next piece begins another call", () => {
    expect(argumentsOf('{"a":', '"}"', "}", '{"b":1}')).toEqual(['{"a":"}"}', '{"b":1}']);
    expect(argumentsOf('{"a":"\\"', '}"', " } \n", "{}")).toEqual(['{"a":"\\"}" } \n', "{}"]);
    expect(argumentsOf('{"a":[{}', "]}", '{"b":1}')).toEqual(['{"a":[{}]}', '{"b":1}']);
  });

  it("continues after a text that only looks like its end", () => {
    expect(argumentsOf("{]", '{"a":1}')).toEqual(['{]{"a":1}']);
    expect(argumentsOf("x{}", "{}")).toEqual(["x{}{}"]);
    expect(argumentsOf("{}x", "{}")).toEqual(["{}x{}"]);
    expect(argumentsOf("[{}]", "{}")).toEqual(["[{}]{}"]);
  });

  it("is followed by another where the joined arguments parse as an object, however they were split", () => {
    const json = fc.oneof(
      fc.object().map((value) => JSON.stringify(value, null, 1)),
      fc.string({ unit: fc.constantFrom("{", "}", "[", "]", '"', "\\", ",", ":", " ", "a", "\n") }),
    );
    const cut = fc.tuple(json, fc.array(fc.nat(), { maxLength: 5 })).map(([text, places]) => {
      const ordered = places.map((place) => place % (text.length + 1)).toSorted((one, other) => one - other);
      return [0, ...ordered].map((place, index) => text.slice(place, ordered[index] ?? text.length));
    });
    fc.assert(
      fc.property(cut, (texts) => {
        const expected: string[] = [];
        for (const text of texts) {
          const last = expected.at(-1);
          if (last === undefined || (isObject(last) && text.trim() !== "")) expected.push(text);
          else expected[expected.length - 1] = last + text;
        }
        const whole = expected.map((text) => (text.trim() === "" ? "{}" : text));
        expect(argumentsOf(...texts)).toEqual(whole);
      }),
    );
  });

  it("is parsed once at most, however many pieces end in a bracket", () => {
    const parse = vi.spyOn(JSON, "parse");
    const texts = ['{"a":"', ...Array.from({ length: 500 }, () => "}"), '"}', " ", " "];
    expect(argumentsOf(...texts)).toEqual([texts.join("")]);
    expect(parse.mock.calls.length).toBeLessThanOrEqual(1);
  });
});

describe("a thousand tool calls", () => {
  it("are permitted, and one more ends the answer while it is received", () => {
    const parts = added(...Array.from({ length: 1_000 }, (_, index) => ({ id: `call-${index}`, ...piece("{}") })));
    expect(parts.calls("seed")).toHaveLength(1_000);
    const more = (): void => parts.add({ id: "one more", ...piece("{}") }, false);
    expect(more).toThrow(ModelError);
    expect(more).toThrow("more than the permitted 1000 tool calls");
  });
});
