import { wordsOfThrown } from "../base/index.ts";
import { ToolNotStartedError } from "../errors/index.ts";
import { McpServerError } from "./mcp-server-error.ts";

export interface FetchRules {
  /** Maximum bytes of an answer, or of one event of a stream. */
  readonly maxBytes: number;
  /** The caller's own headers, requested before each request. */
  headers(): Promise<Readonly<Record<string, string>>>;
}

/** A `fetch` with the caller's headers and a limit on received bytes, after which the body fails. */
export function boundedFetch(rules: FetchRules): typeof fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers);
    for (const [name, value] of Object.entries(await ownHeaders(rules))) headers.set(name, value);
    return bounded(await fetch(input, { ...init, headers }), rules.maxBytes);
  };
}

async function ownHeaders(rules: FetchRules): Promise<Readonly<Record<string, string>>> {
  try {
    return await rules.headers();
  } catch (error) {
    throw new ToolNotStartedError(`the headers cannot be read: ${wordsOfThrown(error)}`);
  }
}

function bounded(response: Response, maxBytes: number): Response {
  const { body, status, statusText, headers } = response;
  if (!body) return response;
  const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
  let seen = 0;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      seen += chunk.byteLength;
      if (seen > maxBytes) {
        controller.error(new McpServerError(`the server sent more than ${maxBytes} bytes at once`));
        return;
      }
      // A blank line ends an event.
      if (isStream && /\n\r?\n/.test(Buffer.from(chunk).toString("latin1"))) seen = 0;
      controller.enqueue(chunk);
    },
  });
  return new Response(body.pipeThrough(counted), { status, statusText, headers });
}
