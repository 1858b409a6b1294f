import { createRequire, registerHooks } from "node:module";
import type * as Sdk from "@opentelemetry/sdk-trace-base";

// The test runner sets Node's condition "module", under which OpenTelemetry offers a build that only bundlers can load.
const hooks = registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier, { ...context, conditions: context.conditions.filter((condition) => condition !== "module") }),
});
const sdk = createRequire(import.meta.url)("@opentelemetry/sdk-trace-base") as typeof Sdk;
hooks.deregister();

export interface SpanRecorder {
  readonly tracerProvider: Sdk.BasicTracerProvider;
  /** The ended spans. */
  spans(): Sdk.ReadableSpan[];
  /** Each span with its ancestors: `chat large < invoke_agent lead`, sorted. */
  paths(): string[];
}

export function createSpanRecorder(): SpanRecorder {
  const exporter = new sdk.InMemorySpanExporter();
  const tracerProvider = new sdk.BasicTracerProvider({ spanProcessors: [new sdk.SimpleSpanProcessor(exporter)] });
  const spans = () => exporter.getFinishedSpans();
  const pathOf = (span: Sdk.ReadableSpan): string => {
    const parentId = span.parentSpanContext?.spanId;
    if (parentId === undefined) return span.name;
    const parent = spans().find((one) => one.spanContext().spanId === parentId);
    return `${span.name} < ${parent ? pathOf(parent) : "nobody"}`;
  };
  return { tracerProvider, spans, paths: () => spans().map(pathOf).toSorted() };
}

/** The time of a span in milliseconds since the epoch. */
export function millisecondsOf([seconds, nanoseconds]: readonly [number, number]): number {
  return seconds * 1_000 + nanoseconds / 1_000_000;
}
