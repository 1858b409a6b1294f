import { ModelError } from "troupe";
import { describe, expect, test } from "vitest";
import { address, deletion, framesOf, tealServed, text, uuid } from "./teal-served.ts";

const stream = { method: "POST", headers: { accept: "text/event-stream" } };

describe("T1: a streamed request", () => {
  test("contains the text as it is written, then the answer, with all three ids in every event", async () => {
    const pieces = ["The ", "answer ", "is 8"];
    const teal = await tealServed({
      script: { text: pieces.join(""), deltas: pieces, usage: { inputTokens: 40, outputTokens: 5 } },
    });
    const response = await teal.ask(`${address}/sse`, { ...stream, body: text("5 + 3?") });
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
    const frames = await framesOf(response);
    const ids = { session_id: uuid, task_id: uuid, request_id: uuid };
    for (const { data } of frames) expect(data).toMatchObject(ids);
    expect(new Set(frames.map(({ data }) => [data.task_id, data.request_id, data.session_id].join())).size).toBe(1);
    const last = frames.at(-1);
    expect(last).toEqual({
      event: "final-response",
      data: {
        ...ids,
        output: "The answer is 8",
        output_raw: "The answer is 8",
        source: "MathAgent:0.1",
        token_usage: { completion_tokens: 5, prompt_tokens: 40, total_tokens: 45 },
        extra_data: null,
      },
    });
    const partial = frames.slice(0, -1);
    expect(partial.map(({ event, data }) => [event, data.source])).toEqual(
      partial.map(() => ["partial-response", "MathAgent:0.1"]),
    );
    expect(partial.map(({ data }) => data.output_partial).join("")).toBe("The answer is 8");
  });

  test.each([
    ["the same", ["The ans", "wer is 8"], "The answer is 8"],
    ["something else", ["It is 8"], "The answIt is 8"],
  ])("whose model is called again, and answers %s: no piece comes twice", async (_, deltas, joined) => {
    const cut = new ModelError("cut", { retryable: true, mayHaveBeenSent: true });
    const teal = await tealServed({ script: [{ deltas: ["The ", "answ"], error: cut }, { deltas }] });
    const frames = await framesOf(await teal.ask(`${address}/sse`, { ...stream, body: text("5 + 3?") }));
    expect(frames.map(({ data }) => data.output_partial ?? "").join("")).toBe(joined);
    expect(frames.at(-1)).toMatchObject({ event: "final-response", data: { output: deltas.join("") } });
  });

  test("begins before the answer does", async () => {
    const gate = Promise.withResolvers<void>();
    const teal = await tealServed({ script: { text: "late", delayUntil: gate.promise } });
    const response = await teal.ask(`${address}/sse`, { ...stream, body: text("a") });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const first = new TextDecoder().decode((await reader.read()).value);
    expect(first).toMatch(/^event: partial-response\ndata: \{.*"output_partial":""/);
    gate.resolve();
    await reader.cancel();
  });

  test("continues a task, and refuses a busy or foreign one before the stream begins", async () => {
    const teal = await tealServed({ script: ["one", deletion] });
    const { json } = await teal.post("", text("a"));
    const frames = await framesOf(
      await teal.ask(`${address}/sse`, { ...stream, body: { ...text("b"), task_id: json.task_id } }),
    );
    expect(frames.at(-1)).toMatchObject({
      event: "hitl-response",
      data: { task_id: json.task_id, message: "Human intervention required." },
    });
    const strange = await teal.ask(`${address}/sse`, {
      ...stream,
      as: "bob",
      body: { ...text("b"), task_id: json.task_id },
    });
    expect([strange.status, await strange.json()]).toEqual([401, { detail: "Authentication required" }]);
  });

  test("that fails ends with an error event", async () => {
    const teal = await tealServed({ script: { error: new Error("no luck") } });
    const frames = await framesOf(await teal.ask(`${address}/sse`, { ...stream, body: text("a") }));
    expect(frames.at(-1)).toMatchObject({
      event: "error",
      data: { error: expect.stringContaining("no luck"), request_id: uuid },
    });
  });

  test("that pauses ends with the approval; resumed, it streams the rest", async () => {
    const teal = await tealServed({ script: [{ text: "Deleting.", ...deletion }, "gone"] });
    const frames = await framesOf(await teal.ask(`${address}/sse`, { ...stream, body: text("delete") }));
    const last = frames.at(-1);
    expect(last).toMatchObject({
      event: "hitl-response",
      data: { tool_calls: [{ function_name: "delete_user_data" }] },
    });
    const url = String(last?.data.approval_url).replace("?", "/sse?");
    const rest = await framesOf(await teal.ask(url, stream));
    expect(rest.at(-1)).toMatchObject({
      event: "final-response",
      data: { output: "gone", request_id: last?.data.request_id },
    });
    expect(
      rest
        .slice(0, -1)
        .map(({ data }) => data.output_partial)
        .join(""),
    ).toBe("gone");
    expect(teal.runs).toHaveLength(1);
  });

  test("that is rejected ends with the rejection", async () => {
    const teal = await tealServed({ script: [deletion] });
    const { json } = await teal.post("", text("delete"));
    const url = String(json.content.rejection_url).replace("?", "/sse?");
    const frames = await framesOf(await teal.ask(url, stream));
    expect(frames.at(-1)).toMatchObject({ event: "final-response", data: { message: "Tool excecution rejected." } });
  });
});

test("T8: an idle stream is kept alive", async () => {
  const gate = Promise.withResolvers<void>();
  const teal = await tealServed({ script: { text: "late", delayUntil: gate.promise }, serve: { keepAliveMs: 5 } });
  const response = await teal.ask(`${address}/sse`, { ...stream, body: text("a") });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let seen = "";
  while (!seen.includes(": keep-alive")) seen += new TextDecoder().decode((await reader.read()).value);
  gate.resolve();
  while (!seen.includes("final-response")) seen += new TextDecoder().decode((await reader.read()).value);
  expect(seen).toContain('"output":"late"');
});
