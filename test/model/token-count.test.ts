import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { byteBound, countPromptTokens, countTokens, imageTokenBound, promptByteBound } from "../../src/model/index.ts";
import type { AssistantMessage, ModelRequest, ToolMessage } from "../../src/state/index.ts";
import { amount } from "../support/full.ts";
import { userMessage } from "../support/model-calls.ts";

describe("countTokens", () => {
  it("counts o200k_base, and treats special tokens as plain text", async () => {
    expect(await countTokens("")).toBe(0);
    expect(await countTokens("hello world")).toBe(2);
    expect(await countTokens("<|endoftext|>")).toBeGreaterThan(1);
  });

  it("never exceeds the bytes of any text", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary", maxLength: 3_000, size: "max" }), async (text) => {
        expect(await countTokens(text)).toBeLessThanOrEqual(byteBound(text));
      }),
      { numRuns: amount(60, 10), seed: 5 },
    );
  });

  it("counts long texts in parts with the same result if they contain spaces", async () => {
    const sentence = " The quick brown fox jumps over the lazy dog.";
    const once = await countTokens(sentence);
    expect(await countTokens(sentence.repeat(500))).toBe(once * 500);
  });

  it("is fast on a long run without spaces", async () => {
    await countTokens("warm");
    const start = process.cpuUsage();
    expect(await countTokens("a".repeat(200_000))).toBeGreaterThan(1_000);
    // Counted as one run this takes more than 20 seconds.
    expect(process.cpuUsage(start).user / 1_000).toBeLessThan(5_000);
  });
});

const assistant: AssistantMessage = {
  role: "assistant",
  id: "2",
  createdAt: 1,
  origin: "model",
  content: "four",
  toolCalls: [{ callId: "c", providerId: "p", name: "n".repeat(10), arguments: "a".repeat(100) }],
  reasoning: { reasoning_content: "r".repeat(1_000) },
};
const tool = { name: "f", description: "d".repeat(500), parameters: { type: "object", title: "t".repeat(500) } };
const picture = { type: "image", url: "https://example.com/a.png" } as const;

describe("promptByteBound", () => {
  const empty = promptByteBound({ messages: [userMessage("")] });

  it("counts texts, calls, reasoning, tools, schemas and images", () => {
    expect(promptByteBound({ messages: [userMessage("grüße")] }) - empty).toBe(7);
    expect(promptByteBound({ messages: [assistant] }) - empty).toBeGreaterThan(1_114);
    expect(promptByteBound({ messages: [userMessage("")], tools: [tool] }) - empty).toBeGreaterThan(1_000);
    const schema = { title: "t".repeat(300) };
    const formatted = {
      messages: [userMessage("")],
      responseFormat: { type: "json_schema", name: "o", schema },
    } as const;
    expect(promptByteBound(formatted) - empty).toBeGreaterThan(300);
    const pictured = { messages: [userMessage([picture])] };
    expect(promptByteBound(pictured) - empty).toBe(imageTokenBound);
    expect(promptByteBound(pictured, { imageTokens: 10 }) - empty).toBe(10);
  });

  it("counts the sent form: arguments that are not JSON are wrapped in an object, a tool's images have their own message", () => {
    const quoted = {
      ...assistant,
      toolCalls: [{ callId: "c", providerId: "p", name: "n", arguments: '"'.repeat(500) }],
    };
    const plain = {
      ...quoted,
      toolCalls: [{ callId: "c", providerId: "p", name: "n", arguments: `{"a":"${"b".repeat(500)}"}` }],
    };
    expect(promptByteBound({ messages: [quoted] })).toBeGreaterThan(promptByteBound({ messages: [plain] }) + 400);
    const result = { role: "tool", id: "t", callId: "c", providerId: "p", createdAt: 1, origin: "tool" } as const;
    const texts = (content: ToolMessage["content"]): number => promptByteBound({ messages: [{ ...result, content }] });
    expect(texts([picture]) - texts("")).toBeGreaterThan(imageTokenBound + 40);
  });
});

/** The processor time of counting a prompt, in microseconds. */
async function costOfCounting(request: ModelRequest): Promise<number> {
  const start = process.cpuUsage();
  await countPromptTokens(request);
  return process.cpuUsage(start).user;
}

