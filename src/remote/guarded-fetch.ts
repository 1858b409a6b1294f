import { RemoteAgentError } from "./remote-error.ts";

export interface FetchRules {
  /** Allowed origins of requests, as `https://host:port`. */
  readonly origins: ReadonlySet<string>;
  /** Maximum bytes of one answer, including streams. */
  readonly maxBytes: number;
  /** The caller's own headers, requested before each request. */
  headers(): Promise<Readonly<Record<string, string>>>;
}

/**
 * A `fetch` for remote agents: only to allowed origins, without following redirects, and with a limit on received
 * bytes. Rejects with `RemoteAgentError`; answers with other statuses are returned for the protocol to handle.
 */
export function guardedFetch(rules: FetchRules): typeof fetch {
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (!rules.origins.has(url.origin)) {
      throw new RemoteAgentError(
        "remote_card",
        `${url.origin} is not allowed; allowed are ${[...rules.origins].join(", ")}`,
      );
    }
    const headers = new Headers(init?.headers);
    for (const [name, value] of Object.entries(await rules.headers())) headers.set(name, value);
    try {
      const response = await fetch(url, { ...init, headers, redirect: "manual" });
      assertStatus(response, url);
      return bounded(response, rules.maxBytes);
    } catch (error) {
      if (error instanceof RemoteAgentError) throw error;
      init?.signal?.throwIfAborted();
      const isSent = !notSent.has(codeOf(error));
      throw new RemoteAgentError("remote_unreachable", `${url.origin} cannot be reached: ${errorText(error)}`, {
        details: { isSent },
        cause: error,
      });
    }
  };
}

/** Codes of errors before a connection was established, so that nothing was sent. */
const notSent: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

/** Node's fetch puts the reason into the cause. */
function errorText(error: unknown): string {
  return codeOf(error) || (error instanceof Error ? error.message : "the request failed");
}

function codeOf(error: unknown): string {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } };
  return typeof cause?.code === "string" ? cause.code : "";
}

function assertStatus({ status, type }: Response, { origin, pathname }: URL): void {
  const where = `${origin}${pathname}`;
  if (type === "opaqueredirect" || (status >= 300 && status < 400)) {
    throw new RemoteAgentError(
      "remote_protocol",
      `${where} redirects to another address, and redirects are not followed`,
    );
  }
  if (status === 401 || status === 403) {
    const why = status === 401 ? "requires other credentials" : "refuses these credentials";
    throw new RemoteAgentError("remote_unauthorized", `${where} ${why} (${status})`, { details: { status } });
  }
  if (status === 408 || status === 429 || status >= 500) {
    const isSent = status !== 429 && status !== 503;
    throw new RemoteAgentError("remote_unavailable", `${where} answers ${status}`, { details: { status, isSent } });
  }
}

/** The same answer with a size limit, after which its body fails. A broken connection becomes a `RemoteAgentError`. */
function bounded(response: Response, maxBytes: number): Response {
  const { body, status, headers } = response;
  if (!body) return response;
  let seen = 0;
  const reader = body.getReader();
  const counted = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        seen += value.byteLength;
        if (seen <= maxBytes) return controller.enqueue(value);
        const error = new RemoteAgentError(
          "remote_protocol",
          `the remote agent sent more than ${maxBytes} bytes in one answer`,
        );
        controller.error(error);
        await reader.cancel(error);
      } catch (error) {
        const isOurs = error instanceof RemoteAgentError || (error as Partial<Error>).name === "AbortError";
        controller.error(
          isOurs
            ? error
            : new RemoteAgentError("remote_unreachable", `the connection broke: ${errorText(error)}`, { cause: error }),
        );
      }
    },
    async cancel(reason) {
      await reader.cancel(reason);
    },
  });
  return new Response(counted, { status, headers });
}

/** Parses the answer as JSON. */
export async function jsonOf(response: Response, what: string): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    if (error instanceof RemoteAgentError) throw error;
    throw new RemoteAgentError("remote_protocol", `${what} is not valid JSON`, { cause: error });
  }
}
