import { type Context, createTraceState, isSpanContextValid, type SpanContext, trace } from "@opentelemetry/api";
import type { TraceHeaders } from "../base/index.ts";
import { traceHeadersSchema } from "../state/index.ts";

/** A span as the headers of W3C Trace Context; undefined for one that is none. What is too long to be stored is left out. */
export function headersOf(span: SpanContext): TraceHeaders | undefined {
  if (!isSpanContextValid(span)) return undefined;
  const { traceId, spanId, traceFlags, traceState } = span;
  const flags = (traceFlags & 0xff).toString(16).padStart(2, "0");
  const traceparent = `00-${traceId}-${spanId}-${flags}`.toLowerCase();
  const tracestate = traceState?.serialize();
  const whole = traceHeadersSchema.safeParse({ traceparent, tracestate });
  return tracestate && whole.success ? whole.data : { traceparent };
}

/** The span that headers name, in another process; undefined for headers that name none. */
function spanIn({ traceparent, tracestate }: TraceHeaders): SpanContext | undefined {
  const [, traceId = "", spanId = "", flags = ""] = traceparent.split("-");
  const span: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(tracestate ? { traceState: createTraceState(tracestate) } : {}),
  };
  return isSpanContextValid(span) ? span : undefined;
}

/** The context with the span that headers name on top. */
export function contextUnder(context: Context, headers: TraceHeaders | undefined): Context {
  const span = headers && spanIn(headers);
  return span ? trace.setSpanContext(context, span) : context;
}
