import {
  type Context,
  createTraceState,
  isSpanContextValid,
  type SpanContext,
  trace,
  type Attributes,
  type HrTime,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
} from "@opentelemetry/api";
import type { TraceHeaders, Redactor } from "../base/index.ts";
import { traceHeadersSchema } from "../state/index.ts";
import { oneLine } from "./plain-text.ts";
import type { SpanAttributes } from "./span-attributes.ts";
import type { SpanOperation } from "./span-plan.ts";

interface SpanWriterOptions {
  readonly tracer: Tracer;
  readonly redactor: Redactor;
  /** Includes the texts of errors. */
  readonly captureContent: boolean;
}

const kinds = { client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const;

/**
 * Applies operations to a tracer.
 * Owns: the open spans of one tree, and the contexts of ended ones, as long as they may still get children.
 */
export class SpanWriter {
  readonly #options: SpanWriterOptions;
  readonly #open = new Map<string, Span>();
  readonly #contexts = new Map<string, SpanContext>();
  /** Spans started by other processes: their trace headers take precedence, if present. */
  readonly #takenUp = new Set<string>();

  constructor(options: SpanWriterOptions) {
    this.#options = options;
  }

  get isAtRest(): boolean {
    return this.#open.size === 0;
  }

  /** The context of a span while it may still get children. */
  contextOf(key: string): SpanContext | undefined {
    return this.#contexts.get(key);
  }

  apply(operation: SpanOperation): void {
    if (operation.type === "start") this.#start(operation);
    else if (operation.type === "note") this.#note(operation);
    else this.#end(operation);
  }

  /**
   * Continues the spans of another process: opens those that are still open, and creates none for those that have
   * ended.
   */
  takeUp(operations: readonly SpanOperation[]): void {
    const over = new Set(operations.flatMap((operation) => (operation.type === "end" ? [operation.key] : [])));
    for (const operation of operations) {
      if (operation.type !== "start" || over.has(operation.key)) continue;
      this.#start(operation);
      this.#takenUp.add(operation.key);
    }
  }

  #start(operation: SpanOperation & { type: "start" }): void {
    const { key, parent, under, name, kind, at, attributes } = operation;
    const isOthers = parent !== null && under !== undefined && this.#takenUp.has(parent);
    const above = parent === null || isOthers ? undefined : this.#contexts.get(parent);
    const span = this.#options.tracer.startSpan(
      this.#options.redactor.text(name),
      { kind: kinds[kind], startTime: timeOf(at), attributes: this.#redacted(attributes) },
      above ? trace.setSpanContext(ROOT_CONTEXT, above) : contextUnder(ROOT_CONTEXT, under),
    );
    this.#open.set(key, span);
    this.#contexts.set(key, span.spanContext());
  }

  #note({ key, name, at, attributes }: SpanOperation & { type: "note" }): void {
    this.#open.get(key)?.addEvent(name, this.#redacted(attributes), timeOf(at));
  }

  #end({ key, at, name, attributes, error }: SpanOperation & { type: "end" }): void {
    const span = this.#open.get(key);
    if (!span) return;
    this.#open.delete(key);
    const { redactor, captureContent } = this.#options;
    if (name !== undefined) span.updateName(redactor.text(name));
    span.setAttributes(this.#redacted(attributes));
    if (error) {
      span.setAttribute("error.type", redactor.text(error.type));
      const message = captureContent && error.message !== "" ? oneLine(redactor.text(error.message), 500) : undefined;
      span.setStatus({ code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message }) });
    }
    span.end(timeOf(at));
  }

  #redacted(attributes: SpanAttributes): Attributes {
    const { redactor } = this.#options;
    return Object.fromEntries(
      Object.entries(attributes).map(([name, value]) => {
        if (typeof value === "string") return [name, redactor.text(value)];
        return [name, typeof value === "object" ? value.map((text) => redactor.text(text)) : value];
      }),
    );
  }
}

/** Seconds and nanoseconds: small plain numbers would be interpreted as times since the process started. */
function timeOf(at: number): HrTime {
  return [Math.floor(at / 1_000), (at % 1_000) * 1_000_000];
}

/**
 * Formats a span as headers of W3C Trace Context; `undefined` if its context is invalid. Omits a state that is too
 * long.
 */
export function headersOf(span: SpanContext): TraceHeaders | undefined {
  if (!isSpanContextValid(span)) return undefined;
  const { traceId, spanId, traceFlags, traceState } = span;
  const flags = (traceFlags & 0xff).toString(16).padStart(2, "0");
  const traceparent = `00-${traceId}-${spanId}-${flags}`.toLowerCase();
  const tracestate = traceState?.serialize();
  const whole = traceHeadersSchema.safeParse({ traceparent, tracestate });
  return tracestate && whole.success ? whole.data : { traceparent };
}

/** The span of another process that headers identify; `undefined` if they identify none. */
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

/** The context with the span from the headers as the current one. */
export function contextUnder(context: Context, headers: TraceHeaders | undefined): Context {
  const span = headers && spanIn(headers);
  return span ? trace.setSpanContext(context, span) : context;
}
