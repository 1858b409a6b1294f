import { ModelError, type ErrorDetails } from "../errors/index.ts";
import { isContextOverflow } from "./context-overflow.ts";
import { type WireObject, wireArray, wireObject, wireText } from "./wire-values.ts";

/** Facts about a failed call that the error does not contain. */
interface FailureContext {
  /** Tokens of the prompt and of the received part of the answer; `undefined` if unknown. */
  readonly partial: { readonly inputTokens: number; readonly outputTokens: number } | undefined;
  /** Keys, and headers that may contain keys; removed from every message. */
  readonly secrets: readonly string[];
  /** Additional texts with which this server refuses a prompt that is too long. */
  readonly tooLongMessages: readonly (string | RegExp)[];
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Whether bytes of the request may have reached the server; `undefined` if it has to be derived from the error. */
  readonly wasSent: boolean | undefined;
  /** How to mend a refused key. Default: for `openaiModel`. */
  readonly keyAdvice?: string | undefined;
}

const neverConnected = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;
const untrustedPeer = /^(ERR_TLS_|ERR_SSL_|CERT_|SELF_SIGNED|DEPTH_ZERO_SELF|UNABLE_TO_|EPROTO)/;

/** Converts an error of the client, the connection or the answer into a `ModelError`, which states whether the call may be repeated. */
export function callFailure(error: unknown, context: FailureContext): ModelError {
  if (error instanceof ModelError) {
    const { message, details } = error;
    const isTooLong =
      details["kind"] === "error_in_answer" &&
      isContextOverflow({ status: error.status, named: "", message }, context.tooLongMessages);
    if (!isTooLong) return failure(message, error, context, details);
    return failure(message, { ...outcomeOf(error), retryable: false }, context, { ...details, kind: "context_length" });
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
  const read = readFault(raw["error"], status);
  const fault = read.message === "" ? { ...read, message: wireText(raw["message"]) } : read;
  const headers = raw["headers"] instanceof Headers ? raw["headers"] : new Headers();
  const { kind, retryable } = classifyFault(fault, context.tooLongMessages);
  const told = headers.get("x-should-retry");
  // The next attempt sends a different request, which includes the model's failed output.
  const isMended = kind === "tool_use_failed";
  const outcome = {
    retryable: told === "true" ? kind === "http" || retryable : (isMended || told !== "false") && retryable,
    status,
    retryAfterMs: parseRetryAfter(headers, context.now) ?? retryDelayOf(raw["error"]),
    mayHaveBeenSent: true,
  };
  const advice = status === 401 ? ` (${context.keyAdvice ?? "check apiKey or OPENAI_API_KEY"})` : "";
  return failure(`The model server answered ${status}: ${fault.message}${advice}`, outcome, context, {
    kind,
    providerCode: fault.code,
    providerType: fault.type,
    requestId: headers.get("x-request-id") ?? undefined,
    ...failedGenerationOf(kind, raw["error"]),
  });
}

function connectionFailure(error: unknown, message: string, context: FailureContext): ModelError {
  const causes = causesOf(error);
  const codes = causes.map((cause) => wireText(cause["code"])).filter((code) => code !== "");
  const syscalls = causes.map((cause) => wireText(cause["syscall"]));
  const code = codes.at(-1);
  const wasSent = context.wasSent ?? (causes.some((cause) => cause["message"] === "terminated") || undefined);
  // If bytes were sent, the TLS handshake had succeeded: a TLS error after that has another cause than the certificate.
  const isUntrusted = wasSent !== true && codes.some((each) => untrustedPeer.test(each));
  const isConnecting = syscalls.some((syscall) => syscall === "connect" || syscall === "getaddrinfo");
  const neverSent = isUntrusted || isConnecting || codes.some((each) => neverConnected.test(each));
  const surelyNotSent = wasSent === undefined ? neverSent : !wasSent;
  const isNetwork = codes.length > 0 || causes.some((cause) => cause["name"] === "TypeError");
  const last = wireText(causes.at(-1)?.["message"]);
  const words = last === "" ? message : last;
  const outcome = {
    retryable: isNetwork && !isUntrusted,
    mayHaveBeenSent: !surelyNotSent,
    cause: error,
  };
  const kind: ModelFailureKind = isNetwork ? "connection" : "unexpected";
  const advice = surelyNotSent ? ". The call was not sent: check baseURL, and that the server is running." : "";
  return failure(`The connection to the model server failed: ${words}${advice}`, outcome, context, {
    kind,
    errno: code,
  });
}

/** The text that the model wrote instead of a readable call, if the server returns it. */
function failedGenerationOf(kind: ModelFailureKind, body: unknown): { readonly failedGeneration?: string } {
  if (kind !== "tool_use_failed") return {};
  return { failedGeneration: wireText(wireObject(body)?.["failed_generation"]).slice(0, LONGEST_MESSAGE) };
}

interface Outcome {
  readonly retryable: boolean;
  readonly status?: number | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly mayHaveBeenSent: boolean;
  readonly cause?: unknown;
}

function outcomeOf({ retryable, status, retryAfterMs, mayHaveBeenSent, cause }: ModelError): Outcome {
  return { retryable, status, retryAfterMs, mayHaveBeenSent, cause };
}

function failure(message: string, outcome: Outcome, context: FailureContext, details: ErrorDetails): ModelError {
  // Truncated after keys are removed, so that no part of a key remains.
  return new ModelError(withoutSecrets(message, context).slice(0, LONGEST_MESSAGE), {
    retryable: outcome.retryable,
    status: outcome.status,
    retryAfterMs: outcome.retryAfterMs,
    mayHaveBeenSent: outcome.mayHaveBeenSent,
    partialInputTokens: context.partial?.inputTokens,
    partialOutputTokens: context.partial?.outputTokens,
    cause: outcome.cause,
    details: withoutSecretsIn(details, context),
  });
}

/** Longest message of a failure, in characters. */
const LONGEST_MESSAGE = 2_048;

/** Shorter texts are not treated as keys: servers without authentication accept any key, which may be a common word. */
const SHORTEST_SECRET = 8;

function withoutSecrets(text: string, { secrets }: FailureContext): string {
  let shown = text;
  for (const secret of secrets) if (secret.length >= SHORTEST_SECRET) shown = shown.replaceAll(secret, "***");
  return shown;
}

function withoutSecretsIn(details: ErrorDetails, context: FailureContext): ErrorDetails {
  const shown = Object.entries(details).map(([name, value]) => [
    name,
    typeof value === "string" ? withoutSecrets(value, context) : value,
  ]);
  return Object.fromEntries(shown) as ErrorDetails;
}

/** The error and its causes, outermost first. */
function causesOf(error: unknown): readonly (Readonly<Record<string, unknown>> & { name?: unknown })[] {
  const causes = [];
  let current = wireObject(error);
  for (let depth = 0; current !== undefined && depth < 8; depth += 1) {
    causes.push(current);
    current = wireObject(current["cause"]) ?? wireObject((current["errors"] as readonly unknown[] | undefined)?.[0]);
  }
  return causes;
}

/**
 * The delay that a server asked for, in milliseconds: `retry-after-ms`, else `retry-after` in seconds or as an HTTP
 * date. A date in the past is 0; an unreadable value is `undefined`. `now` is in milliseconds since the epoch.
 */
export function parseRetryAfter(headers: { get(name: string): string | null }, now: number): number | undefined {
  const milliseconds = numberOf(headers.get("retry-after-ms"));
  if (milliseconds !== undefined) return Math.ceil(milliseconds);
  const text = headers.get("retry-after");
  const seconds = numberOf(text);
  if (seconds !== undefined) return Math.ceil(seconds * 1_000);
  // `Date.parse` also accepts invalid numbers such as `-5`.
  if (text === null || !dateStart.test(text)) return undefined;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** The delay that Google names in the details of an error and not in a header: `"retryDelay": "34.5s"`. */
function retryDelayOf(error: unknown): number | undefined {
  for (const detail of wireArray(wireObject(error)?.["details"])) {
    const [, seconds] = /^(\d+(?:\.\d+)?)s$/.exec(wireText(wireObject(detail)?.["retryDelay"])) ?? [];
    if (seconds !== undefined) return Math.ceil(Number(seconds) * 1_000);
  }
  return undefined;
}

/** HTTP dates begin with a day of the week (RFC 9110, 5.6.7), ISO 8601 dates with a year. */
const dateStart = /^\s*(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s|\d{4}-\d\d-\d\dT)/i;

function numberOf(text: string | null): number | undefined {
  if (text === null || !/^\s*\d+(\.\d+)?\s*$/.test(text)) return undefined;
  return Number(text);
}

/** The reason for a failed model call, in `ModelError.details.kind`. */
export type ModelFailureKind =
  | "aborted"
  | "configuration"
  | "client"
  | "timeout"
  | "stalled"
  | "connection"
  | "incomplete"
  | "malformed"
  | "context_length"
  | "tool_use_failed"
  | "insufficient_quota"
  | "refusal"
  | "http"
  | "error_in_answer"
  | "unexpected";

/** An error as the server describes it. */
interface ProviderFault {
  readonly status: number | undefined;
  readonly code: string;
  readonly type: string;
  readonly message: string;
}

/** The server could not parse the model's tool call: a mistake of the model, which it can correct in the next attempt. */
const toolUsePattern = /tool_use_failed|failed to (?:call a function|parse tool call)/i;
const quotaPattern = /insufficient_quota|billing_hard_limit|insufficient (credit|balance|funds)/i;
/** Content that the provider refuses: the prompt, or what the model has written. Another attempt would be refused as well. */
const refusalCode =
  /content_?(?:filter|policy|safety)|responsible_?ai|data_inspection_failed|sensitive_content|(?:bio|cyber|misalignment)_policy/i;
const refusalWords =
  /content (?:filter|policy|management policy|exists risk)|content violates usage|violat\w+ (?:our|the) (?:usage|content) polic|flagged as potentially violating/i;
const lastingPattern =
  /invalid_(?:request|api_key|prompt|image|base64)|unsupported_image|image_(?:too|parse|file)|empty_image|data_residency|authentication|permission|not_found|bad_?request|content_(filter|policy)/i;

/** Reads an error object, or any other value that a server sends as `error`. */
function readFault(value: unknown, status?: number): ProviderFault {
  const raw: WireObject = wireObject(value) ?? {};
  const code = raw["code"];
  return {
    status: status ?? [code, raw["status"]].map(Number).find(isErrorStatus),
    code: typeof code === "number" ? String(code) : wireText(code),
    type: wireText(raw["type"]),
    message: typeof value === "string" ? value : withUpstream(wireText(raw["message"]), raw),
  };
}

function isErrorStatus(value: number): boolean {
  return Number.isInteger(value) && value >= 400 && value < 600;
}

/** Gateways put the message of the upstream server into `metadata.raw`; it is appended to their own. */
function withUpstream(message: string, { metadata }: WireObject): string {
  const upstream = wireText(wireObject(metadata)?.["raw"]);
  return upstream === "" ? message : `${message} (${upstream})`;
}

/** The kind of a fault, and whether another attempt may succeed. The only code that decides this. */
function classifyFault(
  { status, code, type, message }: ProviderFault,
  tooLongMessages: readonly (string | RegExp)[] = [],
): { readonly kind: ModelFailureKind; readonly retryable: boolean } {
  const named = `${code} ${type}`;
  if (isContextOverflow({ status, named, message }, tooLongMessages)) {
    return { kind: "context_length", retryable: false };
  }
  if (toolUsePattern.test(named) || toolUsePattern.test(message)) return { kind: "tool_use_failed", retryable: true };
  const isRefusal = refusalCode.test(named) || (isClientStatus(status) && refusalWords.test(message));
  if (isRefusal) return { kind: "refusal", retryable: false };
  if (quotaPattern.test(named) || status === 402) return { kind: "insufficient_quota", retryable: false };
  const kind = status === undefined ? "error_in_answer" : "http";
  if (status === undefined) return { kind, retryable: !lastingPattern.test(named) };
  return { kind, retryable: status === 408 || status === 409 || status === 429 || status >= 500 };
}

/** Only these statuses, or none in a stream, are about what was sent. */
function isClientStatus(status: number | undefined): boolean {
  return status === undefined || status === 400 || status === 403 || status === 422;
}

/** The error for a fault inside an answer, with the server's message: the status was 200 or the stream had begun. */
export function answerError(value: unknown): ModelError {
  const fault = readFault(value);
  const { kind, retryable } = classifyFault(fault);
  const words = fault.message === "" ? "no message" : fault.message;
  return new ModelError(`The model server reported an error in its answer: ${words}`, {
    retryable,
    status: fault.status,
    mayHaveBeenSent: true,
    details: {
      kind: kind === "http" ? "error_in_answer" : kind,
      providerCode: fault.code,
      providerType: fault.type,
      ...failedGenerationOf(kind, value),
    },
  });
}
