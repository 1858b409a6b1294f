/** A span as it travels between processes: the headers of W3C Trace Context. */
export interface TraceHeaders {
  /** `00-<32 hex>-<16 hex>-<2 hex>`. */
  readonly traceparent: string;
  readonly tracestate?: string | undefined;
}

/**
 * What a tracing system tells the runtime: telemetry implements it. Its answers are only ever passed on; none of its calls
 * may throw.
 */
export interface TraceCarrier {
  /** The span that is active in the code that calls; undefined where none is. */
  active(): TraceHeaders | undefined;
  /** The span that this process made for a turn or a call of a tree; undefined for one that it does not know. */
  spanOf(rootAgentId: string, id: string): TraceHeaders | undefined;
  /** Runs code so that the spans it makes come under this one. */
  within<T>(headers: TraceHeaders, work: () => T): T;
}

let carriers: readonly TraceCarrier[] = [];

/** Has the runtime ask this one too; those that came first are asked first. Returns what ends it. */
export function carryTraces(carrier: TraceCarrier): () => void {
  carriers = [...carriers, carrier];
  return () => {
    carriers = carriers.filter((one) => one !== carrier);
  };
}

/** The span that is active here, as far as anybody traces; undefined otherwise. */
export function activeTrace(): TraceHeaders | undefined {
  return firstOf((carrier) => carrier.active());
}

/** The span of the first of these, a call or the turn it is of, that was made in this process. */
export function traceOf(rootAgentId: string, ids: readonly string[]): TraceHeaders | undefined {
  for (const id of ids) {
    const found = firstOf((carrier) => carrier.spanOf(rootAgentId, id));
    if (found) return found;
  }
  return undefined;
}

/** Runs code under a span, where there is one and anybody traces. */
export function withinTrace<T>(headers: TraceHeaders | undefined, work: () => T): T {
  const [carrier] = carriers;
  return headers && carrier ? carrier.within(headers, work) : work();
}

function firstOf(ask: (carrier: TraceCarrier) => TraceHeaders | undefined): TraceHeaders | undefined {
  for (const carrier of carriers) {
    const found = ask(carrier);
    if (found) return found;
  }
  return undefined;
}
