import { randomBytes } from "node:crypto";
import { InvalidInputError } from "../../errors/index.ts";
import { type Authenticate, entraAuth, openAuth, tokenAuth } from "../../server/index.ts";

/** The values of --auth. */
export const authWays = ["token", "entra", "none"] as const;
export type AuthWay = (typeof authWays)[number];

export interface ServeAuth {
  readonly way: AuthWay;
  readonly authenticate: Authenticate;
  /** The token of all callers; `null` without one, or if callers have their own tokens. */
  readonly token: string | null;
  /** The token comes from the environment and is not printed. */
  readonly isGiven: boolean;
  /** The tenant in identities; `undefined` if they contain none. */
  readonly tenant?: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

export const tokenVariable = "TROUPE_SERVE_TOKEN";
/** The token's user. */
export const developer = "developer";
const TOKEN_BYTES = 24;

/**
 * Authentication of a server that the command line starts. Throws `InvalidInputError` if the environment lacks a
 * variable for `entra`, or its token is too short.
 */
export function serveAuth(way: AuthWay, environment: Environment): ServeAuth {
  if (way === "none") return { way, authenticate: openAuth(), token: null, isGiven: false };
  if (way === "entra") return { way, ...ofEntra(environment), token: null, isGiven: false };
  const given = environment[tokenVariable]?.trim() ?? "";
  const token = given === "" ? randomBytes(TOKEN_BYTES).toString("base64url") : given;
  const authenticate = tokenAuth({ tokens: { [token]: { userId: developer, scopes: [] } } });
  return { way, authenticate, token, isGiven: given !== "" };
}

function ofEntra(environment: Environment): Pick<ServeAuth, "authenticate" | "tenant"> {
  const tenantId = environment["TROUPE_ENTRA_TENANT"]?.trim() ?? "";
  const audience = (environment["TROUPE_ENTRA_AUDIENCE"] ?? "").split(",").flatMap((part) => part.trim() || []);
  if (tenantId === "" || audience.length === 0) {
    throw new InvalidInputError(
      "--auth entra reads the id of the directory from TROUPE_ENTRA_TENANT and the application from TROUPE_ENTRA_AUDIENCE; set both",
    );
  }
  const scope = environment["TROUPE_ENTRA_SCOPE"]?.trim() || undefined;
  return { authenticate: entraAuth({ tenantId, audience, scope }), tenant: tenantId };
}
