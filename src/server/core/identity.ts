import { createHash, timingSafeEqual } from "node:crypto";
import { anyRule, type OptionsSchema, listRule, nameRule, optionsOf, optionsRule } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";

/** An authenticated caller. */
export interface Identity {
  /** Owner (`ownerId`) of what this caller creates. Not empty. */
  readonly userId: string;
  /** Selects the runtime, if a server has several. */
  readonly tenant?: string | undefined;
  /** The caller's permissions. The option `metrics` and your own routes check them. Empty: no permissions. */
  readonly scopes: readonly string[];
  /** Passed to tools as `auth.credentials`; never stored, logged or shown. */
  readonly credentials?: unknown;
}

/**
 * Returns the sender of a request, or `null` if the sender is unknown; the request is then answered with 401. May throw
 * `ServerError` with the code `unavailable` if authentication is unavailable; the answer is then 503.
 */
export type Authenticate = (request: Request) => Identity | null | Promise<Identity | null>;

const identityOptionsSchema: OptionsSchema<Identity> = {
  rules: { userId: nameRule, tenant: nameRule, scopes: listRule("a list of texts", nameRule), credentials: anyRule },
  needed: ["userId", "scopes"],
  instead: { id: "userId", user: "userId", scope: "scopes" },
};
const identityRule = optionsRule<Identity>(identityOptionsSchema);

/** Options of `tokenAuth()`. */
export interface TokenAuthOptions {
  /** The identity of each token. Tokens have at least 16 characters. */
  readonly tokens: Readonly<Record<string, Identity>>;
}

const SHORTEST_TOKEN = 16;

/**
 * Authenticates callers by fixed bearer tokens, for development or a few internal services. Tokens are compared in
 * constant time. Throws `InvalidInputError` for a short token.
 */
export function tokenAuth(given: TokenAuthOptions): Authenticate {
  const { tokens } = optionsOf<TokenAuthOptions>(given, "tokenAuth()", {
    rules: { tokens: anyRule },
    needed: ["tokens"],
  });
  // Messages number the identities, because their keys are the tokens.
  const identities = Object.values(tokens).map((identity, index) =>
    identityRule(identity, `tokenAuth(): identity ${index + 1}`),
  );
  const digests = Object.keys(tokens).map(digestOf);
  const short = Object.keys(tokens).findIndex((token) => token.length < SHORTEST_TOKEN);
  if (short >= 0) {
    throw new InvalidInputError(`tokenAuth(): token ${short + 1} is shorter than ${SHORTEST_TOKEN} characters`);
  }
  return (request) => {
    const token = bearerToken(request);
    if (token === undefined) return null;
    const digest = digestOf(token);
    const matches = digests.map((known) => timingSafeEqual(known, digest));
    return (identities[matches.indexOf(true)] as Identity | undefined) ?? null;
  };
}

const openAuths = new WeakSet<Authenticate>();

/**
 * Authenticates every request as the same developer. A server with it answers only requests to a loopback address:
 * `listen()` refuses other hosts.
 */
export function openAuth(identity: Identity = { userId: "developer", scopes: [] }): Authenticate {
  const developer = identityRule(identity, "openAuth(): identity") as Identity;
  const authenticate: Authenticate = () => developer;
  openAuths.add(authenticate);
  return authenticate;
}

export function isOpenAuth(authenticate: Authenticate): boolean {
  return openAuths.has(authenticate);
}

/** The token of `Authorization: Bearer …`. */
export function bearerToken(request: Request): string | undefined {
  const match = /^bearer +([\w.~+/=-]+) *$/i.exec(request.headers.get("authorization") ?? "");
  return match?.[1];
}

/**
 * Validates the identity that a deployment's `authenticate` returned: it must name a user, so that no caller becomes
 * the owner of agents without an owner.
 */
export function checkedIdentity(given: Identity | null): Identity | null {
  if (given === null || given === undefined || typeof given.userId !== "string" || given.userId.trim() === "")
    return null;
  return { ...given, scopes: given.scopes ?? [] };
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
