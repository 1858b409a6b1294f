import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { byteBound, countTokens, imageTokenBound, promptTokenBound } from "../../src/model/index.ts";
import type { AssistantMessage } from "../../src/state/index.ts";
import { userMessage } from "../support/model-calls.ts";

describe("countTokens", () => {
  it("counts o200k_base, and takes special tokens for plain text", async () => {
    expect(await countTokens("")).toBe(0);
    expect(await countTokens("hello world")).toBe(2);
    expect(await countTokens("<|endoftext|>")).toBeGreaterThan(1);
  });

  it("never exceeds the bytes, whatever the text", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary", maxLength: 3_000, size: "max" }), async (text) => {
        expect(await countTokens(text)).toBeLessThanOrEqual(byteBound(text));
      }),
      { numRuns: 60 },
    );
  });

  it("counts long texts in parts without changing the number, where there are spaces", async () => {
    const sentence = " The quick brown fox jumps over the lazy dog.";
    const once = await countTokens(sentence);
    expect(await countTokens(sentence.repeat(500))).toBe(once * 500);
  });

  it("stays quick on a long run without spaces", async () => {
    await countTokens("warm");
    const start = process.cpuUsage();
    expect(await countTokens("a".repeat(200_000))).toBeGreaterThan(1_000);
    // Counted as one run this takes 20 seconds and more.
    expect(process.cpuUsage(start).user / 1_000).toBeLessThan(5_000);
  });
});

describe("promptTokenBound", () => {
  const empty = promptTokenBound({ messages: [userMessage("")] }, "bytes");

  it("counts texts, calls, reasoning, tools, schemas and images", () => {
    const assistant: AssistantMessage = {
      role: "assistant",
      id: "2",
      createdAt: 1,
      origin: "model",
      content: "four",
      toolCalls: [{ callId: "c", providerId: "p", name: "n".repeat(10), arguments: "a".repeat(100) }],
      reasoning: { reasoning_content: "r".repeat(1_000) },
    };
    expect(promptTokenBound({ messages: [userMessage("grüße")] }, "bytes") - empty).toBe(7);
    expect(promptTokenBound({ messages: [assistant] }, "bytes") - empty).toBeGreaterThan(1_114);
    const tool = { name: "f", description: "d".repeat(500), parameters: { type: "object", title: "t".repeat(500) } };
    expect(promptTokenBound({ messages: [userMessage("")], tools: [tool] }, "bytes") - empty).toBeGreaterThan(1_000);
    const schema = { title: "t".repeat(300) };
    const formatted = {
      messages: [userMessage("")],
      responseFormat: { type: "json_schema", name: "o", schema },
    } as const;
    expect(promptTokenBound(formatted, "bytes") - empty).toBeGreaterThan(300);
    const pictured = { messages: [userMessage([{ type: "image", url: "https://example.com/a.png" }])] };
    expect(promptTokenBound(pictured, "bytes") - empty).toBe(imageTokenBound);
    expect(promptTokenBound(pictured, "bytes", 10) - empty).toBe(10);
  });

  it("in bytes is never below what the tokenizer counts", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.string({ unit: "grapheme" })), async (texts) => {
        const request = { messages: texts.map(userMessage) };
        expect(await promptTokenBound(request, "tokenizer")).toBeLessThanOrEqual(
          promptTokenBound(request, "bytes") + texts.length,
        );
      }),
      { numRuns: 40 },
    );
  });
});
