import type { FetchImplementation, JWTPayload, JWTVerifyGetKey } from "jose";
import {
  type Clock,
  clockRule,
  type OptionsSchema,
  nameRule,
  optionsOf,
  ruleOf,
  systemClock,
  wordsOfThrown,
} from "../../base/index.ts";
import { ServerError } from "./failures.ts";
import { type Authenticate, bearerToken, type Identity } from "./identity.ts";

/** Options of `entraAuth()`. */
export interface EntraAuthOptions {
  /** Id of the directory (`tid`). */
  readonly tenantId: string;
  /** The application that tokens must be issued for, or a list of them: `api://…` or a client id. */
  readonly audience: string | readonly string[];
  /** A scope (`scp`) or role (`roles`) that tokens must have. Default: any. */
  readonly scope?: string | undefined;
  /** URL of the directory's public keys. Default: at login.microsoftonline.com. */
  readonly keysUrl?: string | undefined;
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
}

const entraOptionsSchema: OptionsSchema<EntraAuthOptions> = {
  rules: {
    tenantId: ruleOf("the id of a directory", (value) => typeof value === "string" && /^[\w.-]{1,100}$/.test(value)),
    audience: ruleOf(
      "a text, or a list of texts",
      (value) =>
        [value].flat().length > 0 && [value].flat().every((one: unknown) => typeof one === "string" && one !== ""),
    ),
    scope: nameRule,
    keysUrl: ruleOf("a URL", (value) => typeof value === "string" && URL.canParse(value)),
    clock: clockRule,
  },
  needed: ["tenantId", "audience"],
  instead: { tid: "tenantId", clientId: "audience", scopes: "scope" },
};

const CLOCK_TOLERANCE_SECONDS = 60;
const COOLDOWN_MS = 30_000;

/**
 * Authenticates access tokens of Microsoft Entra ID: user `oid`, tenant `tid`, scopes from `scp` and `roles`. A token
 * without the scope is answered with 403. While the keys cannot be fetched, tokens that need them are answered with
 * 503.
 */
export function entraAuth(given: EntraAuthOptions): Authenticate {
  const options = optionsOf<EntraAuthOptions>(given, "entraAuth()", entraOptionsSchema);
  const { tenantId, audience, scope, clock = systemClock } = options;
  const directory = `https://login.microsoftonline.com/${tenantId}`;
  const keysUrl = new URL(options.keysUrl ?? `${directory}/discovery/v2.0/keys`);
  let keys: Promise<JWTVerifyGetKey> | undefined;

  return async (request) => {
    const token = bearerToken(request);
    if (token === undefined) return null;
    keys ??= keysAt(keysUrl, clock);
    const { jwtVerify } = await import("jose");
    const payload = await jwtVerify(token, await keys, {
      algorithms: ["RS256"],
      issuer: [`${directory}/v2.0`, `https://sts.windows.net/${tenantId}/`],
      audience: [audience].flat(),
      requiredClaims: ["exp", "oid", "tid"],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      currentDate: new Date(clock.now()),
    }).then(
      (verified) => verified.payload,
      (error: unknown) => {
        if (error instanceof ServerError) throw error;
        return undefined;
      },
    );
    const identity = payload && identityOf(payload, tenantId);
    if (!identity) return null;
    if (scope === undefined || identity.scopes.includes(scope)) return identity;
    throw new ServerError("forbidden", `the token has no scope or role "${scope}"`, {
      headers: { "www-authenticate": 'Bearer error="insufficient_scope"' },
    });
  };
}

function identityOf({ oid, tid, scp, roles }: JWTPayload, tenantId: string): Identity | undefined {
  if (typeof oid !== "string" || oid.trim() === "" || tid !== tenantId) return undefined;
  const words = typeof scp === "string" ? scp.split(" ") : [];
  const scopes = [...words, ...(Array.isArray(roles) ? roles : [])];
  return {
    userId: oid,
    tenant: tid,
    scopes: scopes.filter((one): one is string => typeof one === "string" && one !== ""),
  };
}

/**
 * The keys of the directory. They are fetched when a token names an unknown key, at most once in 30 s, even if the
 * fetch failed. The key URL inside a token is ignored.
 */
async function keysAt(url: URL, clock: Clock): Promise<JWTVerifyGetKey> {
  const { createRemoteJWKSet, customFetch, errors } = await import("jose");
  let failed: { readonly at: number; readonly error: unknown } | undefined;
  // The library's cooldown starts only after a successful fetch.
  const fetchKeys: FetchImplementation = async (address, init) => {
    if (failed !== undefined && clock.elapsed() - failed.at < COOLDOWN_MS) throw failed.error;
    try {
      const response = await fetch(address, init);
      failed = response.ok ? undefined : { at: clock.elapsed(), error: new Error(`status ${response.status}`) };
      return response;
    } catch (error) {
      failed = { at: clock.elapsed(), error };
      throw error;
    }
  };
  const known = createRemoteJWKSet(url, { cooldownDuration: COOLDOWN_MS, [customFetch]: fetchKeys });
  return async (header, token) => {
    try {
      return await known(header, token);
    } catch (error) {
      const isOfToken = [errors.JWKSNoMatchingKey, errors.JWKSMultipleMatchingKeys, errors.JOSENotSupported].some(
        (kind) => error instanceof kind,
      );
      if (isOfToken) throw error;
      throw new ServerError("unavailable", "the keys of the directory cannot be fetched now", {
        headers: { "retry-after": String(COOLDOWN_MS / 1_000) },
        cause: new Error(`keys at ${url.host}: ${wordsOfThrown(error)}`),
      });
    }
  };
}
