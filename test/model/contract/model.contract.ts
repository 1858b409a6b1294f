import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { wireUsage } from "../../../examples/wire-formats/wire-format.ts";
import { defineAgent, defineTool, type LanguageModel, ModelError, type ModelRequest, run } from "../../../src/index.ts";
import type { ModelDelta } from "../../../src/model/index.ts";
import { type Capability, measure } from "./capabilities.ts";
import type { ModelFamily } from "./families.ts";
import { type FamilyReply, familyServer } from "./model-server.ts";
import { requestedFormat, thoughtIn, whereIs } from "./request-shape.ts";

const question: ModelRequest = {
  messages: [{ id: "1", role: "user", createdAt: 0, origin: "user", content: "How high is the Eiger?" }],
};
const image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const pdf = "JVBERi0xLjQKJeLjz9MKMSAwIG9iagpl";
const imageUrl = `data:image/png;base64,${image}`;

function imageRequest(url: string): ModelRequest {
  const content = [
    { type: "text", text: "What is that?" },
    { type: "image", url },
  ] as const;
  return { messages: [{ id: "1", role: "user", createdAt: 0, origin: "user", content }] };
}

async function generated(model: LanguageModel, request = question) {
  const deltas: ModelDelta[] = [];
  const { signal } = new AbortController();
  const answer = await model.generate(request, { signal, onDelta: (delta) => deltas.push(delta) });
  const joined = (type: ModelDelta["type"]) =>
    deltas.map((delta) => (delta.type === type && "text" in delta ? delta.text : "")).join("");
  return { answer, joined };
}

async function failureOf(model: LanguageModel, request = question, signal = new AbortController().signal) {
  const failure = await model.generate(request, { signal, onDelta: () => undefined }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ModelError);
  return failure as ModelError;
}

const height = defineTool({
  name: "height",
  description: "Looks a height up.",
  parameters: z.object({ of: z.string() }),
  effect: "none",
  execute: ({ of }) => `${of}: 3,967 m`,
});
const photo = defineTool({
  name: "photo",
  description: "Shows a mountain.",
  parameters: z.object({}),
  effect: "none",
  execute: () => [
    { type: "text" as const, text: "A photo." },
    { type: "image" as const, url: imageUrl },
  ],
});

