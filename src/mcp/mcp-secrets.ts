import { isSecretName } from "../base/index.ts";
import { type Redact, redactError, redactorOf } from "../tools/index.ts";
import { headersRule, type McpHeaders, type McpOptions } from "./mcp-options.ts";

/** Names of headers that carry secrets, besides those that `isSecretName` recognises. */
const secretHeaders = /key|auth|session/i;

/**
 * The headers and environment variables of a server, and what must not appear in results and errors: the values of those whose names
 * stand for secrets (`Authorization`, `X-Api-Key`, `GITHUB_TOKEN`).
 */
export class McpSecrets {
  readonly #options: McpOptions;
  /** Latest values of secret headers and environment variables. */
  readonly #values = new Map<string, string>();

  constructor(options: McpOptions) {
    this.#options = options;
    for (const [name, value] of Object.entries(options.env ?? {})) {
      if (isSecretName(name) || /key$/i.test(name)) this.#values.set(name, value);
    }
    if (typeof options.headers === "object") this.#remember(options.headers);
  }

  /** The headers for a request; a function of the user is called each time. */
  async headers(): Promise<McpHeaders> {
    const { name, headers = {} } = this.#options;
    if (typeof headers === "object") return headers;
    const given = headersRule(await headers(), `mcp("${name}"): the result of headers()`) as McpHeaders;
    this.#remember(given);
    return given;
  }

  readonly redact: Redact = (text) => redactorOf([...this.#values])(text);

  /** The error without secrets. */
  redacted<Thrown extends Error>(error: Thrown): Thrown {
    redactError(error, this.redact);
    return error;
  }

  #remember(headers: McpHeaders): void {
    for (const [name, value] of Object.entries(headers)) {
      if (!isSecretName(name) && !secretHeaders.test(name)) continue;
      this.#values.set(name, value);
      // A server may name the token without its scheme.
      const [, token] = /^(?:bearer|basic)\s+(\S+)$/i.exec(value) ?? [];
      if (token !== undefined) this.#values.set(`${name} token`, token);
    }
  }
}
