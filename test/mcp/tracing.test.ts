import { traceToOpenTelemetry } from "troupe/telemetry";
import { describe, expect, onTestFinished, test } from "vitest";
import { toolTextsOf } from "../support/journal-probes.ts";
import { createSpanRecorder } from "../telemetry/span-recorder.ts";
import { callerOf, connected, openDesk, type Way, ways } from "./served-desk.ts";

interface SeenTrace {
  readonly meta: { readonly traceparent?: string; readonly tracestate?: string };
  readonly header: string | null;
}

/** What the server has seen of the trace of two calls, and the spans of the turn. */
async function traced(way: Way, isOn: boolean) {
  const { options } = await openDesk(way);
  const { tools } = await connected({ name: "desk", ...options });
  const { agent, runtime } = await callerOf(tools, [{ name: "desk__trace" }, { name: "desk__trace" }]);
  const recorder = createSpanRecorder();
  const telemetry = isOn ? traceToOpenTelemetry(runtime, { tracerProvider: recorder.tracerProvider }) : undefined;
  onTestFinished(async () => await telemetry?.close());
  const turn = agent.executeTurn("go", {
    trace: { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, tracestate: "vendor=1" },
  });
  await turn.result;
  await telemetry?.flush();
  const seen = (await toolTextsOf(agent)).map((text) => JSON.parse(text) as SeenTrace);
  const spans = recorder.spans().filter(({ name }) => name === "execute_tool desk__trace");
  return { seen, spans: spans.map((span) => span.spanContext()) };
}

describe.each(ways)("over %s", (way) => {
  test("the server gets the span of each call, in _meta and as headers", async () => {
    const { seen, spans } = await traced(way, true);
    const sent = seen.map(({ meta }) => meta.traceparent ?? "");
    expect(new Set(sent)).toEqual(new Set(spans.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`)));
    expect(new Set(sent).size).toBe(2);
    for (const { meta, header } of seen) {
      expect(meta).toMatchObject({ traceparent: expect.stringContaining("a".repeat(32)), tracestate: "vendor=1" });
      expect(header).toBe(way.startsWith("http") ? meta.traceparent : null);
    }
  });

  test("without telemetry nothing is sent", async () => {
    const { seen } = await traced(way, false);
    expect(seen).toHaveLength(2);
    for (const { meta, header } of seen)
      expect([meta.traceparent, meta.tracestate, header]).toEqual([undefined, undefined, null]);
  });
});
