import { randomBytes } from "node:crypto";
import { InvalidInputError } from "../../errors/index.ts";
import type { Authenticate } from "../../server/index.ts";

/** How callers say who they are. */
export const authKinds = ["token", "entra", "none"] as const;
export type AuthKind = (typeof authKinds)[number];

export const tokenVariable = "TROUPE_SERVE_TOKEN";
const entraVariables = {
  tenantId: "TROUPE_ENTRA_TENANT",
  audience: "TROUPE_ENTRA_AUDIENCE",
  scope: "TROUPE_ENTRA_SCOPE",
} as const;

/** The user that a token of the command line stands for. */
export const developer = "developer";

/** The authentication of a server, and what its first lines say of it. */
export interface ServedAuth {
  readonly kind: AuthKind;
  readonly authenticate: Authenticate;
  /** The token to show; undefined if there is none, or if it came from the environment. */
  readonly shownToken: string | undefined;
}

/** Throws `InvalidInputError` for a token that is too short, or when Entra's tenant and audience are not set. */
export async function authOf(
  kind: AuthKind,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<ServedAuth> {
  const { entraAuth, openAuth, tokenAuth } = await import("../../server/index.ts");
  if (kind === "none") return { kind, authenticate: openAuth(), shownToken: undefined };
  if (kind === "token") {
    const given = environment[tokenVariable]?.trim() ?? "";
    const token = given === "" ? randomBytes(24).toString("base64url") : given;
    if (token.length < 16) throw new InvalidInputError(`${tokenVariable} is shorter than 16 characters`);
    const authenticate = tokenAuth({ tokens: { [token]: { userId: developer, scopes: [] } } });
    return { kind, authenticate, shownToken: given === "" ? token : undefined };
  }
  const [tenantId, audience, scope] = [
    environment[entraVariables.tenantId]?.trim() ?? "",
    environment[entraVariables.audience]?.trim() ?? "",
    environment[entraVariables.scope]?.trim() ?? "",
  ];
  const missing = Object.entries({ tenantId, audience }).find(([, value]) => value === "");
  if (missing !== undefined) {
    const name = entraVariables[missing[0] as keyof typeof entraVariables];
    throw new InvalidInputError(
      `--auth entra takes ${entraVariables.tenantId} (id of the tenant) and ${entraVariables.audience} (client id or URI of the app); ${name} is not set`,
    );
  }
  const authenticate = entraAuth({ tenantId, audience, ...(scope === "" ? {} : { scope }) });
  return { kind, authenticate, shownToken: undefined };
}
