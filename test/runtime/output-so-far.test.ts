import { expect, it } from "vitest";
import { OutputSoFar } from "../../src/runtime/follow/output-so-far.ts";

/** The characters that are read for each character of an answer of this length. */
function workFor(length: number): number {
  let work = 0;
  const output = new OutputSoFar((text) => {
    work += text.length;
    return text;
  });
  for (let end = 1; end <= length; end += 1) output.next("x".repeat(end), false);
  return work / length;
}

it("reads and shows an answer in pieces with work that is linear in its length", () => {
  expect(workFor(8_000)).toBeLessThan(25);
  expect(workFor(2_000)).toBeLessThan(25);
});

it("shows a value once, and the last one when the answer is complete", () => {
  const output = new OutputSoFar((text) => text.trim());
  expect(output.next("a", false)).toBe("a");
  expect(output.next(`a${" ".repeat(20)}`, false)).toBeUndefined();
  expect(output.next(`a${" ".repeat(20)}b`, false)).toBeUndefined();
  expect(output.next(`a${" ".repeat(20)}b`, true)).toBe(`a${" ".repeat(20)}b`);
  expect(output.next(`a${" ".repeat(20)}b`, true)).toBeUndefined();
});
