import { tokenAuth } from "troupe/server";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { AddressLimits, countedAddress } from "../../src/server/core/addresses.ts";
import { from, identities, requestOf, routeAt, runtimeOf, serve, surfaceOf, tokens } from "./served.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const surfaces = [surfaceOf(routeAt("who", ({ identity }) => Response.json(identity.userId)))];
const [far, other] = [from("203.0.113.7"), from("203.0.113.8")];

function addressOf(peer: string | undefined, proxies: number, forwarded?: string): string | undefined {
  const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
  return countedAddress({ request: new Request("http://127.0.0.1/", { headers }), peer, proxies });
}

describe("the address that counts for the rate limit", () => {
  it.each([
    ["a client's own", "203.0.113.7", 0, undefined, "203.0.113.7"],
    ["the IPv4 address mapped into IPv6", "::ffff:203.0.113.7", 0, undefined, "203.0.113.7"],
    ["the network of an IPv6 address", "2001:db8:0:1::7", 0, undefined, "2001:db8:0:1::/64"],
    ["the same for another notation", "2001:0DB8::1:ff:0:0:8", 0, undefined, "2001:db8:0:1::/64"],
    ["none for this machine", "127.0.0.1", 0, undefined, undefined],
    ["none for this machine in IPv6", "::1", 0, undefined, undefined],
    ["none if it is unknown", undefined, 0, undefined, undefined],
    ["not the client's own header", "203.0.113.7", 0, "198.51.100.1", "203.0.113.7"],
    ["the address seen by the one proxy", "10.0.0.1", 1, "6.6.6.6, 198.51.100.1", "198.51.100.1"],
    [
      "the address seen by the outer of two proxies",
      "10.0.0.1",
      2,
      "6.6.6.6, 198.51.100.1:4711, 10.0.0.2",
      "198.51.100.1",
    ],
    ["an IPv6 address with its port", "127.0.0.1", 1, "[2001:db8::1]:4711", "2001:db8::/64"],
    ["the peer's, if the proxy wrote nothing", "10.0.0.1", 1, undefined, "10.0.0.1"],
    ["the peer's, if the proxy wrote no address", "10.0.0.1", 1, "unknown", "10.0.0.1"],
  ] as const)("is %s", (_, peer, proxies, forwarded, expected) => {
    expect(addressOf(peer, proxies, forwarded)).toBe(expected);
  });
});

/** A server that accepts three wrong tokens of an address per minute. */
async function guarded() {
  let checked = 0;
  const known = tokenAuth({ tokens: identities });
  const authenticate = (request: Request) => {
    checked += 1;
    return known(request);
  };
  const { server, lines } = serve(await runtimeOf(), {
    surfaces,
    authenticate,
    limits: { wrongTokensPerMinute: 3 },
  });
  const ask = async (token: string, env: unknown) => {
    const response = await server.fetch(requestOf("/test/who", { headers: { authorization: `Bearer ${token}` } }), env);
    return [response.status, response.headers.get("retry-after")];
  };
  return { ask, lines, checked: () => checked };
}

describe("an address that sends wrong tokens", () => {
  it("has no tokens checked above the limit, until its minute is over", async () => {
    const { ask, checked, lines } = await guarded();
    for (let guess = 1; guess <= 3; guess += 1)
      expect(await ask(`token-of-nobody-00${guess}`, far)).toEqual([401, null]);
    vi.advanceTimersByTime(20_000);
    // A valid token that was never used from there waits too, otherwise it could be guessed.
    for (const token of ["token-of-nobody-004", tokens.ann]) expect(await ask(token, far)).toEqual([429, "40"]);
    expect(checked()).toBe(3);
    expect(lines.at(-1)).toMatchObject({ code: "rate_limited", userId: null });
    expect(await ask(tokens.ann, other)).toEqual([200, null]);
    vi.advanceTimersByTime(40_000);
    expect(await ask(tokens.ann, far)).toEqual([200, null]);
  });

  it("does not lock out a caller there whose token was accepted before", async () => {
    const { ask } = await guarded();
    expect(await ask(tokens.ann, far)).toEqual([200, null]);
    for (let guess = 1; guess <= 4; guess += 1) await ask(`token-of-nobody-00${guess}`, far);
    expect(await ask(tokens.ann, far)).toEqual([200, null]);
    expect((await ask(tokens.bob, far))[0]).toBe(429);
  });

  it("is not limited if it is unknown or this machine", async () => {
    const { ask } = await guarded();
    for (const env of [undefined, from("127.0.0.1")]) {
      for (let guess = 1; guess <= 5; guess += 1) expect((await ask("token-of-nobody-001", env))[0]).toBe(401);
    }
  });
});

it("an address has a limit of requests without a caller per minute: public ones, unknown ones, and those without a token", async () => {
  const { server } = serve(await runtimeOf(), { surfaces, limits: { anonymousPerMinute: 4 } });
  const ask = async (path: string, init: RequestInit = {}, env: unknown = far) =>
    (await server.fetch(new Request(`http://127.0.0.1${path}`, init), env)).status;
  const asks = [
    () => ask("/healthz"),
    () => ask("/none"),
    () => ask("/test/who"),
    () => ask("/healthz", { method: "PUT" }),
  ];
  const statuses = [];
  for (const one of [...asks, ...asks]) statuses.push(await one());
  expect(statuses).toEqual([200, 404, 401, 405, 429, 429, 429, 429]);
  // An authenticated caller is counted separately, and so is another address.
  expect((await server.fetch(requestOf("/test/who"), far)).status).toBe(200);
  expect(await ask("/healthz", {}, other)).toBe(200);
  vi.advanceTimersByTime(60_000);
  expect(await ask("/healthz")).toBe(200);
});

it("a flood of addresses takes a bounded amount of memory, and is forgotten after a minute", async () => {
  const limits = new AddressLimits({ anonymousPerMinute: 1, wrongTokensPerMinute: 1 });
  const before = process.memoryUsage().heapUsed;
  for (let number = 0; number < 50_000; number += 1) await limits.refused(`address ${number}`, "Bearer x");
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(100_000_000);
  await expect(limits.assertMayTry("address 0", "Bearer y")).rejects.toThrow("more than 1 wrong tokens in a minute");
  vi.advanceTimersByTime(60_000);
  await limits.assertMayTry("address 0", "Bearer y");
});
