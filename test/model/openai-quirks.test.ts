import { afterEach, describe, expect, it } from "vitest";
import type { OpenaiModelOptions } from "../../src/model/index.ts";
import {
  chunk,
  done,
  modelSending,
  neverAborted,
  request,
  stopServers,
  streamed,
  usageChunk,
  ways,
} from "../support/model-calls.ts";

afterEach(stopServers);

const whole = (message: object, rest: object = {}): string =>
  JSON.stringify({
    id: "c1",
    model: "served",
    choices: [{ index: 0, message, finish_reason: "stop" }],
    usage: { prompt_tokens: 7, completion_tokens: 3 },
    ...rest,
  });

const call = (fields: object): string => chunk({ tool_calls: [fields] });

const detail = (fields: object): string =>
  chunk({ reasoning_details: [{ type: "reasoning.text", index: 0, ...fields }] });

describe.each(ways)("over %s", (_way, over) => {
  const sending = (body: string, options: OpenaiModelOptions = {}, type?: string) =>
    modelSending(body, options, { over, ...(type !== undefined && { type }) });

  async function callsOf(...pieces: readonly string[]) {
    const { answer } = await streamed(await sending([...pieces, chunk({}, "stop"), usageChunk, done].join("")));
    return answer.toolCalls.map(({ name, arguments: text }) => [name, text]);
  }

  describe("tool calls of servers with different formats", () => {
    it("distinguishes parallel calls that all have index 0 by their ids", async () => {
      const calls = await callsOf(
        call({ index: 0, id: "a", function: { name: "search", arguments: '{"q":' } }),
        call({ index: 0, function: { arguments: "1}" } }),
        call({ index: 0, id: "b", function: { name: "search", arguments: '{"q":2}' } }),
      );
      expect(calls).toEqual([
        ["search", '{"q":1}'],
        ["search", '{"q":2}'],
      ]);
    });

    it("distinguishes them by ids in the middle of their arguments, too", async () => {
      const calls = await callsOf(
        call({ index: 0, id: "a", function: { name: "search", arguments: '{"q":' } }),
        call({ index: 0, id: "b", function: { name: "search", arguments: '{"q":' } }),
        call({ index: 0, id: "a", function: { arguments: "1}" } }),
        call({ index: 0, id: "b", function: { arguments: "2}" } }),
      );
      expect(calls).toEqual([
        ["search", '{"q":1}'],
        ["search", '{"q":2}'],
      ]);
    });

    it("assigns interleaved pieces of parallel calls to their calls", async () => {
      const calls = await callsOf(
        call({ index: 0, id: "a", function: { name: "first", arguments: "" } }),
        call({ index: 1, id: "b", function: { name: "second", arguments: "" } }),
        call({ index: 0, function: { arguments: '{"n":1}' } }),
        call({ index: 1, function: { arguments: '{"n":2}' } }),
      );
      expect(calls).toEqual([
        ["first", '{"n":1}'],
        ["second", '{"n":2}'],
      ]);
    });

    it("accepts calls without an index, whole or in pieces", async () => {
      const calls = await callsOf(
        call({ id: "a", function: { name: "first", arguments: '{"n":' } }),
        call({ function: { arguments: "1}" } }),
        call({ function: { name: "second", arguments: '{"n":2}' } }),
      );
      expect(calls).toEqual([
        ["first", '{"n":1}'],
        ["second", '{"n":2}'],
      ]);
    });

    it("accepts a name and id that are repeated with each piece once", async () => {
      const calls = await callsOf(
        call({ index: 0, id: "a", function: { name: "search", arguments: '{"q":' } }),
        call({ index: 0, id: "a", function: { name: "search", arguments: '"x"}' } }),
      );
      expect(calls).toEqual([["search", '{"q":"x"}']]);
    });

    it("converts arguments sent as an object to text, and blank ones to an empty object", async () => {
      const calls = await callsOf(
        call({ index: 0, id: "a", function: { name: "first", arguments: { q: "x" } } }),
        call({ index: 1, id: "b", function: { name: "second", arguments: "" } }),
      );
      expect(calls).toEqual([
        ["first", '{"q":"x"}'],
        ["second", "{}"],
      ]);
    });

    it("derives the same id each time for a call without one, and different ids for different calls", async () => {
      const body = whole({
        tool_calls: [{ function: { name: "f", arguments: "{}" } }, { function: { name: "f", arguments: "{}" } }],
      });
      const model = await sending(body);
      const first = await model.generate(request, { signal: neverAborted });
      const second = await model.generate(request, { signal: neverAborted });
      const ids = first.toolCalls.map(({ id }) => id);
      expect(new Set(ids).size).toBe(2);
      expect(ids[0]).toMatch(/^call_\w+$/);
      expect(second.toolCalls).toEqual(first.toolCalls);
    });

    it("uses the calls and ignores the finish reason", async () => {
      const withCalls = await sending(
        chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }] }, "stop"),
      );
      expect((await streamed(withCalls)).answer.finishReason).toBe("tool_calls");
      const without = await sending(chunk({ content: "x" }, "tool_calls"));
      expect((await streamed(without)).answer.finishReason).toBe("stop");
      const cut = await sending(
        chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: '{"a' } }] }, "length"),
      );
      expect((await streamed(cut)).answer).toMatchObject({ finishReason: "length", toolCalls: [{ arguments: '{"a' }] });
    });
  });

  describe("reasoning", () => {
    it("is stored for replay and reported once, also if it is sent under two names", async () => {
      const { answer, deltas } = await streamed(
        await sending(
          chunk({ reasoning: "Hm", reasoning_content: "Hm" }) +
            chunk({ reasoning: "m", reasoning_content: "m" }) +
            chunk({ content: "Yes" }, "stop"),
        ),
      );
      expect(answer.reasoning).toEqual({ reasoning: "Hmm", reasoning_content: "Hmm" });
      expect(deltas).toEqual([
        { type: "reasoning", text: "Hmm" },
        { type: "text", text: "Yes" },
      ]);
    });

    it("joins details by index and type, with the last signature", async () => {
      const encrypted = chunk({ reasoning_details: [{ type: "reasoning.encrypted", index: 1, data: "xyz" }] });
      const { answer } = await streamed(
        await sending(
          detail({ text: "One " }) +
            detail({ text: "two" }) +
            detail({ signature: "sig" }) +
            encrypted +
            chunk({}, "stop"),
        ),
      );
      expect(answer.reasoning).toEqual({
        reasoning_details: [
          { type: "reasoning.text", index: 0, text: "One two", signature: "sig" },
          { type: "reasoning.encrypted", index: 1, data: "xyz" },
        ],
      });
    });

    it("that is empty is sent back unchanged", async () => {
      const events = chunk({ content: "", reasoning_content: "" }) + chunk({ content: "Yes" }, "stop");
      expect((await streamed(await sending(events))).answer.reasoning).toEqual({ reasoning_content: "" });
      const model = await sending(whole({ content: "Yes", reasoning_content: "" }));
      const { reasoning } = await model.generate(request, { signal: neverAborted });
      expect(reasoning).toEqual({ reasoning_content: "" });
    });

    it("keeps the signatures of calls", async () => {
      const extra_content = { google: { thought_signature: "sig" } };
      const body = whole({ tool_calls: [{ id: "a", function: { name: "f", arguments: "{}" }, extra_content }] });
      const answer = await (await sending(body)).generate(request, { signal: neverAborted });
      expect(answer.reasoning).toEqual({ tool_call_extras: [{ id: "a", extra_content }] });
    });
  });

  describe("the format of the answer", () => {
    it("accepts one JSON text instead of a stream, and a stream instead of JSON", async () => {
      const { answer, deltas } = await streamed(await sending(whole({ content: "all at once" })));
      expect([answer.content, deltas]).toEqual(["all at once", [{ type: "text", text: "all at once" }]]);
      const model = await sending(chunk({ content: "in " }) + chunk({ content: "pieces" }, "stop") + usageChunk + done);
      expect((await model.generate(request, { signal: neverAborted })).content).toBe("in pieces");
    });

    it.each(["text/event-stream", "application/json", "text/plain"])(
      "recognizes either format by its beginning, also with the content type %s",
      async (type) => {
        const events = chunk({ content: "in " }) + chunk({ content: "pieces" }, "stop") + usageChunk + done;
        for (const [body, text] of [
          [whole({ content: "whole" }), "whole"],
          [`\n  ${whole({ content: "late" })}`, "late"],
          [events, "in pieces"],
          [`: waiting\n\n${events}`, "in pieces"],
          [`\r\nevent: message\n${events}`, "in pieces"],
        ] as const) {
          const model = await sending(body, {}, type);
          expect((await model.generate(request, { signal: neverAborted })).content).toBe(text);
          expect((await streamed(model)).answer.content).toBe(text);
        }
      },
    );

    it("skips comments, and reads a last event without its blank line", async () => {
      const { answer } = await streamed(
        await sending(`: waiting\n\n${chunk({ content: "hi" })}${chunk({}, "stop").trimEnd()}`),
      );
      expect(answer.content).toBe("hi");
    });

    it("accepts a whole answer without a finish reason", async () => {
      const body = JSON.stringify({
        choices: [{ message: { content: "hi" } }],
        usage: { prompt_tokens: 1, completion_tokens: 1 },
      });
      const answer = await (await sending(body)).generate(request, { signal: neverAborted });
      expect(answer).toMatchObject({ content: "hi", finishReason: "unknown", model: "requested" });
    });

    it("returns a refusal as the text, with its finish reason", async () => {
      const answer = await (await sending(whole({ content: null, refusal: "I will not." }))).generate(request, {
        signal: neverAborted,
      });
      expect(answer).toMatchObject({ content: "I will not.", finishReason: "content_filter" });
    });

    it("streams a refusal as text", async () => {
      const pieces = chunk({ content: null, refusal: "I will " }) + chunk({ refusal: "not." }) + chunk({}, "stop");
      const { answer, deltas } = await streamed(await sending(pieces + done));
      expect(answer).toMatchObject({ content: "I will not.", finishReason: "content_filter" });
      expect(deltas).toEqual([{ type: "text", text: "I will not." }]);
    });
  });
});
