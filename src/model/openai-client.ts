import { InvalidInputError } from "../errors/index.ts";

export interface OpenaiClientOptions {
  readonly apiKey: string | undefined;
  readonly baseURL: string | undefined;
  readonly organization: string | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs: number;
  readonly fetch: typeof globalThis.fetch;
}

/** What is needed of the provider's client: it brings authentication, base URL, headers and error parsing. */
export interface OpenaiClient {
  /** The key it authenticates with, to keep it out of messages. */
  readonly apiKey: string;
  /** Sends one Chat Completions request; resolves when the answer's headers have come with a good status. */
  send(body: Record<string, unknown>, signal: AbortSignal): Promise<Response>;
}

/**
 * Loads the `openai` package and makes a client that never retries. The key and the base URL default to
 * `OPENAI_API_KEY` and `OPENAI_BASE_URL`. Throws `InvalidInputError` without a key or with a base URL that is none.
 */
export async function createOpenaiClient(options: OpenaiClientOptions): Promise<OpenaiClient> {
  const apiKey = options.apiKey ?? process.env["OPENAI_API_KEY"] ?? "";
  if (apiKey === "") {
    throw new InvalidInputError(
      "No API key for the model: set OPENAI_API_KEY, or pass openaiModel(name, { apiKey }). A server that needs no key takes any text.",
    );
  }
  const given = options.baseURL ?? process.env["OPENAI_BASE_URL"] ?? "";
  const baseURL = given === "" ? undefined : given;
  if (baseURL !== undefined && !/^https?:\/\//.test(baseURL)) {
    throw new InvalidInputError(
      `The model's base URL "${baseURL}" is no http or https URL; right is for instance "https://api.openai.com/v1".`,
    );
  }
  const { OpenAI } = await import("openai");
  const client = new OpenAI({
    apiKey,
    baseURL,
    ...(options.organization === undefined ? {} : { organization: options.organization }),
    ...(options.headers === undefined ? {} : { defaultHeaders: options.headers }),
    timeout: options.timeoutMs,
    maxRetries: 0,
    fetch: options.fetch,
  });
  return {
    apiKey,
    // `chat.completions.create` does the same, but watches each key of the body while it is serialised.
    send: (body, signal) => client.post("/chat/completions", { body, signal }).asResponse(),
  };
}
