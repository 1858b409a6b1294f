import { isSecretName } from "../base/index.ts";
import { type Redact, redactError, redactorOf } from "../tools/index.ts";
import { headersRule, type McpHeaders, type McpOptions, type McpOwner } from "./mcp-options.ts";

/** Names of headers that carry secrets, besides those that `isSecretName` recognises. */
const secretHeaders = /key|auth|session/i;
/** Owners whose latest secrets are known. */
const MOST_OWNERS = 1_000;

/**
 * The headers and environment variables of a server, and what must not appear in results and errors: the values of those whose names
 * stand for secrets (`Authorization`, `X-Api-Key`, `GITHUB_TOKEN`). The secrets of all owners are removed from every text, because a
 * server may show one owner what it got from another.
 */
export class McpSecrets {
  readonly #options: McpOptions;
  /** Values that all owners share. */
  readonly #shared = new Map<string, string>();
  /** Latest values of secret headers by owner; the owner whose headers were read last is the last. */
  readonly #owned = new Map<string | null, Map<string, string>>();
  #redact: Redact | undefined;

  constructor(options: McpOptions) {
    this.#options = options;
    for (const [name, value] of Object.entries(options.env ?? {})) {
      if (isSecretName(name) || /key$/i.test(name)) this.#shared.set(name, value);
    }
    for (const [name, value] of Object.entries(options.secrets ?? {})) this.#shared.set(name, value);
    if (typeof options.headers === "object") remember(this.#shared, options.headers);
  }

  /** The headers for a request of an owner; a function of the user is called each time. */
  async headers({ actorId }: McpOwner): Promise<McpHeaders> {
    const { name, headers = {} } = this.#options;
    if (typeof headers === "object") return headers;
    const given = headersRule(await headers({ actorId }), `mcp("${name}"): the result of headers()`) as McpHeaders;
    if (remember(this.#ownedBy(actorId), given)) this.#redact = undefined;
    return given;
  }

  /** Adds a token of an owner. The one before it is kept too, because an answer may still contain it. */
  rememberToken({ actorId }: McpOwner, name: string, value: string): void {
    const owned = this.#ownedBy(actorId);
    const last = owned.get(name);
    if (last === value) return;
    if (last !== undefined) owned.set(`last ${name}`, last);
    owned.set(name, value);
    this.#redact = undefined;
  }

  #ownedBy(actorId: string | null): Map<string, string> {
    const owned = this.#owned.get(actorId) ?? new Map<string, string>();
    this.#owned.delete(actorId);
    this.#owned.set(actorId, owned);
    for (const oldest of this.#owned.keys()) {
      if (this.#owned.size <= MOST_OWNERS) break;
      this.#owned.delete(oldest);
    }
    return owned;
  }

  readonly redact: Redact = (text) => {
    this.#redact ??= redactorOf([...this.#shared, ...[...this.#owned.values()].flatMap((owned) => [...owned])]);
    return this.#redact(text);
  };

  /** The error without secrets. */
  redacted<Thrown extends Error>(error: Thrown): Thrown {
    redactError(error, this.redact);
    return error;
  }
}

/** Adds the secrets among the headers. Returns whether there was a new one. */
function remember(values: Map<string, string>, headers: McpHeaders): boolean {
  const seen: [name: string, value: string][] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (!isSecretName(name) && !secretHeaders.test(name)) continue;
    seen.push([name, value]);
    // A server may name the token without its scheme.
    const [, token] = /^(?:bearer|basic)\s+(\S+)$/i.exec(value) ?? [];
    if (token !== undefined) seen.push([`${name} token`, token]);
  }
  const isNew = seen.some(([name, value]) => values.get(name) !== value);
  for (const [name, value] of seen) values.set(name, value);
  return isNew;
}
