import { describe, expect, it } from "vitest";
import { countTokens } from "../../src/model/index.ts";
import { byteBound, estimateTokens } from "../../src/model/token-count.ts";

const sentence = " The quick brown fox jumps over the lazy dog.";
/** Letters that form no words. */
const letters = (length: number): string =>
  Array.from({ length }, (_, index) => String.fromCharCode(97 + ((index * index * 7 + index) % 26))).join("");

describe("estimateTokens", () => {
  it("counts a text of up to 262,144 characters", async () => {
    for (const text of ["", "hello world", sentence.repeat(5_800)]) {
      expect(await estimateTokens(text)).toBe(await countTokens(text));
    }
  });

  it("approximates the count of a longer text, also if its parts differ", async () => {
    const text = sentence.repeat(20_000) + letters(300_000);
    const [estimated, exact] = [await estimateTokens(text), await countTokens(text)];
    expect(Math.abs(estimated - exact) / exact).toBeLessThan(0.02);
    expect(estimated).not.toBe(exact);
  });

  it("takes no longer for an even longer text, and never exceeds its bytes", async () => {
    const text = letters(2 ** 16).repeat(2 ** 9);
    await countTokens("warm");
    const start = process.cpuUsage();
    expect(await estimateTokens(text)).toBeLessThanOrEqual(byteBound(text));
    // Counted as a whole, 32 million such characters take more than 30 seconds.
    expect(process.cpuUsage(start).user / 1_000).toBeLessThan(5_000);
  });
});
