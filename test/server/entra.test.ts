import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT, UnsecuredJWT, type JWTPayload } from "jose";
import { createFakeClock } from "troupe/testing";
import { type Authenticate, entraAuth, ServerError } from "troupe/server";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";

const tenantId = "11111111-2222-3333-4444-555555555555";
const audience = "api://troupe";
const issuer = `https://login.microsoftonline.com/${tenantId}/v2.0`;

let privateKey: CryptoKey;
let publicKey: CryptoKey;
beforeAll(async () => {
  ({ privateKey, publicKey } = await generateKeyPair("RS256", { extractable: true }));
});

interface Directory {
  readonly url: string;
  /** The fetched paths. */
  readonly fetched: string[];
  status: number;
}

/** The key server of the directory. */
async function directory(): Promise<Directory> {
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: "one", use: "sig", alg: "RS256" }] };
  const state: Directory = { url: "", fetched: [], status: 200 };
  const server: Server = createServer((request, response) => {
    state.fetched.push(request.url ?? "");
    response.writeHead(state.status, { "content-type": "application/json" }).end(JSON.stringify(keys));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return Object.assign(state, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys` });
}

const claims = { oid: "ann", tid: tenantId, scp: "Chat.Read Chat.Write" };

function token(payload: JWTPayload = claims, header: { alg?: string; kid?: string; jku?: string } = {}): SignJWT {
  return new SignJWT(payload)
    .setProtectedHeader({ alg: "RS256", kid: "one", ...header })
    .setIssuer(issuer)
    .setAudience(audience)
    .setExpirationTime("1h");
}

function asked(text: string): Request {
  return new Request("http://127.0.0.1/", { headers: { authorization: `Bearer ${text}` } });
}

async function knows(authenticate: Authenticate, jwt: SignJWT): Promise<unknown> {
  return await authenticate(asked(await jwt.sign(privateKey)));
}

it("returns the user, the tenant and the scopes of a token of the directory", async () => {
  const authenticate = entraAuth({ tenantId, audience, keysUrl: (await directory()).url });
  const user = { userId: "ann", tenant: tenantId, scopes: ["Chat.Read", "Chat.Write"] };
  expect(await knows(authenticate, token())).toEqual(user);
  expect(await knows(authenticate, token().setIssuer(`https://sts.windows.net/${tenantId}/`))).toEqual(user);
  const roles = await knows(authenticate, token({ oid: "job", tid: tenantId, roles: ["Worker"] }));
  expect(roles).toEqual({ userId: "job", tenant: tenantId, scopes: ["Worker"] });
  expect(await authenticate(new Request("http://127.0.0.1/"))).toBeNull();
});

const minute = 60;

function now(): number {
  return Math.floor(Date.now() / 1_000);
}

describe("refuses", () => {
  it.each<[string, () => SignJWT]>([
    ["another audience", () => token().setAudience("api://other")],
    ["another issuer", () => token().setIssuer("https://login.microsoftonline.com/other/v2.0")],
    ["another directory of the same issuer", () => token({ ...claims, tid: "other" })],
    ["an expired token", () => token().setExpirationTime(now() - 2 * minute)],
    ["a token valid only in the future", () => token().setNotBefore(now() + 2 * minute)],
    [
      "no expiry",
      () =>
        new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "one" }).setIssuer(issuer).setAudience(audience),
    ],
    ["no oid", () => token({ tid: tenantId })],
    ["oid null", () => token({ ...claims, oid: null })],
    ["an empty oid", () => token({ ...claims, oid: "" })],
    ["an unknown key", () => token(claims, { kid: "two" })],
  ])("%s", async (_, jwt) => {
    expect(await knows(entraAuth({ tenantId, audience, keysUrl: (await directory()).url }), jwt())).toBeNull();
  });

  it("tokens that are unsigned, or signed with the public key as a secret", async () => {
    const authenticate = entraAuth({ tenantId, audience, keysUrl: (await directory()).url });
    const unsigned = new UnsecuredJWT(claims).setIssuer(issuer).setAudience(audience).setExpirationTime("1h").encode();
    expect(await authenticate(asked(unsigned))).toBeNull();
    const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(publicKey)));
    const hmac = await token(claims, { alg: "HS256" }).sign(secret);
    expect(await authenticate(asked(hmac))).toBeNull();
    expect(await authenticate(asked("not.a.token"))).toBeNull();
  });

  it("a token without the scope with 403", async () => {
    const authenticate = entraAuth({ tenantId, audience, scope: "Chat.Admin", keysUrl: (await directory()).url });
    await expect(knows(authenticate, token())).rejects.toMatchObject({ code: "forbidden", status: 403 });
    expect(await knows(authenticate, token({ ...claims, roles: ["Chat.Admin"] }))).toMatchObject({ userId: "ann" });
  });
});

it("fetches keys once for 500 unknown ones, and never from a URL in a token", async () => {
  const keys = await directory();
  const foreign = await directory();
  const authenticate = entraAuth({ tenantId, audience, keysUrl: keys.url });
  const unknown = Array.from({ length: 500 }, (_, index) => token(claims, { kid: `k${index}`, jku: foreign.url }));
  const known = await Promise.all(unknown.map((jwt) => knows(authenticate, jwt)));
  expect(new Set(known)).toEqual(new Set([null]));
  expect([keys.fetched.length, foreign.fetched.length]).toEqual([1, 0]);
});

it("answers 503 while the key server is away, and retries half a minute later", async () => {
  const keys = await directory();
  const clock = createFakeClock(Date.now());
  const authenticate = entraAuth({ tenantId, audience, keysUrl: keys.url, clock });
  keys.status = 500;
  const away = await Promise.all(
    Array.from({ length: 20 }, () => knows(authenticate, token()).catch((error: unknown) => error)),
  );
  for (const error of away) expect(error).toMatchObject({ code: "unavailable", status: 503 });
  expect(away[0]).toBeInstanceOf(ServerError);
  expect(keys.fetched.length).toBe(1);
  keys.status = 200;
  await expect(knows(authenticate, token())).rejects.toMatchObject({ code: "unavailable" });
  clock.advance(30_000);
  expect(await knows(authenticate, token())).toMatchObject({ userId: "ann" });
});
