import { visible, wordsOfThrown } from "../base/index.ts";
import { ToolNotStartedError } from "../errors/index.ts";
import { McpAuthorizationError } from "./mcp-authorization-error.ts";
import type { McpSdk } from "./mcp-sdk.ts";
import { McpServerError } from "./mcp-server-error.ts";

/** What an error of a call says about the call's effect, and about the connection. */
export interface CallFailure {
  /** Whether the server certainly did not run the tool. */
  readonly isNotStarted: boolean;
  /** Whether later calls need another connection. */
  readonly isConnectionLost: boolean;
  /** Whether the server has forgotten the session, so that the same call may be sent once more in another one. */
  readonly isSessionLost: boolean;
}

/** Longest text of a server in an error, in UTF-16 units. */
const LONGEST_WORDS = 2_000;

/** Protocol errors with which a server refuses a call before the tool runs: unknown method or tool, invalid arguments, a URL to visit first. */
const refusals: ReadonlySet<number> = new Set([-32_601, -32_602, -32_042]);

/** Errors of the client before it has sent the call. */
const unsent: ReadonlySet<string> = new Set([
  "NOT_CONNECTED",
  "NOT_INITIALIZED",
  "CAPABILITY_NOT_SUPPORTED",
  "METHOD_NOT_SUPPORTED_BY_PROTOCOL_VERSION",
  "ERA_NEGOTIATION_FAILED",
  "CLIENT_HTTP_AUTHENTICATION",
  "CLIENT_HTTP_FORBIDDEN",
]);

/** Errors of the client after which the connection takes no more calls. */
const broken: ReadonlySet<string> = new Set(["NOT_CONNECTED", "CONNECTION_CLOSED", "SEND_FAILED"]);

/** Codes of errors before a connection was established, so that nothing was sent. */
const unreached: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Classifies what a call was rejected with. Every error that is not listed leaves the outcome unknown. */
export function failureOf({ client }: McpSdk, error: unknown, hasSession: boolean): CallFailure {
  if (error instanceof client.ProtocolError) {
    return { isNotStarted: refusals.has(error.code), isConnectionLost: false, isSessionLost: false };
  }
  // A function of the user failed to return the headers, before the request was sent.
  const isOurs = error instanceof ToolNotStartedError || error instanceof McpAuthorizationError;
  if (error instanceof client.UnauthorizedError || error instanceof client.InsufficientScopeError || isOurs) {
    return { isNotStarted: true, isConnectionLost: false, isSessionLost: false };
  }
  if (error instanceof client.SdkHttpError) return failureOfStatus(error.status, error.message, hasSession);
  if (error instanceof client.SdkError) {
    return { isNotStarted: unsent.has(error.code), isConnectionLost: broken.has(error.code), isSessionLost: false };
  }
  return { isNotStarted: unreached.has(networkCodeOf(error)), isConnectionLost: true, isSessionLost: false };
}

function failureOfStatus(status: number, message: string, hasSession: boolean): CallFailure {
  const isSessionLost = hasSession && (status === 404 || (status === 400 && /session/i.test(message)));
  const isRefused = status === 401 || status === 403 || status === 404 || status === 405;
  return { isNotStarted: isSessionLost || isRefused, isConnectionLost: isSessionLost, isSessionLost };
}

/** Node's `fetch` has the code of the network's error in its cause; with several addresses, in the first of several. */
function networkCodeOf(error: unknown): string {
  let cause: unknown = error;
  for (let depth = 0; depth < 5 && typeof cause === "object" && cause !== null; depth += 1) {
    const { code, errors } = cause as { readonly code?: unknown; readonly errors?: unknown };
    if (typeof code === "string" && code !== "") return code;
    cause = Array.isArray(errors) ? errors[0] : (cause as { readonly cause?: unknown }).cause;
  }
  return "";
}

/** The error of a tool's call. For a `once` tool, any error but `ToolNotStartedError` makes the outcome unknown. */
export function callErrorOf(server: string, error: unknown, failure: CallFailure): Error {
  if (error instanceof McpAuthorizationError) return error;
  const words = wordsOf(error);
  if (failure.isNotStarted) {
    return new ToolNotStartedError(`The MCP server "${server}" did not run the tool: ${words}`);
  }
  return new McpServerError(`the MCP server "${server}" gave no result: ${words}`);
}

/** The error's message, with the reason of the network, shortened. */
export function wordsOf(error: unknown): string {
  const code = networkCodeOf(error);
  const words = wordsOfThrown(error);
  const whole =
    code === "" || words.includes(code) || !/^(?:E[A-Z0-9]+|EAI_[A-Z]+|UND_ERR_[A-Z_]+)$/.test(code)
      ? words
      : `${words} (${code})`;
  const plain = visible(whole.toWellFormed());
  return plain.length <= LONGEST_WORDS ? plain : `${plain.slice(0, LONGEST_WORDS)}…`;
}