describe("countPromptTokens", () => {
  it("counts texts, calls, reasoning, tools, schemas and images", async () => {
    const empty = await countPromptTokens({ messages: [userMessage("")] });
    const more = async (request: ModelRequest, imageTokens?: number) =>
      (await countPromptTokens(request, { imageTokens })) - empty;
    expect(await more({ messages: [userMessage("hello world")] })).toBe(2);
    expect(await more({ messages: [assistant] })).toBeGreaterThan(150);
    expect(await more({ messages: [userMessage("")], tools: [tool] })).toBeGreaterThan(500);
    const responseFormat = { type: "json_schema", name: "o", schema: { title: "apples and pears" } } as const;
    expect(await more({ messages: [userMessage("")], responseFormat })).toBeGreaterThan(10);
    expect(await more({ messages: [userMessage([picture])] })).toBe(imageTokenBound);
    expect(await more({ messages: [userMessage([picture])] }, 10)).toBe(10);
  });

  it("counts a conversation once: later counts add only its new messages", async () => {
    const messages = Array.from({ length: 300 }, (_, index) => userMessage(`${index} is a number. `.repeat(200)));
    const first = await costOfCounting({ messages });
    const second = await costOfCounting({ messages: [...messages, userMessage("and one more")] });
    expect(second).toBeLessThan(first / 5);
  });

  it("lets other work run while it counts a long prompt", async () => {
    let turns = 0;
    let isCounting = true;
    const others = (async () => {
      while (isCounting) {
        await new Promise((resolve) => setImmediate(resolve));
        turns += 1;
      }
    })();
    await countPromptTokens({ messages: [userMessage("The quick brown fox. ".repeat(50_000))] });
    isCounting = false;
    await others;
    expect(turns).toBeGreaterThan(10);
  });

  it("never exceeds the bytes of any prompt", async () => {
    const text = fc.oneof(fc.string({ unit: "grapheme" }), fc.string({ unit: "binary" }), fc.lorem({ maxCount: 40 }));
    const call = fc.record({
      callId: fc.constant("c"),
      providerId: text,
      name: text,
      arguments: fc.oneof(text, fc.json()),
    });
    const message = fc.oneof(
      text.map(userMessage),
      fc
        .record({ toolCalls: fc.array(call, { maxLength: 3 }), content: text })
        .map((parts) => ({ ...assistant, ...parts })),
      fc
        .array(
          fc.oneof(
            text.map((each) => ({ type: "text" as const, text: each })),
            fc.constant(picture),
          ),
        )
        .map(userMessage),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(message), fc.array(text), async (messages, names) => {
        const tools = names.map((name) => ({ name, description: name, parameters: { type: "object", title: name } }));
        const request: ModelRequest = { messages, tools };
        expect(await countPromptTokens(request)).toBeLessThanOrEqual(promptByteBound(request));
      }),
      { numRuns: amount(200, 33), seed: 3 },
    );
  });
});

const afresh = (request: ModelRequest): ModelRequest => JSON.parse(JSON.stringify(request)) as ModelRequest;
const measures = async (request: ModelRequest): Promise<readonly unknown[]> => [
  promptByteBound(request),
  promptByteBound(request, { imageTokens: 7 }),
  await countPromptTokens(request),
];

describe("a growing conversation", () => {
  it("has the same count as in one piece, with images and calls, in branches, and for models with other images", async () => {
    const image = { type: "image", url: "data:image/png;base64,AA==" } as const;
    const tools = [{ name: "look", description: "Looks.", parameters: { type: "object" } }];
    const messages: ModelRequest["messages"][number][] = [];
    const requests: ModelRequest[] = [];
    for (let index = 0; index < 20; index += 1) {
      const named = { callId: `t:${index}:0`, providerId: `call_${index}` };
      const call = { ...named, name: "look", arguments: "{}" };
      const sent = { ...named, createdAt: 1, origin: "model" };
      messages.push(
        { ...userMessage(`question ${index}`), id: `q${index}` },
        { ...assistant, id: `a${index}`, toolCalls: [call] },
        { role: "tool", ...sent, id: call.callId, content: index % 3 === 0 ? [image] : `result ${index}` },
      );
      requests.push({ messages: [...messages] }, { messages: [...messages], tools });
      for (const request of requests.slice(-2))
        expect(await measures(request)).toEqual(await measures(afresh(request)));
    }
    for (const text of ["one", "another"]) {
      requests.push({ messages: [...messages, { ...userMessage(text), id: text }], tools });
    }
    requests.push({ messages: messages.with(4, { ...userMessage("changed"), id: "changed" }) });
    for (const request of requests.slice(-3)) expect(await measures(request)).toEqual(await measures(afresh(request)));
  });
});
