import { ModelError } from "../../errors/index.ts";
import { answerError } from "../call-failure.ts";
import { wireArray, wireJson, wireObject, wireText } from "../wire-values.ts";

/** By this symbol the AI SDK recognises its errors over several copies of its package. */
const apiCallError = Symbol.for("vercel.ai.error.AI_APICallError");

/** Errors of the provider's package that are thrown before anything is sent. */
const unsent: ReadonlySet<string> = new Set([
  "AI_LoadAPIKeyError",
  "AI_LoadSettingError",
  "AI_InvalidArgumentError",
  "AI_InvalidPromptError",
  "AI_UnsupportedFunctionalityError",
  "AI_NoSuchModelError",
]);
/** Errors about an answer that cannot be read. */
const unreadable: ReadonlySet<string> = new Set([
  "AI_JSONParseError",
  "AI_TypeValidationError",
  "AI_InvalidResponseDataError",
  "AI_EmptyResponseBodyError",
  "AI_NoContentGeneratedError",
]);

/**
 * An error of a provider's package in the form that `callFailure` reads: a refusal with status, headers and the server's error, a
 * `ModelError`, or the error of the connection.
 */
export function providerFailure(error: unknown): unknown {
  const raw = wireObject(error);
  if (raw === undefined || error instanceof ModelError) return error;
  const name = wireText(raw["name"]);
  const message = wireText(raw["message"]);
  if (unsent.has(name)) {
    return new ModelError(`The model call was not sent: ${message}`, {
      retryable: false,
      mayHaveBeenSent: false,
      cause: error,
      details: { kind: "configuration" },
    });
  }
  if (unreadable.has(name)) {
    return new ModelError(`The model's answer cannot be read: ${message}`, {
      retryable: true,
      mayHaveBeenSent: true,
      cause: error,
      details: { kind: "malformed" },
    });
  }
  if (!isApiCallError(error)) return error;
  const { statusCode, responseHeaders, responseBody, data, cause } = error as Readonly<Record<string, unknown>>;
  // A status of success means that the answer could not be read.
  if (typeof statusCode !== "number") return cause ?? error;
  if (statusCode < 400) {
    return new ModelError(`The model's answer cannot be read: ${message}`, {
      retryable: true,
      mayHaveBeenSent: true,
      cause: error,
      details: { kind: "malformed" },
    });
  }
  const body = wireObject(data) ?? wireObject(wireJson(wireText(responseBody)));
  const headers = new Headers();
  for (const [field, value] of Object.entries(wireObject(responseHeaders) ?? {})) {
    if (typeof value === "string") headers.set(field, value);
  }
  return { status: statusCode, error: body?.["error"] ?? body, message, headers };
}

/**
 * The error of a part `error` in a stream: one of the provider's package, or the server's own object. `undefined` for an event of a kind
 * that the package does not know, since providers add kinds and clients are to ignore them.
 */
export function streamFailure(error: unknown): unknown {
  if (isNewEvent(error)) return undefined;
  if (error instanceof Error) return providerFailure(error);
  const raw = wireObject(error);
  const fault = wireObject(raw?.["error"]) ?? raw;
  // Errors that packages make of a provider's error have the status in this field.
  const { statusCode } = fault ?? {};
  return answerError(typeof statusCode === "number" ? { ...fault, status: statusCode } : (fault ?? error));
}

function isApiCallError(error: unknown): boolean {
  return typeof error === "object" && error !== null && apiCallError in error;
}

/** The package has validated the event with zod, and has found no schema for its `type`. */
function isNewEvent(error: unknown): boolean {
  const [issue, ...others] = wireArray(wireObject(wireObject(error)?.["cause"])?.["issues"]);
  const { code, note, path } = wireObject(issue) ?? {};
  const isKind = code === "invalid_union" && note === "No matching discriminator";
  return isKind && others.length === 0 && JSON.stringify(path) === '["type"]';
}
