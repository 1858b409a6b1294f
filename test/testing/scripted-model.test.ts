import { describe, expect, it } from "vitest";
import { scriptedModel } from "../../src/testing/index.ts";
import { deltaText, neverAborted, request, streamed } from "../support/model-calls.ts";

const ask = (model: ReturnType<typeof scriptedModel>) => model.generate(request, { signal: neverAborted });

describe("scriptedModel", () => {
  it("returns one answer repeatedly, a list in order, or a function's answer by request and index", async () => {
    const one = scriptedModel("hi");
    expect([(await ask(one)).content, (await ask(one)).content]).toEqual(["hi", "hi"]);
    const list = scriptedModel(["first", { text: "second" }]);
    expect([(await ask(list)).content, (await ask(list)).content]).toEqual(["first", "second"]);
    const computed = scriptedModel(({ messages }, { index }) => `${messages.length} message, call ${index}`);
    await ask(computed);
    expect((await ask(computed)).content).toBe("1 message, call 1");
  });

  it("throws a clear error when its list is used up", async () => {
    const model = scriptedModel(["only"]);
    await ask(model);
    await expect(ask(model)).rejects.toThrow("called 2 times, but its script has 1 answers");
  });

  it("records the requests and has default names", async () => {
    const model = scriptedModel("hi", { contextWindow: 100 });
    await ask(model);
    expect(model.calls).toEqual([request]);
    expect([model.name, model.provider, model.contextWindow]).toEqual(["scripted", "scripted", 100]);
    expect((await ask(scriptedModel("hi", { name: "gpt", provider: "openai" }))).model).toBe("gpt");
  });

  it("calls tools with objects or any text, and uses unique ids", async () => {
    const model = scriptedModel({
      toolCalls: [
        { name: "f", arguments: { a: 1 } },
        { name: "g", arguments: "{broken" },
        { name: "h", id: "mine" },
      ],
    });
    const answer = await ask(model);
    expect(answer.finishReason).toBe("tool_calls");
    expect(answer.toolCalls.map(({ name, arguments: text }) => [name, text])).toEqual([
      ["f", '{"a":1}'],
      ["g", "{broken"],
      ["h", "{}"],
    ]);
    const ids = [...answer.toolCalls, ...(await ask(model)).toolCalls]
      .map(({ id }) => id)
      .filter((id) => id !== "mine");
    expect(new Set(ids).size).toBe(4);
  });

  it("counts one token per four characters, within its own bound, by default", async () => {
    const model = scriptedModel(["12345678", { text: "x", usage: { outputTokens: 99 } }]);
    const first = await ask(model);
    expect(first.usage).toEqual({ inputTokens: 3, outputTokens: 2 });
    expect(first.usage.inputTokens).toBeLessThanOrEqual(await model.countPromptTokens(request));
    expect((await ask(model)).usage).toEqual({ inputTokens: 3, outputTokens: 99 });
  });

  it("reports text and reasoning to a listener", async () => {
    const deltas: unknown[] = [];
    const options = { signal: neverAborted, onDelta: (delta: object) => void deltas.push(delta) };
    const answer = await scriptedModel({ deltas: ["a", "b"], reasoning: "hm" }).generate(request, options);
    expect(answer).toMatchObject({ content: "ab", reasoning: { reasoning_content: "hm" } });
    expect(deltas).toEqual([
      { type: "reasoning", text: "hm" },
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ]);
    expect((await streamed(scriptedModel("whole"))).deltas).toEqual([{ type: "text", text: "whole" }]);
  });

  it("throws its scripted error after the deltas", async () => {
    const error = new Error("cut");
    const heard: string[] = [];
    const call = scriptedModel({ deltas: ["a"], error }).generate(request, {
      signal: neverAborted,
      onDelta: (delta) => heard.push(deltaText(delta)),
    });
    await expect(call).rejects.toBe(error);
    expect(heard).toEqual(["a"]);
  });

  it("waits for its delay, but stops waiting on the signal", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let isSettled = false;
    const delayed = ask(scriptedModel({ text: "late", delayUntil: promise })).finally(() => {
      isSettled = true;
    });
    await new Promise(setImmediate);
    expect(isSettled).toBe(false);
    resolve();
    expect((await delayed).content).toBe("late");

    const controller = new AbortController();
    const reason = new Error("stop");
    const cut = scriptedModel({ text: "never", delayUntil: new Promise(() => undefined) }).generate(request, {
      signal: controller.signal,
    });
    controller.abort(reason);
    await expect(cut).rejects.toBe(reason);
    const later = new AbortController();
    const deaf = scriptedModel(() => new Promise<string>(() => undefined)).generate(request, { signal: later.signal });
    setImmediate(() => later.abort(reason));
    await expect(deaf).rejects.toBe(reason);
    const model = scriptedModel("never");
    await expect(model.generate(request, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(model.calls).toEqual([]);
  });
});
