import { z } from "zod";
import { NotFoundError } from "../../errors/index.ts";
import { type Failure, failureOf, ServerError } from "../core/failures.ts";

/** The body of every error response of this protocol. */
export interface ProtocolError {
  readonly message: string;
  readonly type: string;
  /** Path of the parameter: `messages[2].content`. */
  readonly param: string | null;
  readonly code: string | null;
}

export const errorBodySchema = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string().nullable(),
    }),
  })
  .meta({ id: "Error" });

const types: Readonly<Record<number, string>> = {
  401: "invalid_request_error",
  403: "permission_error",
  409: "conflict_error",
  429: "requests",
  503: "service_unavailable",
};

/** The protocol's code for each of ours. */
const codes: Readonly<Record<string, string>> = {
  unauthenticated: "invalid_api_key",
  rate_limited: "rate_limit_exceeded",
  key_reused: "idempotency_key_reused",
  turn_conflict: "idempotency_key_reused",
  internal: "server_error",
};

/** An error for an invalid request, with status 400. */
export function badRequest(message: string, about: { param?: string; code?: string } = {}): ServerError {
  return new ServerError("invalid_request", message, { details: about });
}

/** The error for a model that is unavailable to the caller. */
export function noSuchModel(model: string): NotFoundError {
  return new NotFoundError(`The model \`${model.slice(0, 64)}\` does not exist or you do not have access to it.`, {
    details: { param: "model", code: "model_not_found" },
  });
}

/** The answer to a failure. The official clients read the status, the body, `retry-after` and `x-should-retry`. */
export function openAiFailure(failure: Failure): Response {
  const { status, headers, retryable } = failure;
  // Without the header, clients retry every status from 409 on, including permanent failures.
  const retry = status >= 409 ? { "x-should-retry": String(retryable || works(failure)) } : {};
  return Response.json({ error: errorOf(failure) }, { status, headers: { ...headers, ...retry } });
}

/** Whether the agent is working, so that the failure will pass without a decision. */
function works({ code, details }: Failure): boolean {
  return code === "agent_busy" && details["requestIds"] === undefined;
}

/** The error of a stream that fails after it has started. */
export function streamError(error: unknown): ProtocolError {
  return errorOf(failureOf(error));
}

function errorOf({ status, code, message, details, issues }: Failure): ProtocolError {
  const [issue] = issues;
  const param = issue === undefined ? details["param"] : parameterPath(issue.path);
  return {
    message: status === 401 ? "Incorrect API key provided: send the token as Authorization: Bearer …" : message,
    type: types[status] ?? (status >= 500 ? "server_error" : "invalid_request_error"),
    param: typeof param === "string" ? param : null,
    code: typeof details["code"] === "string" ? details["code"] : (codes[code] ?? code),
  };
}

/** `messages[2].content`. */
function parameterPath(path: readonly (string | number)[]): string | null {
  const text = path.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`)).join("");
  return text === "" ? null : text.replace(/^\./, "");
}
