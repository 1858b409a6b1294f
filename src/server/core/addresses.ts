import { createHash } from "node:crypto";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { type Limits, Rate } from "./limits.ts";

/** The connection of a request. */
interface Sender {
  readonly request: Request;
  /** Remote address of the connection, if known. */
  readonly peer: string | undefined;
  /** Number of proxies in front of the server, each of which appends to `X-Forwarded-For`. */
  readonly proxies: number;
}

/**
 * The address whose requests are counted; `undefined` if it is unknown or local. For IPv6 it is the /64 network,
 * because one subscriber owns all its addresses. Only the entries that the proxies added are read, because a client can
 * write any `X-Forwarded-For`.
 */
export function countedAddress({ request, peer, proxies }: Sender): string | undefined {
  const forwarded = (request.headers.get("x-forwarded-for") ?? "").split(",").map(withoutPort);
  const seen = proxies === 0 ? undefined : forwarded.at(-proxies);
  const text = seen !== undefined && isIP(seen) !== 0 ? seen : (peer ?? "");
  if (isIP(text) === 0) return undefined;
  const address = ipaddr.process(text);
  if (address.range() === "loopback") return undefined;
  if (address instanceof ipaddr.IPv4) return address.toString();
  return `${new ipaddr.IPv6([...address.parts.slice(0, 4), 0, 0, 0, 0]).toString()}/64`;
}

/** Removes the port from `10.0.0.1:5000` and `[2001:db8::1]:5000`. */
function withoutPort(text: string): string {
  const [, bracketed, plain] = /^\s*(?:\[([^\]]*)\](?::\d+)?|(\d+(?:\.\d+){3})(?::\d+)?)\s*$/.exec(text) ?? [];
  return bracketed ?? plain ?? text.trim();
}

/** Maximum number of remembered credentials that were accepted. */
const MOST_ACCEPTED = 10_000;

/**
 * Counts requests without an authenticated caller by address, in this server's memory.
 *
 * Invariants
 * 1. After too many wrong tokens from an address, its unknown tokens are refused unchecked for the rest of the minute.
 * 2. Accepted tokens still work meanwhile, so a stranger behind the same proxy or network cannot lock out a caller with
 *    a known token.
 */
export class AddressLimits {
  readonly #anonymous: Rate;
  readonly #wrong: Rate;
  /** Hashes of accepted credentials, the most recent last. */
  readonly #accepted = new Set<string>();

  constructor({
    anonymousPerMinute,
    wrongTokensPerMinute,
  }: Pick<Limits, "anonymousPerMinute" | "wrongTokensPerMinute">) {
    this.#anonymous = new Rate({ perMinute: anonymousPerMinute, what: "requests without a token" });
    this.#wrong = new Rate({ perMinute: wrongTokensPerMinute, what: "wrong tokens" });
  }

  /** Counts a request without a caller. Rejects with `ServerError` (429). */
  async takeAnonymous(address: string | undefined): Promise<void> {
    if (address !== undefined) await this.#anonymous.take(address);
  }

  /** Must be called before credentials are checked. Rejects with `ServerError` (429). */
  async assertMayTry(address: string | undefined, credentials: string): Promise<void> {
    if (address !== undefined && !this.#accepted.has(hashOf(credentials))) await this.#wrong.assertLeft(address);
  }

  accepted(address: string | undefined, credentials: string): void {
    if (address === undefined) return;
    const hash = hashOf(credentials);
    this.#accepted.delete(hash);
    this.#accepted.add(hash);
    if (this.#accepted.size <= MOST_ACCEPTED) return;
    for (const oldest of this.#accepted) {
      this.#accepted.delete(oldest);
      break;
    }
  }

  async refused(address: string | undefined, credentials: string): Promise<void> {
    if (address === undefined) return;
    this.#accepted.delete(hashOf(credentials));
    await this.#wrong.count(address);
  }
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}
