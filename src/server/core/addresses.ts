import { createHash } from "node:crypto";
import { isIP, isIPv6 } from "node:net";
import type { Clock } from "../../base/index.ts";
import { type Limits, tooOften } from "./limits.ts";
import { isLoopbackName, plainAddress } from "./origins.ts";

/** The connection of a request. */
interface Sender {
  readonly request: Request;
  /** Address of the other side of the connection, where it is known. */
  readonly peer: string | undefined;
  /** Proxies in front of the server, each of which adds to `X-Forwarded-For`. */
  readonly proxies: number;
}

/**
 * The address whose requests are counted, as one text for all addresses of its owner; undefined: it is not known, or is
 * this machine. A client can write any `X-Forwarded-For`, so only what the proxies added is read.
 */
export function countedAddress({ request, peer, proxies }: Sender): string | undefined {
  const forwarded = (request.headers.get("x-forwarded-for") ?? "").split(",").map(withoutPort);
  const seen = proxies === 0 ? undefined : forwarded.at(-proxies);
  const address = plainAddress(seen !== undefined && isIP(seen) !== 0 ? seen : (peer ?? ""));
  if (isIP(address) === 0 || isLoopbackName(address)) return undefined;
  return isIPv6(address) ? networkOf(address) : address;
}

/** `10.0.0.1:5000` and `[2001:db8::1]:5000` without their ports. */
function withoutPort(text: string): string {
  const [, bracketed, plain] = /^\s*(?:\[([^\]]*)\](?::\d+)?|(\d+(?:\.\d+){3})(?::\d+)?)\s*$/.exec(text) ?? [];
  return bracketed ?? plain ?? text.trim();
}

/** The first 64 bits: one subscriber has all addresses below them. */
function networkOf(address: string): string {
  const [head = "", tail = ""] = (address.split("%", 1)[0] ?? "").split("::");
  const [first, last] = [head, tail].map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(Math.max(0, 8 - (first?.length ?? 0) - (last?.length ?? 0))).fill("0");
  const groups = [...(first ?? []), ...zeros, ...(last ?? [])].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}

interface AddressLimitsOptions extends Pick<Limits, "anonymousPerMinute" | "wrongTokensPerMinute"> {
  readonly clock: Clock;
}

/** Credentials that are remembered because they were accepted. */
const MOST_ACCEPTED = 10_000;

/**
 * Counts requests that no caller answers for, by address, in the memory of this server.
 *
 * Invariants
 * 1. An address that sent too many wrong tokens has no unknown token checked until its minute is over.
 * 2. A token that was accepted goes on working meanwhile: a stranger at the same address, behind the same proxy or
 *    network, locks nobody out who is in.
 */
export class AddressLimits {
  readonly #options: AddressLimitsOptions;
  readonly #anonymous: MinuteCounts;
  readonly #wrong: MinuteCounts;
  /** By hash. */
  readonly #accepted = new RecentMap<true>(MOST_ACCEPTED);

  constructor(options: AddressLimitsOptions) {
    this.#options = options;
    this.#anonymous = new MinuteCounts(options.clock);
    this.#wrong = new MinuteCounts(options.clock);
  }

  /** Counts a request without a caller. Throws `ServerError` (429). */
  takeAnonymous(address: string | undefined): void {
    if (address === undefined) return;
    const { anonymousPerMinute } = this.#options;
    const { count, leftMs } = this.#anonymous.add(address);
    if (count > anonymousPerMinute) throw tooOften(`${anonymousPerMinute} requests without a token`, leftMs);
  }

  /** To be called before credentials are checked. Throws `ServerError` (429). */
  assertMayTry(address: string | undefined, credentials: string): void {
    if (address === undefined) return;
    const { wrongTokensPerMinute } = this.#options;
    const { count, leftMs } = this.#wrong.at(address);
    if (count < wrongTokensPerMinute || this.#accepted.get(hashOf(credentials)) === true) return;
    throw tooOften(`${wrongTokensPerMinute} wrong tokens`, leftMs);
  }

  accepted(address: string | undefined, credentials: string): void {
    if (address !== undefined) this.#accepted.set(hashOf(credentials), true);
  }

  refused(address: string | undefined, credentials: string): void {
    if (address === undefined) return;
    this.#accepted.delete(hashOf(credentials));
    this.#wrong.add(address);
  }
}

interface MinuteCount {
  readonly count: number;
  readonly leftMs: number;
}

const MINUTE_MS = 60_000;
/** Addresses that are counted at a time. A flood of them takes no more memory. */
const MOST_ADDRESSES = 50_000;

/** Counts by address. The minute of an address begins with its first count. */
class MinuteCounts {
  readonly #clock: Clock;
  readonly #minutes = new RecentMap<{ count: number; readonly endsAt: number }>(MOST_ADDRESSES);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(address: string): MinuteCount {
    const now = this.#clock.elapsed();
    const known = this.#minutes.get(address);
    const minute = known !== undefined && known.endsAt > now ? known : { count: 0, endsAt: now + MINUTE_MS };
    minute.count += 1;
    this.#minutes.set(address, minute);
    return { count: minute.count, leftMs: minute.endsAt - now };
  }

  at(address: string): MinuteCount {
    const { count = 0, endsAt = 0 } = this.#minutes.get(address) ?? {};
    const leftMs = endsAt - this.#clock.elapsed();
    return leftMs > 0 ? { count, leftMs } : { count: 0, leftMs: 0 };
  }
}

/** A map that forgets what was not set for longest, once it holds `most` values. */
class RecentMap<Value> {
  readonly #most: number;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): Value | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  set(key: string, value: Value): void {
    this.#young.set(key, value);
    // Half of all values go at once, since a Map has its oldest value at hand only by a walk over what was deleted.
    if (this.#young.size < this.#most / 2) return;
    this.#old = this.#young;
    this.#young = new Map();
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}
