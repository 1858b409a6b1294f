import { describe, expect, test } from "vitest";
import { ModelError } from "../../src/errors/index.ts";
import { offlineModel } from "../../src/model/index.ts";
import { defaultClosingLine } from "../../src/model/offline-model.ts";
import type { ModelRequest } from "../../src/state/index.ts";
import { deltaText } from "../support/model-calls.ts";
import { conversation, weather } from "./offline-conversation.ts";

const never = new AbortController().signal;

const request: ModelRequest = {
  messages: conversation(["user", "My name is Ada."], ["assistant", "Hello."], ["user", "What is my name?"]),
};

async function wholeAnswer(closingLine?: string): Promise<string> {
  const model = offlineModel(closingLine === undefined ? {} : { closingLine });
  return (await model.generate(request, { signal: never })).content;
}

describe("as a language model", () => {
  test("says that it is not a language model, unless configured not to", async () => {
    expect(await wholeAnswer()).toBe(`My name is Ada.\n\n${defaultClosingLine}`);
    expect(defaultClosingLine).toMatch(/rule-based .*no language model.*OPENAI_API_KEY/);
    expect(await wholeAnswer("Made by rules.")).toBe("My name is Ada.\n\nMade by rules.");
    expect(await wholeAnswer("")).toBe("My name is Ada.");
  });

  test("streams its answer word by word, and the pieces add up to the answer", async () => {
    const pieces: string[] = [];
    const response = await offlineModel().generate(request, {
      signal: never,
      onDelta: (delta) => {
        pieces.push(deltaText(delta));
      },
    });
    expect(pieces.join("")).toBe(response.content);
    expect(pieces.slice(0, 4)).toEqual(["My", " name", " is", " Ada."]);
  });

  test("counts tokens, reports that it estimates, and stays below its own bound", async () => {
    const model = offlineModel({ name: "rules" });
    const { usage, model: name, finishReason } = await model.generate(request, { signal: never });
    expect(usage.estimated).toBe(true);
    expect(usage.inputTokens).toBeGreaterThan(10);
    expect(usage.inputTokens).toBeLessThanOrEqual(await model.countPromptTokens(request));
    expect(usage.outputTokens).toBeGreaterThan(20);
    expect([name, finishReason, model.provider]).toEqual(["rules", "stop", "offline"]);
  });

  test("respects the output bound, in answers and in calls", async () => {
    const short = await offlineModel().generate({ ...request, maxOutputTokens: 3 }, { signal: never });
    expect(short.content).toBe("My name is");
    expect(short.finishReason).toBe("length");
    expect(short.usage.outputTokens).toBe(3);
    const weatherRequest = {
      messages: conversation(["user", "How is the weather in Oslo and in Lima?"]),
      tools: [weather],
      maxOutputTokens: 12,
    };
    const one = await offlineModel().generate(weatherRequest, { signal: never });
    expect(one.toolCalls.map((call) => call.arguments)).toEqual(['{"city":"Oslo"}']);
    expect(one.usage.outputTokens).toBeLessThanOrEqual(12);
    const none = await offlineModel().generate({ ...weatherRequest, maxOutputTokens: 2 }, { signal: never });
    expect([none.toolCalls, none.finishReason]).toEqual([[], "length"]);
  });

  test("an abort before the call rejects it with the signal's reason", async () => {
    const reason = new Error("stopped");
    await expect(offlineModel().generate(request, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  test("an abort in the middle ends the stream and reports the sent part", async () => {
    const controller = new AbortController();
    const pieces: string[] = [];
    const cut = offlineModel({ tokensPerSecond: 1_000 }).generate(request, {
      signal: controller.signal,
      onDelta: (delta) => {
        pieces.push(deltaText(delta));
        if (pieces.length === 3) controller.abort(new Error("stopped"));
      },
    });
    const error = await cut.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ModelError);
    expect(error).toMatchObject({ partialOutputTokens: 3, retryable: false, cause: new Error("stopped") });
    expect(pieces).toEqual(["My", " name", " is"]);
  });

  test("returns JSON on request, and refuses a schema that it cannot fill", async () => {
    const json = await offlineModel().generate({ ...request, responseFormat: { type: "json" } }, { signal: never });
    expect(JSON.parse(json.content)).toEqual({ answer: "My name is Ada." });
    const schema = { type: "json_schema" as const, name: "person", schema: { type: "object" } };
    await expect(offlineModel().generate({ ...request, responseFormat: schema }, { signal: never })).rejects.toThrow(
      /cannot fill a JSON schema/,
    );
  });

  test("refuses an invalid speed", () => {
    for (const tokensPerSecond of [0, -1, Number.NaN])
      expect(() => offlineModel({ tokensPerSecond })).toThrow(/tokensPerSecond/);
  });

  test("the same request always gets the same answer, and is not modified", async () => {
    const before = structuredClone(request);
    const answers = await Promise.all([1, 2, 3].map(() => offlineModel().generate(request, { signal: never })));
    expect(answers[1]).toEqual(answers[0]);
    expect(answers[2]).toEqual(answers[0]);
    expect(request).toEqual(before);
  });
});

describe("settings of a call", () => {
  test("the answer ends before a stop sequence", async () => {
    const whole = await offlineModel().generate(request, { signal: never });
    const [first = "", second = ""] = whole.content.split(" ");
    const stopSequences = ["no such text", ` ${second}`];
    const cut = await offlineModel().generate({ ...request, stopSequences }, { signal: never });
    expect(cut.content).toBe(first);
    expect(cut.finishReason).toBe("stop");
  });

  test("a chosen tool is the only one that is called, and calls are reported", async () => {
    const deltas: unknown[] = [];
    const { name } = weather;
    const weatherRequest = { messages: conversation(["user", "How is the weather in Oslo?"]), tools: [weather] };
    const one = await offlineModel().generate(
      { ...weatherRequest, toolChoice: { tool: name } },
      { signal: never, onDelta: (delta) => deltas.push(delta) },
    );
    const [call] = one.toolCalls;
    expect(call?.name).toBe(name);
    expect(deltas.slice(0, 2)).toEqual([
      { type: "tool-call", index: 0, id: call?.id, name },
      { type: "tool-arguments", index: 0, text: call?.arguments },
    ]);
    const none = await offlineModel().generate({ ...weatherRequest, toolChoice: { tool: "other" } }, { signal: never });
    expect(none.toolCalls).toEqual([]);
  });
});
