import { type ErrorDetails, ModelError } from "../errors/index.ts";
import { classifyFault, type ModelFailureKind, readFault } from "./answer-error.ts";
import { parseRetryAfter } from "./retry-after.ts";
import { wireObject, wireText } from "./wire-values.ts";

/** What is known of a call that failed, beside the error itself. */
export interface FailureContext {
  /** The prompt and what of the answer had arrived, in tokens; `undefined` where that cannot be known. */
  readonly partial: { readonly inputTokens: number; readonly outputTokens: number } | undefined;
  /** Never to be seen in a message. */
  readonly apiKey: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const neverConnected = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;
const untrustedPeer = /^(ERR_TLS_|ERR_SSL_|CERT_|SELF_SIGNED|DEPTH_ZERO_SELF|UNABLE_TO_|EPROTO)/;

/** Turns whatever the client, the connection or the answer threw into a `ModelError` that says what may be done. */
export function callFailure(error: unknown, context: FailureContext): ModelError {
  if (error instanceof ModelError) {
    return failure(error.message, error, context, error.details);
  }
  const raw = wireObject(error) ?? {};
  const status = raw["status"];
  if (typeof status === "number") return httpFailure(status, raw, context);
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof SyntaxError) {
    const outcome = { retryable: true, mayHaveBeenSent: true, cause: error };
    return failure(`The model's answer is not valid JSON: ${message}`, outcome, context, { kind: "malformed" });
  }
  return connectionFailure(error, message, context);
}

function httpFailure(status: number, raw: Readonly<Record<string, unknown>>, context: FailureContext): ModelError {
  const body = raw["error"];
  const fault = readFault(body, status);
  const headers = raw["headers"] instanceof Headers ? raw["headers"] : new Headers();
  const { kind, retryable } = classifyFault(fault);
  const told = headers.get("x-should-retry");
  const words = fault.message === "" ? wireText(raw["message"]) : fault.message;
  const outcome = {
    retryable: told === "true" ? kind === "http" || retryable : told !== "false" && retryable,
    status,
    retryAfterMs: parseRetryAfter(headers, context.now),
    mayHaveBeenSent: true,
  };
  return failure(`The model server answered ${status}: ${words.slice(0, 2_000)}`, outcome, context, {
    kind,
    providerCode: fault.code,
    providerType: fault.type,
    requestId: headers.get("x-request-id") ?? undefined,
  });
}

function connectionFailure(error: unknown, message: string, context: FailureContext): ModelError {
  const causes = causesOf(error);
  const codes = causes.map((cause) => wireText(cause["code"])).filter((code) => code !== "");
  const syscalls = causes.map((cause) => wireText(cause["syscall"]));
  const code = codes.at(-1);
  const isUntrusted = codes.some((each) => untrustedPeer.test(each));
  const isConnecting = syscalls.some((syscall) => syscall === "connect" || syscall === "getaddrinfo");
  const surelyNotSent = isUntrusted || isConnecting || codes.some((each) => neverConnected.test(each));
  const isNetwork = codes.length > 0 || causes.some((cause) => cause["name"] === "TypeError");
  const last = wireText(causes.at(-1)?.["message"]);
  const words = last === "" ? message : last;
  const outcome = {
    retryable: isNetwork && !isUntrusted,
    mayHaveBeenSent: !surelyNotSent,
    cause: error,
  };
  const kind: ModelFailureKind = isNetwork ? "connection" : "unexpected";
  return failure(`The connection to the model server failed: ${words}`, outcome, context, { kind, errno: code });
}

interface Outcome {
  readonly retryable: boolean;
  readonly status?: number | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly mayHaveBeenSent: boolean;
  readonly cause?: unknown;
}

function failure(message: string, outcome: Outcome, context: FailureContext, details: ErrorDetails): ModelError {
  const shown = context.apiKey === "" ? message : message.replaceAll(context.apiKey, "***");
  return new ModelError(shown, {
    retryable: outcome.retryable,
    status: outcome.status,
    retryAfterMs: outcome.retryAfterMs,
    mayHaveBeenSent: outcome.mayHaveBeenSent,
    partialInputTokens: context.partial?.inputTokens,
    partialOutputTokens: context.partial?.outputTokens,
    cause: outcome.cause,
    details,
  });
}

/** The error and what caused it, outermost first. */
function causesOf(error: unknown): readonly (Readonly<Record<string, unknown>> & { name?: unknown })[] {
  const causes = [];
  let current = wireObject(error);
  for (let depth = 0; current !== undefined && depth < 8; depth += 1) {
    causes.push(current);
    current = wireObject(current["cause"]) ?? wireObject((current["errors"] as readonly unknown[] | undefined)?.[0]);
  }
  return causes;
}
