import { context, trace, type TracerProvider } from "@opentelemetry/api";
import {
  carryTraces,
  createRedactor,
  type OptionsSchema,
  flagRule,
  nameRule,
  optionsOf,
  portRule,
  type Redactor,
  type TraceCarrier,
  type TraceHeaders,
} from "../base/index.ts";
import type { TroupeEvent } from "../state/index.ts";
import {
  assertRuntime,
  type EventFeed,
  redactorRule,
  type Telemetry,
  warnOnce,
  type JournalSource,
  TreeFeed,
} from "./listen.ts";
import { type SpanOptions, contentAttributes, hasContent } from "./span-attributes.ts";
import { type SpanOperation, SpanPlan } from "./span-plan.ts";
import { contextUnder, headersOf, SpanWriter } from "./span-writer.ts";

/** Options of `traceToOpenTelemetry()`. */
export interface OpenTelemetryOptions {
  /** Creates the spans: `trace.getTracerProvider()`, or your SDK's provider. */
  readonly tracerProvider: TracerProvider;
  /** Puts prompts, answers, arguments, results and error texts on spans, as JSON text. Default false. */
  readonly captureContent?: boolean | undefined;
  /**
   * The `gen_ai.provider.name` of all models, for instance `openai`, except those that `fallbackModel` and `routedModel` call: these have
   * their own. Default: omitted.
   */
  readonly providerName?: string | undefined;
  /** Removes secrets. Default: `createRedactor()`, which removes the environment's secrets. */
  readonly redactor?: Redactor | undefined;
}

/**
 * Creates spans for all live agents of a runtime, with the names of OpenTelemetry's conventions for generative AI:
 * `invoke_agent` for each turn, below it `chat` for each model call and `execute_tool` for each tool call, and
 * subagents below the calls that spawned them. Times are those of the events. The span of a turn that another process
 * started begins at the turn's start in its journal; calls that had ended by then get no span.
 * @throws InvalidInputError without a tracer provider.
 */
export function traceToOpenTelemetry(runtime: JournalSource & EventFeed, given: OpenTelemetryOptions): Telemetry {
  const of = "traceToOpenTelemetry()";
  assertRuntime(runtime, of);
  const options = optionsOf<OpenTelemetryOptions>(given, of, openTelemetryOptionsSchema);
  const spans = new TreeSpans(runtime, options);
  const endCarrying = carryTraces(spans);
  return {
    flush: () => spans.flush(),
    close: () => {
      endCarrying();
      spans.stop();
      return spans.flush();
    },
  };
}

const openTelemetryOptionsSchema: OptionsSchema<OpenTelemetryOptions> = {
  rules: {
    tracerProvider: portRule("{ tracerProvider }, for instance trace.getTracerProvider()", ["getTracer"]),
    captureContent: flagRule,
    providerName: nameRule,
    redactor: redactorRule,
  },
  needed: ["tracerProvider"],
  instead: { tracer: "tracerProvider", provider: "tracerProvider", content: "captureContent" },
};

interface TreeTrace {
  readonly plan: SpanPlan;
  readonly writer: SpanWriter;
}

/**
 * Owns: the traces of trees with an open turn. Spans that are open at `close` are ended by the process that continues
 * the turn.
 */
class TreeSpans implements TraceCarrier {
  readonly #source: JournalSource;
  readonly #redactor: Redactor;
  readonly #options: SpanOptions;
  readonly #newWriter: () => SpanWriter;
  readonly #traces = new Map<string, TreeTrace>();
  readonly #feed: TreeFeed;
  readonly #warn = warnOnce("the content of a span could not be read");

  constructor(source: JournalSource & EventFeed, options: OpenTelemetryOptions) {
    const { tracerProvider, captureContent = false, providerName, redactor = createRedactor() } = options;
    const tracer = tracerProvider.getTracer("troupe");
    this.#source = source;
    this.#redactor = redactor;
    this.#options = { captureContent, providerName };
    this.#newWriter = () => new SpanWriter({ tracer, redactor, captureContent });
    this.#feed = new TreeFeed(source, {
      what: "the OpenTelemetry trace",
      isConcerned: ({ turnId, type }) => turnId !== null && type !== "lifecycle.changed",
      needsPast: ({ type, agentId, rootAgentId }) => type !== "turn.started" || agentId !== rootAgentId,
      onPast: (rootAgentId, events) => this.#takeUp(rootAgentId, events),
      onEvent: (event) => this.#take(event),
    });
  }

  stop(): void {
    this.#feed.stop();
  }

  async flush(): Promise<void> {
    await this.#feed.flush();
  }

  active(): TraceHeaders | undefined {
    const span = trace.getActiveSpan();
    return span && headersOf(span.spanContext());
  }

  spanOf(rootAgentId: string, id: string): TraceHeaders | undefined {
    const span = this.#traces.get(rootAgentId)?.writer.contextOf(id);
    return span && headersOf(span);
  }

  within<T>(headers: TraceHeaders, work: () => T): T {
    return context.with(contextUnder(context.active(), headers), work);
  }

  #traceOf(rootAgentId: string): TreeTrace {
    const known = this.#traces.get(rootAgentId);
    if (known) return known;
    const made = { plan: new SpanPlan(this.#options), writer: this.#newWriter() };
    this.#traces.set(rootAgentId, made);
    return made;
  }

  async #takeUp(rootAgentId: string, events: readonly TroupeEvent[]): Promise<void> {
    const { plan, writer } = this.#traceOf(rootAgentId);
    const operations: SpanOperation[] = [];
    for (const event of events) operations.push(...plan.operations(event));
    writer.takeUp(operations);
  }

  #take(event: TroupeEvent): Promise<void> | undefined {
    const known = this.#traceOf(event.rootAgentId);
    const operations = known.plan.operations(event);
    if (this.#options.captureContent && hasContent(event) && operations.length > 0) {
      return this.#writeWithContent(known, event, operations);
    }
    this.#write(known, event, operations);
    return undefined;
  }

  async #writeWithContent(to: TreeTrace, event: TroupeEvent, operations: readonly SpanOperation[]): Promise<void> {
    let content = {};
    try {
      content = await contentAttributes(this.#source, event, this.#redactor);
    } catch (error) {
      this.#warn(error);
    }
    const filled = operations.map((operation) =>
      operation.type === "end" ? { ...operation, attributes: { ...operation.attributes, ...content } } : operation,
    );
    this.#write(to, event, filled);
  }

  #write({ plan, writer }: TreeTrace, { rootAgentId }: TroupeEvent, operations: readonly SpanOperation[]): void {
    for (const operation of operations) writer.apply(operation);
    if (plan.isAtRest && writer.isAtRest && this.#feed.forget(rootAgentId)) this.#traces.delete(rootAgentId);
  }
}
