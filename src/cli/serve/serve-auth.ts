import { randomBytes } from "node:crypto";
import { InvalidInputError } from "../../errors/index.ts";
import { type Authenticate, entraAuth, openAuth, tokenAuth } from "../../server/index.ts";

/** The values of --auth. */
export const authWays = ["token", "entra", "none"] as const;
export type AuthWay = (typeof authWays)[number];

export interface ServeAuth {
  readonly authenticate: Authenticate;
  /** The token to print; null: there is none, or callers bring their own. */
  readonly token: string | null;
}

type Environment = Readonly<Record<string, string | undefined>>;

const TOKEN_BYTES = 24;

/**
 * Who may call a server that the command line starts. Throws `InvalidInputError` when the environment lacks what `entra`
 * needs, or has a token that is too short.
 */
export function serveAuth(way: AuthWay, environment: Environment): ServeAuth {
  if (way === "none") return { authenticate: openAuth(), token: null };
  if (way === "entra") return { authenticate: ofEntra(environment), token: null };
  const token = environment["TROUPE_SERVE_TOKEN"]?.trim() || randomBytes(TOKEN_BYTES).toString("base64url");
  return { authenticate: tokenAuth({ tokens: { [token]: { userId: "developer", scopes: [] } } }), token };
}

function ofEntra(environment: Environment): Authenticate {
  const tenantId = environment["TROUPE_ENTRA_TENANT"]?.trim() ?? "";
  const audience = (environment["TROUPE_ENTRA_AUDIENCE"] ?? "").split(",").flatMap((part) => part.trim() || []);
  if (tenantId === "" || audience.length === 0) {
    throw new InvalidInputError(
      "--auth entra takes the id of the directory from TROUPE_ENTRA_TENANT and the application from TROUPE_ENTRA_AUDIENCE; set both",
    );
  }
  return entraAuth({ tenantId, audience, scope: environment["TROUPE_ENTRA_SCOPE"]?.trim() || undefined });
}
