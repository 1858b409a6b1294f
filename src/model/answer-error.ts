import { ModelError } from "../errors/index.ts";
import { type WireObject, wireObject, wireText } from "./wire-values.ts";

/** What went wrong with a model call, in `ModelError.details.kind`. */
export type ModelFailureKind =
  | "aborted"
  | "timeout"
  | "stalled"
  | "connection"
  | "incomplete"
  | "malformed"
  | "context_length"
  | "insufficient_quota"
  | "http"
  | "error_in_answer"
  | "unexpected";

/** The error that a server describes in its own words. */
export interface ProviderFault {
  readonly status: number | undefined;
  readonly code: string;
  readonly type: string;
  readonly message: string;
}

const contextLengthPattern =
  /context[ _]?(length|window|limit|size)|maximum (context|prompt) length|(prompt|input|request) is too long|too many (input )?tokens|exceeds the maximum number of tokens/i;
const quotaPattern = /insufficient_quota|billing_hard_limit|insufficient (credit|balance|funds)/i;
const lastingPattern =
  /invalid_request|invalid_api_key|authentication|permission|not_found|bad_?request|content_(filter|policy)/i;

/** Reads an error object, or whatever stands where one should be. */
export function readFault(value: unknown, status?: number): ProviderFault {
  const raw: WireObject = wireObject(value) ?? {};
  const code = raw["code"];
  const numeric = Number(code ?? raw["status"]);
  return {
    status: status ?? (Number.isInteger(numeric) && numeric >= 400 && numeric < 600 ? numeric : undefined),
    code: typeof code === "number" ? String(code) : wireText(code),
    type: wireText(raw["type"]),
    message: typeof value === "string" ? value : wireText(raw["message"]),
  };
}

/** What a fault is, and whether another attempt may succeed. The one place that decides it. */
export function classifyFault(fault: ProviderFault): { readonly kind: ModelFailureKind; readonly retryable: boolean } {
  const { status, message } = fault;
  const named = `${fault.code} ${fault.type}`;
  const isClientFault = status === undefined || (status >= 400 && status < 500 && status !== 429);
  if (isClientFault && (/context_(length|size)/i.test(named) || contextLengthPattern.test(message))) {
    return { kind: "context_length", retryable: false };
  }
  if (quotaPattern.test(named) || status === 402) return { kind: "insufficient_quota", retryable: false };
  const kind = status === undefined ? "error_in_answer" : "http";
  if (status === undefined) return { kind, retryable: !lastingPattern.test(named) };
  return { kind, retryable: status === 408 || status === 409 || status === 429 || status >= 500 };
}

/** An error that came inside an answer, as the server's words for it: the status was 200 or the stream had begun. */
export function answerError(value: unknown): ModelError {
  const fault = readFault(value);
  const { kind, retryable } = classifyFault(fault);
  const words = fault.message === "" ? "no message" : fault.message;
  return new ModelError(`The model server sent an error in its answer: ${words}`, {
    retryable,
    status: fault.status,
    mayHaveBeenSent: true,
    details: { kind: kind === "http" ? "error_in_answer" : kind, providerCode: fault.code, providerType: fault.type },
  });
}
