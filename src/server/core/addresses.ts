import { createHash } from "node:crypto";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { type Limits, Rate } from "./limits.ts";

/** The connection of a request. */
interface Sender {
  readonly request: Request;
  /** Address of the other side of the connection, where it is known. */
  readonly peer: string | undefined;
  /** Proxies in front of the server, each of which adds to `X-Forwarded-For`. */
  readonly proxies: number;
}

/**
 * The address whose requests are counted; `undefined` if it is not known, or is this machine. Of IPv6 it is the network of
 * 64 bits, since one subscriber has all addresses in it. A client can write any `X-Forwarded-For`, so only what the proxies
 * added is read.
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

/** `10.0.0.1:5000` and `[2001:db8::1]:5000` without their ports. */
function withoutPort(text: string): string {
  const [, bracketed, plain] = /^\s*(?:\[([^\]]*)\](?::\d+)?|(\d+(?:\.\d+){3})(?::\d+)?)\s*$/.exec(text) ?? [];
  return bracketed ?? plain ?? text.trim();
}

/** Credentials that are remembered because they were accepted. */
const MOST_ACCEPTED = 10_000;

/**
 * Counts requests that no caller answers for, by address, in the memory of this server.
 *
 * Invariants
 * 1. An address that sent too many wrong tokens has no unknown token checked until its minute is over.
 * 2. A token that was accepted goes on working meanwhile: a stranger at the same address, behind the same proxy or
 *    network, cannot lock out a caller whose token is known.
 */
export class AddressLimits {
  readonly #anonymous: Rate;
  readonly #wrong: Rate;
  /** Hashes, the one that was accepted last at the end. */
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

  /** To be called before credentials are checked. Rejects with `ServerError` (429). */
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
