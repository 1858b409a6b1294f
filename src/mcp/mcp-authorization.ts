import type { AuthProvider } from "@modelcontextprotocol/client";
import { wordsOfThrown } from "../base/index.ts";
import { ToolNotStartedError } from "../errors/index.ts";
import { isToken, type McpAuth, type McpClientCredentials } from "./mcp-auth-options.ts";
import { McpAuthorizationError } from "./mcp-authorization-error.ts";
import { noLogins } from "./mcp-logins.ts";
import type { McpOptions } from "./mcp-options.ts";
import type { McpSdk } from "./mcp-sdk.ts";
import type { McpSecrets } from "./mcp-secrets.ts";
import { McpServerError } from "./mcp-server-error.ts";
import { oauthFetch } from "./oauth-fetch.ts";
import { type Challenge, LOGIN_MS, OAuthLogin } from "./oauth-login.ts";
import { OAuthRecords } from "./oauth-records.ts";

/** Where an actor's tokens come from. Its methods reject with `McpAuthorizationError` if a person has to log in. */
interface TokenSource {
  token(): Promise<string | undefined>;
  /** Gets another token after the server refused one; absent if there is no other. */
  renew?(refused: string | undefined, challenge: Challenge): Promise<void>;
  /** Gets a token with more scopes; absent if there is none. */
  widen?(challenge: Challenge): Promise<void>;
  /** Forgets a login that was refused. */
  discard?(): Promise<void>;
}

/** The authorization of one actor's requests to a server. */
export class ActorAuthorization {
  readonly #sdk: McpSdk;
  readonly #source: TokenSource;
  /** The token that each answer belongs to. */
  readonly #sent = new WeakMap<Response, string>();

  constructor(sdk: McpSdk, source: TokenSource) {
    this.#sdk = sdk;
    this.#source = source;
  }

  /** For the transports of the official client. */
  get provider(): AuthProvider {
    const source = this.#source;
    const token = async (): Promise<string | undefined> => await this.#failing(async () => await source.token());
    if (source.renew === undefined) return { token };
    const onUnauthorized: AuthProvider["onUnauthorized"] = async ({ response }) => {
      const { scope, resourceMetadataUrl } = this.#sdk.client.extractWWWAuthenticateParams(response);
      const refused = this.#sent.get(response);
      await this.#failing(async () => await source.renew?.(refused, { scope, resourceMetadataUrl }));
    };
    return { token, onUnauthorized };
  }

  /** A `fetch` that remembers which token an answer belongs to. */
  noting(next: typeof fetch): typeof fetch {
    return async (input, init) => {
      const response = await next(input, init);
      const [, token] = /^Bearer (.+)$/.exec(new Headers(init?.headers).get("authorization") ?? "") ?? [];
      if (token !== undefined) this.#sent.set(response, token);
      return response;
    };
  }

  /** What a call has to be rejected with if the server asked for more scopes; `undefined` for other errors. */
  async refusalOf(error: unknown): Promise<Error | undefined> {
    if (error instanceof McpAuthorizationError) return error;
    if (!(error instanceof this.#sdk.client.InsufficientScopeError)) return undefined;
    const { requiredScope: scope, resourceMetadataUrl } = error;
    const source = this.#source;
    if (source.widen === undefined) return undefined;
    try {
      await this.#failing(async () => await source.widen?.({ scope, resourceMetadataUrl }));
      return undefined;
    } catch (refusal) {
      return refusal as Error;
    }
  }

  /** Forgets a login that the person refused, so that the next one is new. */
  async discard(): Promise<void> {
    await this.#failing(async () => await this.#source.discard?.());
  }

  /** Nothing was sent: every error means that the call did not start. */
  async #failing<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof McpAuthorizationError || error instanceof ToolNotStartedError) throw error;
      throw new ToolNotStartedError(`the authorization failed: ${wordsOfThrown(error)}`);
    }
  }
}

type Remember = (name: string, value: string) => void;

/** The authorization of all requests to a server. */
export class McpAuthorization {
  readonly #sdk: McpSdk;
  readonly #options: McpOptions;
  readonly #auth: McpAuth;
  readonly #secrets: McpSecrets;
  readonly #ofProgram: ActorAuthorization | undefined;

