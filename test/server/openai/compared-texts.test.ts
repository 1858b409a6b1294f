import { array, assert, constantFrom, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { isSameText, withoutImages } from "../../../src/server/openai/chat-request.ts";
import { amount } from "../../support/full.ts";

const plain = (text: string): string => text.replaceAll(/\s+/g, " ").trim();
const pieces = ["a", "b", " ", "\n", "\t", "\u00a0", "\u3000", "\ufeff", "![](", "![", "](", ")", "é"];
const text = array(constantFrom(...pieces), { maxLength: 8 }).map((list) => list.join(""));

describe("texts of a chat", () => {
  it("are equal if they differ in white space only", () => {
    assert(
      property(text, text, (one, other) => {
        expect(isSameText(one, other)).toBe(plain(one) === plain(other));
        expect(isSameText(one, plain(one))).toBe(true);
      }),
      { numRuns: amount(20_000, 2_000) },
    );
  });

  it("lose whole images, and keep text that only begins like one", () => {
    assert(
      property(text, (one) => {
        expect(withoutImages(one)).toBe(one.replaceAll(/!\[\]\([^)]*\)/g, ""));
      }),
      { numRuns: amount(20_000, 2_000) },
    );
  });

  it("are compared in one pass, however long they are", () => {
    const begun = "![](".repeat(100_000);
    expect(withoutImages(begun)).toBe(begun);
    const words = "a ".repeat(200_000);
    expect(isSameText(words, `${words}b`)).toBe(false);
  });
});
