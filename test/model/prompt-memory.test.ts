import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PromptMemory } from "../../src/model/index.ts";
import type { Message, ModelRequest } from "../../src/state/index.ts";

const user = (content: string, id = content): Message => ({ role: "user", id, createdAt: 1, content, origin: "user" });
const system = (content: string): Message => ({ role: "system", id: "i", createdAt: 0, content, origin: "runtime" });
const tool = { name: "search", description: "Searches.", parameters: { type: "object" } };
const first: ModelRequest = { messages: [system("Be brief."), user("one")], tools: [tool] };
const longer: ModelRequest = { ...first, messages: [system("Be brief."), user("one"), user("two")] };

/** Stores that the first prompt, counted as 100 tokens in 400 bytes, has this many. */
function memoryOf(reported: number): PromptMemory {
  const memory = new PromptMemory();
  memory.noteAsked("call 1", { request: first, bound: 400, counted: 100 });
  memory.noteAnswered("call 1", reported);
  return memory;
}

describe("a prompt that begins with the last answered one", () => {
  const grown = { request: longer, bound: 600, counted: 150 };

  it("has as many tokens as the provider reported, and the counted rest", () => {
    expect(memoryOf(100).tokensOf(grown)).toBe(150);
    expect(memoryOf(60).tokensOf(grown)).toBe(110);
  });

  it("has a rest corrected by the earlier undercount, up to twice and never over its bytes", () => {
    expect(memoryOf(120).tokensOf(grown)).toBe(120 + 60);
    expect(memoryOf(1_000).tokensOf(grown)).toBe(1_000 + 100);
    expect(memoryOf(120).tokensOf({ request: longer, bound: 410, counted: 150 })).toBe(120 + 10);
  });

  it("has its bytes as the rest if nothing is counted", () => {
    expect(memoryOf(80).tokensOf({ request: longer, bound: 600 })).toBe(80 + 200);
  });

  it("has all tokens beyond the report as the rest if its beginning was not counted, never more than its bytes", () => {
    const memory = memoryOf(120);
    memory.noteAsked("call 2", { request: longer, bound: 600 });
    memory.noteAnswered("call 2", 180);
    const longest = { ...longer, messages: [...longer.messages, user("three")] };
    // The first count was too low by a fifth, and nothing was counted since.
    expect(memory.tokensOf({ request: longest, bound: 900, counted: 300 })).toBe(300 * 1.2);
    expect(memory.tokensOf({ request: longest, bound: 700, counted: 300 })).toBe(180 + 100);
    expect(memory.tokensOf({ request: longest, bound: 900, counted: 100 })).toBe(180);
    expect(memory.tokensOf({ request: longest, bound: 650 })).toBe(180 + 50);
  });

  it("is the same prompt again, after a failed attempt", () => {
    expect(memoryOf(80).tokensOf({ request: first, bound: 400, counted: 100 })).toBe(80);
  });

  it("is recognized by the sent content, not by ids and times", () => {
    const messages = [{ ...system("Be brief."), createdAt: 9 }, user("one", "another id"), user("two")];
    expect(memoryOf(100).tokensOf({ ...grown, request: { ...longer, messages } })).toBe(150);
  });
});

describe("any other prompt", () => {
  it.each<[string, ModelRequest]>([
    ["other instructions", { ...longer, messages: [system("Be long."), user("one"), user("two")] }],
    ["an edited message", { ...longer, messages: [system("Be brief."), user("one!"), user("two")] }],
    ["a removed message", { ...longer, messages: [system("Be brief."), user("two")] }],
    ["fewer messages", { ...longer, messages: [system("Be brief.")] }],
    ["another role", { ...longer, messages: [system("Be brief."), system("one"), user("two")] }],
    ["other tools", { ...longer, tools: [{ ...tool, description: "Finds." }] }],
    ["no tools", { messages: longer.messages }],
    ["another response format", { ...longer, responseFormat: { type: "json" } }],
  ])("is counted again: %s", (_what, request) => {
    expect(memoryOf(900).tokensOf({ request, bound: 600, counted: 150 })).toBe(150);
    expect(memoryOf(900).tokensOf({ request, bound: 600 })).toBe(600);
  });

  it("is also one whose answer came from another call", () => {
    const memory = new PromptMemory();
    memory.noteAsked("call 1", { request: first, bound: 400, counted: 100 });
    memory.noteAnswered("call 2", 900);
    expect(memory.tokensOf({ request: longer, bound: 600, counted: 150 })).toBe(150);
  });
});

it("a count never exceeds the reported tokens and the bytes of the rest", () => {
  const amount = fc.nat(5_000);
  fc.assert(
    fc.property(amount, amount, amount, amount, amount, (counted, reported, more, slack, moreSlack) => {
      const memory = new PromptMemory();
      const bound = counted + slack;
      memory.noteAsked("k", { request: first, bound, counted });
      memory.noteAnswered("k", reported);
      const rest = { bound: bound + more + moreSlack, counted: counted + more };
      const tokens = memory.tokensOf({ request: longer, ...rest });
      expect(tokens).toBeGreaterThanOrEqual(reported + more);
      expect(tokens).toBeLessThanOrEqual(reported + more + moreSlack);
    }),
    { seed: 17 },
  );
});