  constructor(sdk: McpSdk, options: McpOptions, { auth, secrets }: { auth: McpAuth; secrets: McpSecrets }) {
    this.#sdk = sdk;
    this.#options = options;
    this.#auth = auth;
    this.#secrets = secrets;
    const { clientCredentials } = auth;
    if (clientCredentials !== undefined) {
      const source = this.#programSource(clientCredentials, this.#rememberFor(null));
      this.#ofProgram = new ActorAuthorization(sdk, source);
    }
  }

  /** The authorization of an actor's requests. */
  of(actorId: string | null): ActorAuthorization {
    if (this.#ofProgram) return this.#ofProgram;
    const { token } = this.#auth;
    const source = token === undefined ? this.login(actorId) : bearerSource(token, actorId, this.#rememberFor(actorId));
    return new ActorAuthorization(this.#sdk, source);
  }

  /** The login of an actor. Throws `InvalidInputError` without the option `auth.oauth`. */
  login(actorId: string | null): OAuthLogin {
    const { oauth } = this.#auth;
    const { name } = this.#options;
    if (oauth === undefined) throw noLogins(name);
    const server = this.#server();
    const records = new OAuthRecords(oauth.store, server.href, actorId);
    return new OAuthLogin({ sdk: this.#sdk, name, server, oauth, records, remember: this.#rememberFor(actorId) });
  }

  #rememberFor(actorId: string | null): Remember {
    return (name, value) => this.#secrets.rememberToken({ actorId }, name, value);
  }

  /** One token for the program. */
  #programSource(
    { clientId, clientSecret, issuer, scopes, origins }: McpClientCredentials,
    remember: Remember,
  ): TokenSource {
    const { auth, ClientCredentialsProvider } = this.#sdk.client;
    const provider = new ClientCredentialsProvider({
      clientId,
      clientSecret,
      clientName: "troupe",
      expectedIssuer: issuer,
      ...(scopes === undefined ? {} : { scope: scopes.join(" ") }),
    });
    remember("client_secret", clientSecret);
    let renewing: Promise<void> | undefined;
    const renew = async (challenge: Challenge): Promise<void> => {
      const server = this.#server();
      const signal = AbortSignal.timeout(LOGIN_MS);
      const web = oauthFetch({ server, origins: new Set(origins ?? []), signal });
      const scope = this.#sdk.client.computeScopeUnion(scopes?.join(" "), challenge.scope);
      try {
        await auth(provider, {
          serverUrl: server,
          fetchFn: web.fetch,
          ...(scope === undefined ? {} : { scope }),
          ...(challenge.resourceMetadataUrl === undefined
            ? {}
            : { resourceMetadataUrl: challenge.resourceMetadataUrl }),
        });
      } catch (error) {
        throw new McpServerError(web.failure()?.words ?? wordsOfThrown(error).slice(0, 1_000));
      }
      const token = provider.tokens()?.access_token;
      if (token !== undefined) remember("access_token", token);
    };
    return {
      token: async () => provider.tokens()?.access_token,
      async renew(refused, challenge) {
        const current = provider.tokens()?.access_token;
        if (current !== undefined && current !== refused) return;
        renewing ??= renew(challenge).finally(() => (renewing = undefined));
        await renewing;
      },
    };
  }

  #server(): URL {
    return new URL(this.#options.url ?? "");
  }
}

/** A token of the user. A function is called once, and again after the server refused its token. */
function bearerSource(token: NonNullable<McpAuth["token"]>, actorId: string | null, remember: Remember): TokenSource {
  if (typeof token === "string") {
    remember("token", token);
    return { token: async () => token };
  }
  let asked: Promise<string> | undefined;
  const ask = async (): Promise<string> => {
    let given: unknown;
    try {
      given = await token({ actorId });
    } catch (error) {
      // The error's text may contain the token.
      throw new McpServerError(`auth.token() failed (${error instanceof Error ? error.name : "no error"})`);
    }
    if (!isToken(given)) throw new McpServerError("auth.token() returned no token of visible ASCII characters");
    remember("token", given);
    return given;
  };
  const current = async (): Promise<string> => {
    const asking = (asked ??= ask());
    try {
      return await asking;
    } catch (error) {
      if (asked === asking) asked = undefined;
      throw error;
    }
  };
  return {
    token: current,
    async renew(refused) {
      const asking = asked;
      if (asking !== undefined && (await asking) === refused && asked === asking) asked = undefined;
      await current();
    },
  };
}
