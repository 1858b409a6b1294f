/** A span as it travels between processes: the headers of W3C Trace Context. */
export interface TraceHeaders {
  /** `00-<32 hex>-<16 hex>-<2 hex>`. */
  readonly traceparent: string;
  readonly tracestate?: string | undefined;
}

/** The port to a tracing system, which telemetry implements. None of its methods may throw. */
export interface TraceCarrier {
  /** The span that is active in the calling code, if there is one. */
  active(): TraceHeaders | undefined;
  /** The span that this process made for a turn or a call of a tree, if it made one. */
  spanOf(rootAgentId: string, id: string): TraceHeaders | undefined;
  /** Runs code so that the spans it makes are children of this one. */
  within<T>(headers: TraceHeaders, work: () => T): T;
}

let carriers: readonly TraceCarrier[] = [];

/** Adds a carrier; earlier ones are asked first. Returns a function that removes it. */
export function carryTraces(carrier: TraceCarrier): () => void {
  carriers = [...carriers, carrier];
  return () => {
    carriers = carriers.filter((one) => one !== carrier);
  };
}

/** The span that is active here; undefined where nobody traces. */
export function activeTrace(): TraceHeaders | undefined {
  return firstOf((carrier) => carrier.active());
}

/** The span of the first of these ids (a call, then its turn) that was made in this process. */
export function traceOf(rootAgentId: string, ids: readonly string[]): TraceHeaders | undefined {
  for (const id of ids) {
    const found = firstOf((carrier) => carrier.spanOf(rootAgentId, id));
    if (found) return found;
  }
  return undefined;
}

/** Runs code under a span, if there is one and somebody traces. */
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