/** What every adapter has to do with every provider. What differs is measured, and listed in docs/providers.md. */
export function modelContract(family: ModelFamily): void {
  const { format } = family;
  const serve = (...replies: readonly FamilyReply[]) => familyServer(family, replies);
  const is = (capability: Capability, value: boolean | string) => measure(family.name, capability, value);

  describe("an answer", () => {
    test("streams its text, each piece once", async () => {
      const { model } = await serve({ text: "3,967 metres." });
      const { answer, joined } = await generated(model());
      expect(joined("text")).toBe("3,967 metres.");
      expect(answer).toMatchObject({ content: "3,967 metres.", finishReason: "stop", toolCalls: [] });
    });

    test("streams its thought apart from its text", async () => {
      const { model } = await serve({ thought: "Bernese Alps.", text: "3,967 metres." });
      const { answer, joined } = await generated(model());
      expect(joined("reasoning")).toBe("Bernese Alps.");
      expect(answer.content).toBe("3,967 metres.");
      is("Thoughts shown", joined("reasoning") !== "");
    });

    test("reports its usage", async () => {
      const { model } = await serve({ thought: "Bernese Alps.", text: "3,967 metres." });
      const { usage } = (await generated(model())).answer;
      expect(usage).toMatchObject({ inputTokens: wireUsage.input, outputTokens: wireUsage.output });
      expect(usage.estimated).toBeUndefined();
      expect([undefined, 0, wireUsage.cached]).toContain(usage.cachedInputTokens);
      is("Cached tokens", usage.cachedInputTokens === wireUsage.cached);
      is("Thinking tokens", usage.reasoningTokens === wireUsage.reasoning);
    });

    test.each(["none", "unusable"] as const)("whose usage is %s is counted here", async (usage) => {
      const { model } = await serve({ text: "3,967 metres.", usage });
      const counted = (await generated(model())).answer.usage;
      expect(counted).toMatchObject({ estimated: true });
      expect(counted.inputTokens).toBeGreaterThan(0);
      expect(counted.inputTokens).toBeLessThan(100);
      expect(counted.outputTokens).toBeGreaterThan(0);
      expect(counted.outputTokens).toBeLessThan(100);
    });

    test("that is cut by the limit has the finish reason length", async () => {
      const { model } = await serve({ text: "3,9", end: "length" });
      expect((await generated(model())).answer).toMatchObject({ content: "3,9", finishReason: "length" });
    });

    test.skipIf(!format.ends.includes("filter"))(
      "that a filter stops has the finish reason content_filter",
      async () => {
        const { model } = await serve({ text: "3,9", end: "filter" });
        expect((await generated(model())).answer).toMatchObject({ content: "3,9", finishReason: "content_filter" });
      },
    );

    test.skipIf(!format.ends.includes("refusal"))("in which the model declines keeps the model's words", async () => {
      const { model } = await serve({ text: "I cannot help with that.", end: "refusal" });
      const { answer } = await generated(model());
      expect(answer.content).toBe("I cannot help with that.");
      expect(["content_filter", "stop"]).toContain(answer.finishReason);
    });

    test("keeps its text and calls if the format has new events and fields", async () => {
      const calls = [{ id: "abcdefgh1", name: "height", arguments: { of: "Eiger" } }];
      const { model } = await serve({ text: "I look.", calls, unknown: true });
      const answer = await generated(model()).catch((error: unknown) => error as ModelError);
      // Some packages refuse an event that they do not know. Then the attempt fails as a whole, and no half answer is kept.
      expect(answer).toMatchObject(
        answer instanceof ModelError
          ? { retryable: true, mayHaveBeenSent: true }
          : { answer: { content: "I look.", finishReason: "tool_calls", toolCalls: [{ name: "height" }] } },
      );
      is("New events", answer instanceof ModelError ? "fail the attempt" : "ignored");
    });

    test.skipIf(family.executed === undefined)("with a tool that the provider has executed ends the call", async () => {
      const { model } = await serve({ text: "I search.", executed: family.executed ?? "" });
      expect(await failureOf(model())).toMatchObject({ retryable: false, details: { kind: "configuration" } });
    });
  });

  describe("tools", () => {
    test("parallel calls run, and their results and the thought go back to the model", async () => {
      const calls = ["Eiger", "Mönch"].map((of, index) => ({
        id: `abcdefgh${index}`,
        name: "height",
        arguments: { of },
      }));
      const server = await serve({ thought: "Two lookups.", text: "I look.", calls }, { text: "Done." });
      const { text } = await run(
        defineAgent({ name: "guide", model: server.model(), tools: [height] }),
        "How high are Eiger and Mönch?",
      );
      expect(text).toBe("Done.");
      const [first, second] = server.bodies.map((body) => JSON.stringify(body));
      expect(first).toContain("Looks a height up.");
      expect(second).toContain("Eiger: 3,967 m");
      expect(second).toContain("Mönch: 3,967 m");
      is("Parallel calls", true);
      is("Thoughts sent back", thoughtIn(server.bodies[1], "Two lookups."));
    });

    test("the last call, which may call no tools, has the results of the calls before", async () => {
      const calls = [{ id: "abcdefgh1", name: "height", arguments: { of: "Eiger" } }];
      const server = await serve({ thought: "A lookup.", calls }, { text: "Done." });
      const budget = { maxSteps: 2, finalAnswer: true };
      const agent = defineAgent({ name: "guide", model: server.model(), tools: [height], budget });
      expect((await run(agent, "How high is the Eiger?")).text).toBe("Done.");
      expect(JSON.stringify(server.bodies[1])).toContain("Eiger: 3,967 m");
    });

    test("an image in a result reaches the model", async () => {
      const call = { id: "abcdefgh1", name: "photo", arguments: {} };
      const server = await serve({ calls: [call] }, { text: "A mountain." });
      await run(defineAgent({ name: "guide", model: server.model(), tools: [photo] }), "What does it look like?");
      const where = whereIs(image, server.bodies[1]);
      expect(where).not.toBe("nowhere");
      is("Images in results", where === "inside" ? "in the result" : "after it");
    });
  });

  describe("a request", () => {
    test("has the image of a user", async () => {
      const server = await serve({ text: "A mountain." });
      await generated(server.model(), imageRequest(imageUrl));
      expect(whereIs(image, server.bodies[0])).toBe("beside them");
      is("Images", true);
    });

    test("has the address of an image if the provider fetches it, and is not sent otherwise", async () => {
      const server = await serve({ text: "A mountain." });
      const asked = (url: string) => generated(server.model(), imageRequest(url)).catch((error: unknown) => error);
      const answer = await asked("https://example.com/eiger.png");
      const isSent = JSON.stringify(server.bodies).includes("https://example.com/eiger.png");
      expect(server.bodies).toHaveLength(isSent ? 1 : 0);
      const refused = {
        retryable: false,
        mayHaveBeenSent: false,
        message: expect.stringContaining("data: URL") as string,
      };
      expect(answer).toMatchObject(isSent ? {} : refused);
      is("Image URLs", isSent);
    });

    test("has the PDF file of a user, or a note that the model cannot see it", async () => {
      const content = [
        { type: "text", text: "What is that?" },
        { type: "file", mediaType: "application/pdf", url: `data:application/pdf;base64,${pdf}`, name: "map.pdf" },
      ] as const;
      const server = await serve({ text: "A map." });
      await generated(server.model(), {
        messages: [{ id: "1", role: "user", createdAt: 0, origin: "user", content }],
      });
      const sent = JSON.stringify(server.bodies.at(-1));
      expect(sent.includes(pdf)).toBe(!sent.includes("map.pdf, application/pdf, 24 bytes: not shown"));
      is("PDF files", sent.includes(pdf));
    });

    test("asks for output that fits a schema", async () => {
      const server = await serve({ text: '{"metres":3967}' });
      const output = z.object({ metres: z.number() });
      const agent = defineAgent({ name: "guide", model: server.model(), output });
      expect((await run(agent, "How high is the Eiger?")).output).toEqual({ metres: 3967 });
      expect(JSON.stringify(server.bodies[0])).toContain("metres");
      is("Structured output", requestedFormat(server.bodies[0]));
    });

    test("has the limit of output tokens", async () => {
      const server = await serve({ text: "3,967 m." });
      await generated(server.model(), { ...question, maxOutputTokens: 5_000 });
      expect(family.limitIn(server.bodies[0] ?? {})).toBe(5_000);
    });

    test("has the choice of tools", async () => {
      const server = await serve({ text: "3,967 m." });
      const tools = ["height", "weight"].map((name) => ({ name, description: name, parameters: { type: "object" } }));
      const choices = ["auto", "none", "required", { tool: "height" }] as const;
      for (const toolChoice of choices) await generated(server.model(), { ...question, tools, toolChoice });
      const [auto, ...others] = server.bodies.map((body) => JSON.stringify(body));
      const told = ["none", "required", "named"].filter((_name, index) => others[index] !== auto);
      expect(new Set([auto, ...others]).size).toBe(told.length + 1);
      is("Tool choice", told.length === 0 ? "–" : told.join(", "));
    });

    test("has the stop sequences, or the answer warns of them", async () => {
      const server = await serve({ text: "3,967 m." });
      const { answer } = await generated(server.model(), { ...question, stopSequences: ["END-HERE"] });
      const isSent = JSON.stringify(server.bodies[0]).includes("END-HERE");
      expect(isSent || (answer.warnings ?? []).length > 0).toBe(true);
      is("Stop sequences", isSent);
    });

    test.each(["none", "low", "high", "max"] as const)(
      "keeps its limit with the reasoning effort %s, and the answer warns if it is not sent",
      async (reasoningEffort) => {
        const server = await serve({ thought: "Alps.", text: "3,967 m." });
        await generated(server.model(), { ...question, maxOutputTokens: 5_000 });
        const { answer } = await generated(server.model(), { ...question, maxOutputTokens: 5_000, reasoningEffort });
        const [plain, sent] = server.bodies;
        expect(family.limitIn(sent ?? {})).toBe(5_000);
        const isSent = JSON.stringify(plain) !== JSON.stringify(sent);
        expect(isSent || reasoningEffort === "none" || (answer.warnings ?? []).length > 0).toBe(true);
        if (reasoningEffort === "high") is("Reasoning effort", isSent);
      },
    );

    test.each(family.thinking)(
      "never permits more than the limit when the model thinks: %o",
      async (providerOptions) => {
        const server = await serve({ thought: "Alps.", text: "3,967 m." });
        await generated(server.model({ providerOptions }), { ...question, maxOutputTokens: 5_000 });
        expect(family.limitIn(server.bodies[0] ?? {})).toBe(5_000);
        const budget = { maxTokens: 4_000 };
        await run(defineAgent({ name: "guide", model: server.model({ providerOptions }), budget }), "How high?");
        const limit = Number(family.limitIn(server.bodies[1] ?? {}));
        expect(limit).toBeLessThan(4_000);
        expect(limit).toBeGreaterThan(3_900);
      },
    );
  });

  describe("a refusal", () => {
    test.each([429, 500, 503, 529])("with the status %i is retryable", async (status) => {
      const { model } = await serve({ status, message: "Slow down" });
      const failure = await failureOf(model());
      expect(failure).toMatchObject({ status, retryable: true, mayHaveBeenSent: true });
      expect(failure.message).toContain("Slow down");
      expect(failure.retryAfterMs).toBeUndefined();
      // It has cost nothing.
      expect(failure.partialOutputTokens).toBeUndefined();
    });

    test("names the time of the next attempt in seconds, or as a date", async () => {
      const inAMinute = new Date(Date.now() + 60_000).toUTCString();
      const { model } = await serve(
        { status: 429, message: "Slow down", headers: { "retry-after": "7" } },
        { status: 429, message: "Slow down", headers: { "retry-after": inAMinute } },
      );
      expect((await failureOf(model())).retryAfterMs).toBe(7_000);
      const { retryAfterMs = 0 } = await failureOf(model());
      expect(retryAfterMs).toBeGreaterThan(30_000);
      expect(retryAfterMs).toBeLessThanOrEqual(60_000);
    });

    test("of the key is lasting, has the provider's words and no key", async () => {
      const { model } = await serve(family.wrongKey);
      const failure = await failureOf(model());
      expect(failure).toMatchObject({ status: family.wrongKey.status, retryable: false });
      expect(failure.message).toContain(family.wrongKey.message);
      expect(JSON.stringify(failure)).not.toContain("key-for-tests");
    });

    test.each(family.tooLong)("of a prompt that is too long is recognised: $message", async (refusal) => {
      const { model } = await serve(refusal);
      expect(await failureOf(model())).toMatchObject({ retryable: false, details: { kind: "context_length" } });
    });

    test("of too many tokens in a minute counts as a limit of the rate", async () => {
      const message = "Request too large: Limit 6000 tokens per minute, Requested 9000. Please try again in 7s.";
      const { model } = await serve({ status: 429, message });
      expect(await failureOf(model())).toMatchObject({ retryable: true, details: { kind: "http" } });
    });
  });

  describe("an answer that does not end", () => {
    test.each(["broken", "ended"] as const)(
      "because the connection is %s is retryable, and what came counts",
      async (cut) => {
        const { model } = await serve({ text: "3,967 metres.", cut });
        const failure = await failureOf(model());
        expect(failure).toMatchObject({ retryable: true, mayHaveBeenSent: true });
        expect(failure.partialOutputTokens).toBeGreaterThan(0);
        expect(failure.partialInputTokens).toBeGreaterThan(0);
      },
    );

    test("because the server is silent is cut after stallTimeoutMs", async () => {
      const server = await serve({ text: "3,967 metres.", cut: "silent" });
      const failure = await failureOf(server.model({ stallTimeoutMs: 30 }));
      expect(failure).toMatchObject({ details: { kind: "stalled" }, retryable: true, mayHaveBeenSent: true });
      expect(failure.partialOutputTokens).toBeGreaterThan(0);
      await expect.poll(() => server.openConnections()).toBe(0);
    });

    test("because of an error in the stream is retryable", async () => {
      // One package prints the errors that it cannot read.
      const printed = vi.spyOn(console, "warn").mockReturnValue();
      onTestFinished(() => printed.mockRestore());
      const { model } = await serve({ text: "3,967 metres.", error: "Overloaded by the moon" });
      const failure = await failureOf(model());
      expect(failure).toMatchObject({ retryable: true, mayHaveBeenSent: true });
      expect(failure.partialOutputTokens).toBeGreaterThan(0);
      is(
        "Errors in the stream",
        failure.message.includes("Overloaded by the moon") ? "with their words" : "without words",
      );
    });

    test("because it is aborted ends at once, and one that was aborted before is never sent", async () => {
      const server = await serve({ text: "3,967 metres.", cut: "silent" });
      const controller = new AbortController();
      const call = server.model().generate(question, {
        signal: controller.signal,
        onDelta: () => controller.abort(new Error("enough")),
      });
      const failure = (await call.catch((error: unknown) => error)) as ModelError;
      expect(failure).toMatchObject({ details: { kind: "aborted" }, retryable: false, mayHaveBeenSent: true });
      await expect.poll(() => server.openConnections()).toBe(0);
      expect(await failureOf(server.model(), question, AbortSignal.abort())).toMatchObject({
        mayHaveBeenSent: false,
      });
      expect(server.bodies).toHaveLength(1);
    });
  });
}
