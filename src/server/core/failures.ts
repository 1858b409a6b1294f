import type { z } from "zod";
import { CorruptRecordError, type ErrorFamily, TroupeError, type TroupeErrorOptions } from "../../errors/index.ts";
import type { JsonObject } from "../../state/index.ts";

/** The part of a request that an issue is about. */
export type RequestPart = "body" | "query" | "path" | "header";

/** An invalid field of a request. */
export interface InputIssue {
  /** The part of the request. */
  readonly in: RequestPart;
  /** Names and indexes from the request part to the invalid value. */
  readonly path: readonly (string | number)[];
  /** zod's code of the issue: `invalid_type`, `unrecognized_keys`. */
  readonly code: string;
  /** What is wrong, as text. */
  readonly message: string;
  /** The invalid value; for a missing field, the object without it. */
  readonly input: unknown;
}

/** An error before a surface converts it to its own form. */
export interface Failure {
  /** HTTP status. */
  readonly status: number;
  /** Code for programs. */
  readonly code: string;
  /** Message for the caller, without details for the operator. */
  readonly message: string;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** Further details, as JSON. */
  readonly details: JsonObject;
  /** `retry-after`, `www-authenticate` and the like. */
  readonly headers: Readonly<Record<string, string>>;
  /** Empty unless the request violates the schemas of its route. */
  readonly issues: readonly InputIssue[];
}

const serverErrors = {
  invalid_request: { status: 400, family: "rejection" },
  unauthenticated: { status: 401, family: "rejection" },
  forbidden: { status: 403, family: "rejection" },
  method_not_allowed: { status: 405, family: "rejection" },
  body_too_large: { status: 413, family: "rejection" },
  unsupported_media_type: { status: 415, family: "rejection" },
  key_reused: { status: 422, family: "rejection" },
  rate_limited: { status: 429, family: "transient" },
  body_already_read: { status: 500, family: "defect" },
  unavailable: { status: 503, family: "transient" },
} as const satisfies Readonly<Record<string, { status: number; family: ErrorFamily }>>;

export type ServerErrorCode = keyof typeof serverErrors;

export interface ServerErrorOptions extends TroupeErrorOptions {
  /** Headers of the answer. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Invalid fields of the request. Default: none. */
  readonly issues?: readonly InputIssue[] | undefined;
}

/** An error that only servers throw. */
export class ServerError extends TroupeError {
  readonly code: ServerErrorCode;
  readonly family: ErrorFamily;
  readonly retryable: boolean;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly issues: readonly InputIssue[];

  constructor(code: ServerErrorCode, message: string, options: ServerErrorOptions = {}) {
    super(message, options);
    const { status, family } = serverErrors[code];
    this.code = code;
    this.family = family;
    this.retryable = family === "transient";
    this.status = status;
    this.headers = options.headers ?? {};
    this.issues = options.issues ?? [];
  }
}

/** The error for an idempotency key that was used with a different request. */
export function keyReused(): ServerError {
  return new ServerError("key_reused", "this Idempotency-Key was used with another body");
}

/** Whether the error is a key that was used with a different request or decision. */
export function isKeyReused(error: unknown): boolean {
  return error instanceof ServerError && error.code === "key_reused";
}

/**
 * The error for a request without an authenticated caller. `hasToken`: it contained credentials, which were rejected.
 */
export function unauthenticated(hasToken: boolean): ServerError {
  return new ServerError("unauthenticated", "Authentication required", {
    headers: { "www-authenticate": hasToken ? 'Bearer error="invalid_token"' : "Bearer" },
  });
}

const statusOfCode: Readonly<Record<string, number>> = {
  invalid_input: 400,
  unsupported: 400,
  policy_refused: 403,
  not_found: 404,
  agent_deleted: 410,
  agent_busy: 409,
  agent_not_started: 409,
  request_conflict: 409,
  already_owned: 409,
  turn_conflict: 422,
  lease_lost: 503,
  store_unavailable: 503,
  store_rolled_back: 503,
  turn_interrupted: 503,
};

/** Messages for callers, in place of ones that may contain the operator's files, servers or addresses. */
const plainMessages: Readonly<Record<string, string>> = {
  lease_lost: "this server is shutting down or lost the agent to another one; try again",
  store_unavailable: "the store does not respond; try again",
  store_rolled_back: "the store was reset to an earlier state; send lost requests again",
  turn_interrupted: "this server is shutting down; try again",
};

const RETRY_AFTER_SECONDS = "1";

/** Converts an error to an answer. Messages of the operator's errors are replaced; they belong in the log. */
export function failureOf(error: unknown): Failure {
  if (error instanceof ServerError) {
    const { status, code, message, retryable, headers, issues } = error;
    return { status, code, message, retryable, details: detailsOf(error), headers, issues };
  }
  const status = error instanceof TroupeError ? statusOfCode[error.code] : undefined;
  if (!(error instanceof TroupeError) || status === undefined) {
    const code = error instanceof CorruptRecordError ? error.code : "internal";
    return { status: 500, code, message: "the server failed", retryable: false, details: {}, headers: {}, issues: [] };
  }
  const { code, retryable } = error;
  if (status === 503) {
    const headers = { "retry-after": RETRY_AFTER_SECONDS };
    return { status, code, message: plainMessages[code] ?? code, retryable: true, details: {}, headers, issues: [] };
  }
  return { status, code, message: error.message, retryable, details: detailsOf(error), headers: {}, issues: [] };
}

/** The error form of troupe's own API, and of requests outside all surfaces. */
export function jsonFailure({ status, code, message, retryable, details, headers, issues }: Failure): Response {
  const places = issues.map(({ in: part, path, code: kind, message: words }) => ({
    in: part,
    path,
    code: kind,
    message: words,
  }));
  const error = { code, message, retryable, details: places.length === 0 ? details : { ...details, issues: places } };
  return Response.json({ error }, { status, headers });
}

/** The error for a request part that violates its schema. */
export function misfit(part: RequestPart, input: unknown, error: z.ZodError): ServerError {
  const issues = error.issues.slice(0, MOST_ISSUES).map((issue): InputIssue => {
    const path = issue.path.map((step) => (typeof step === "number" ? step : String(step)));
    const message = issue.message.slice(0, LONGEST_MESSAGE);
    return { in: part, path, code: issue.code, message, input: valueAt(input, path) };
  });
  const [first] = issues;
  const where = [part, ...(first?.path ?? [])].join(".");
  return new ServerError("invalid_request", `${where}: ${first?.message ?? "is invalid"}`, { issues });
}

const MOST_ISSUES = 20;
/** Maximum number of characters of an issue's message, which may list all unknown members. */
const LONGEST_MESSAGE = 1_000;

function valueAt(input: unknown, path: readonly (string | number)[]): unknown {
  let value = input;
  for (const step of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) break;
    value = (value as Readonly<Record<string | number, unknown>>)[step];
  }
  return value;
}

function detailsOf({ details }: TroupeError): JsonObject {
  return Object.fromEntries(
    Object.entries(details).filter(
      (entry): entry is [string, string | number | boolean | null] => entry[1] !== undefined,
    ),
  );
}
