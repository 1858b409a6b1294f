import { activeTrace, traceOf } from "../base/index.ts";
import type { RunContext } from "../tools/index.ts";

/** The parts of a request that carry its trace; empty without a tracing system. */
export interface TracedRequest {
  /** For `_meta`, in which the protocol has the trace of a request. */
  readonly meta?: Readonly<Record<string, string>>;
  /** The same as HTTP headers, for proxies that do not read bodies. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The span of a tool call as W3C Trace Context, so that the server's spans are its children. */
export function traceOfRun({ agent, callId, turnId }: RunContext): TracedRequest {
  const trace = activeTrace() ?? traceOf(agent.rootAgentId, [callId, turnId]);
  if (trace === undefined) return {};
  const { traceparent, tracestate } = trace;
  const fields = { traceparent, ...(tracestate === undefined ? {} : { tracestate }) };
  return { meta: fields, headers: fields };
}
