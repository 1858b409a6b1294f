import type { A2AError } from "@a2a-js/sdk/errors";
import { type Failure, failureOf } from "../core/failures.ts";
import type { Sdk } from "./sdk.ts";

/**
 * Maps an error to one of the protocol; `undefined` without an equivalent: too many requests, or a fault of the server.
 */
export function protocolError({ errors }: Sdk, error: unknown): A2AError | undefined {
  if (error instanceof errors.A2AError) return error;
  const { status, message } = failureOf(error);
  switch (status) {
    case 400:
    case 422:
      return new errors.RequestMalformedError(message);
    case 404:
      return new errors.TaskNotFoundError(NO_TASK);
    case 403:
    case 409:
      return new errors.UnsupportedOperationError(message);
    default:
      return undefined;
  }
}

/** The message is the same for missing tasks and for tasks of other callers, so that it does not reveal them. */
export const NO_TASK = "there is no such task";

interface Detail {
  readonly "@type": "type.googleapis.com/google.rpc.ErrorInfo";
  readonly reason: string;
  readonly domain: string;
}

function detailOf(reason: string, domain: string): Detail {
  return { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain };
}

/** Names of `google.rpc.Code` for the statuses that this server answers with. */
const statusNames: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  405: "UNIMPLEMENTED",
  409: "ABORTED",
  413: "INVALID_ARGUMENT",
  415: "INVALID_ARGUMENT",
  422: "INVALID_ARGUMENT",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
};

/** An error before or outside the protocol, in the form of the HTTP binding. */
export function restFailure({ status, code, message, headers }: Failure): Response {
  const details = [detailOf(code.toUpperCase(), "troupe")];
  const error = { code: status, status: statusNames[status] ?? "INTERNAL", message, details };
  return restJson({ error }, { status, headers });
}

/**
 * The HTTP binding's answer to a method's error. An error without a protocol status keeps its HTTP status: 409 for a
 * decision that another client made, 422 for a message id that was used with other content.
 */
export function restError({ errors }: Sdk, error: A2AError, cause: unknown): Response {
  const { status } = cause instanceof errors.A2AError ? { status: errors.restStatusFor(error) } : failureOf(cause);
  return restJson(errors.toRestErrorBody(error, status), { status });
}

export function restJson(body: unknown, init: ResponseInit = {}): Response {
  const headers = { ...(init.headers as Record<string, string> | undefined), "content-type": "application/a2a+json" };
  return new Response(JSON.stringify(body), { ...init, headers });
}

export const rpcCodes = { parse: -32700, invalidRequest: -32600, noMethod: -32601, internal: -32603 } as const;

/** The JSON-RPC binding's answer to an error before the request was read, or without a protocol equivalent. */
export function rpcFailure({ status, code, message, headers }: Failure): Response {
  const refused = code === "invalid_input" ? rpcCodes.parse : rpcCodes.invalidRequest;
  const isOurs = status >= 500 || status === 429;
  const error = {
    code: isOurs ? rpcCodes.internal : refused,
    message,
    data: [detailOf(code.toUpperCase(), "troupe")],
  };
  return Response.json({ jsonrpc: "2.0", id: null, error }, { status, headers });
}
