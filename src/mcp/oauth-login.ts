import { randomBytes } from "node:crypto";
import type {
  OAuthClientInformationContext,
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { systemClock, wordsOfThrown } from "../base/index.ts";
import { InvalidInputError, TroupeError } from "../errors/index.ts";
import type { McpOAuthOptions } from "./mcp-auth-options.ts";
import { McpAuthorizationError } from "./mcp-authorization-error.ts";
import type { McpSdk } from "./mcp-sdk.ts";
import { McpServerError } from "./mcp-server-error.ts";
import { assertReachable, type OAuthFetch, oauthFetch, type TokenFailure } from "./oauth-fetch.ts";
import { type FlowRecord, isSameSecret, type OAuthRecords, type TokensRecord } from "./oauth-records.ts";

/** What a server asked for when it refused a request. */
export interface Challenge {
  /** Scopes, separated by spaces. */
  readonly scope?: string | undefined;
  readonly resourceMetadataUrl?: URL | undefined;
}

export interface OAuthLoginOptions {
  readonly sdk: McpSdk;
  /** Name of the server, for errors. */
  readonly name: string;
  readonly server: URL;
  readonly oauth: McpOAuthOptions;
  readonly records: OAuthRecords;
  /** Called with each secret that must not appear in results and errors. */
  readonly remember: (name: string, value: string) => void;
}

interface Authorizing {
  readonly web: OAuthFetch;
  readonly challenge?: Challenge;
  /** Of the redirect that ends a login. */
  readonly authorizationCode?: string;
  readonly iss?: string;
}

/** Milliseconds for all requests of a login or a refresh. */
export const LOGIN_MS = 20_000;
/** Milliseconds after which a login that has begun is begun anew. */
const FLOW_MS = 86_400_000;
/** Longest address of a login page, in UTF-16 units: it is part of a prompt. */
const LONGEST_URL = 8_000;

/**
 * The login of one actor at one server. The official client does the protocol; this class decides what is kept, and when.
 *
 * Invariants
 * 1. Changes of an actor's items happen one at a time, so that many refused calls refresh a token once.
 * 2. A state is good for one answer, and only for the actor for whom its login has begun.
 * 3. Code verifiers, tokens and client secrets are in the user's token store and in memory, nowhere else.
 * 4. A token is discarded only if the authorization server refused it.
 */
export class OAuthLogin {
  readonly #options: OAuthLoginOptions;

  constructor(options: OAuthLoginOptions) {
    this.#options = options;
  }

  /** The actor's access token; `undefined` without a login. */
  async token(): Promise<string | undefined> {
    const record = await this.#options.records.get("tokens");
    if (record) this.#remember(record.tokens);
    return record?.tokens.access_token;
  }

  /**
   * Gets another token after the server refused one. Resolves if a call may be sent again; otherwise rejects with
   * `McpAuthorizationError`.
   */
  async renew(refused: string | undefined, challenge: Challenge): Promise<void> {
    await this.#options.records.exclusively(async () => {
      const record = await this.#options.records.get("tokens");
      // Another call, or another process, has got one meanwhile.
      if (record && record.tokens.access_token !== refused) return;
      await this.#refreshOrBegin(record, challenge);
    });
  }

  /** Rejects with `McpAuthorizationError` after the server asked for more scopes, unless they were requested already. */
  async widen({ scope, ...challenge }: Challenge): Promise<void> {
    await this.#options.records.exclusively(async () => {
      const record = await this.#options.records.get("tokens");
      const had = record?.tokens.scope ?? record?.scope;
      if (covers(record?.scope, scope) || covers(had, scope)) {
        throw new McpServerError(
          `the server asks for the scopes "${scope ?? ""}", which were requested at the last login`,
        );
      }
      const { computeScopeUnion } = this.#options.sdk.client;
      await this.#begin({ ...challenge, scope: computeScopeUnion(had, scope) });
    });
  }

  /** The address of the login page, of a login that has begun or of a new one. */
  async begin(): Promise<string> {
    return await this.#options.records.exclusively(async () => {
      try {
        return await this.#begin({});
      } catch (error) {
        if (error instanceof McpAuthorizationError) return error.url;
        throw error;
      }
    });
  }

  /** Ends the login with the parameters of the redirect. Rejects with `InvalidInputError` for a foreign or used state. */
  async finish(redirect: URLSearchParams): Promise<void> {
    const { records, sdk } = this.#options;
    await records.exclusively(async () => {
      const flow = await records.get("flow");
      const state = redirect.get("state") ?? "";
      // A state that was guessed must not end the login that it was meant for.
      if (flow === undefined || !isSameSecret(flow.state, state)) {
        throw new InvalidInputError(
          "this login was not begun for this actor, or has ended: the parameter state is unknown; begin another",
        );
      }
      await records.delete("flow");
      const iss = redirect.get("iss") ?? undefined;
      const authorizationCode = redirect.get("code");
      if (authorizationCode === null) throw refusalOf(sdk, { flow, redirect, iss });
      const web = this.#fetch();
      try {
        await this.#authorize(this.#providerOf({ flow }), {
          web,
          authorizationCode,
          ...(iss === undefined ? {} : { iss }),
        });
      } catch (error) {
        const failure = web.failure();
        if (failure) await this.#forgetClient(failure, flow.client);
        throw error;
      }
    });
  }

  /** Forgets the actor's tokens and the login that has begun. */
  async forget(): Promise<void> {
    const { records } = this.#options;
    await records.exclusively(async () => {
      await records.delete("tokens");
      await records.delete("flow");
    });
  }

  /** Forgets a login that was refused, so that the next one is new. */
  async discard(): Promise<void> {
    const { records } = this.#options;
    await records.exclusively(async () => await records.delete("flow"));
  }

  /** Refreshes the tokens; rejects with a login if there are none, or if the refresh was refused. */
  async #refreshOrBegin(record: TokensRecord | undefined, challenge: Challenge): Promise<void> {
    if (record?.tokens.refresh_token !== undefined && (await this.#refresh(record, challenge))) return;
    await this.#begin(challenge);
  }

  /** Returns whether a call may be sent again. */
  async #refresh(record: TokensRecord, challenge: Challenge): Promise<boolean> {
    const { records } = this.#options;
    const provider = this.#providerOf({ record });
    const web = this.#fetch();
    try {
      // Tokens of another authorization server are not refreshed.
      return (await this.#authorize(provider, { web, challenge })) === "AUTHORIZED";
    } catch (error) {
      const failure = web.failure();
      if (failure?.isRefused !== true) throw error;
      const stored = await records.get("tokens");
      // Another process has refreshed them meanwhile.
      if (stored && stored.tokens.access_token !== record.tokens.access_token) return true;
      await records.delete("tokens");
      await this.#forgetClient(failure, record.client);
      return false;
    }
  }

  /** Rejects with a login: with the one that has begun if it asks for the same scopes, because an earlier request shows its address. */
  async #begin(challenge: Challenge): Promise<never> {
    const { records } = this.#options;
    const known = await records.get("flow");
    const scope = this.#scopeOf(challenge);
    if (known && systemClock.now() - known.begunAt < FLOW_MS && covers(known.scope, scope)) throw this.#needOf(known);
    const provider = this.#providerOf({});
    await this.#authorize(provider, { web: this.#fetch(), challenge });
    const flow = provider.flow();
    this.#assertLoginPage(flow.url);
    await records.set("flow", flow);
    throw this.#needOf(flow);
  }

  #scopeOf({ scope }: Challenge): string | undefined {
    const { oauth, sdk } = this.#options;
    return sdk.client.computeScopeUnion(oauth.scopes?.join(" "), scope);
  }

  #providerOf(items: { readonly record?: TokensRecord; readonly flow?: FlowRecord }): LoginProvider {
    const { oauth, records } = this.#options;
    return new LoginProvider({ oauth, records, onTokens: this.#remember, ...items });
  }

  async #authorize(
    provider: LoginProvider,
    { web, challenge = {}, ...redirected }: Authorizing,
  ): Promise<"AUTHORIZED" | "REDIRECT"> {
    const { sdk, server } = this.#options;
    const scope = this.#scopeOf(challenge);
    const { resourceMetadataUrl } = challenge;
    try {
      return await sdk.client.auth(provider, {
        serverUrl: server,
        fetchFn: web.fetch,
        ...(scope === undefined ? {} : { scope }),
        ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
        ...redirected,
      });
    } catch (error) {
      if (error instanceof TroupeError && !(error instanceof McpServerError)) throw error;
      const failure = web.failure();
      if (failure === undefined) throw new McpServerError(wordsOfLogin(sdk, error));
      throw new McpServerError(
        failure.isRefused ? `the authorization server refused: ${failure.words}` : failure.words,
      );
    }
  }

  /** A client that the authorization server does not know is registered anew at the next login. */
  async #forgetClient({ words }: TokenFailure, client: StoredOAuthClientInformation): Promise<void> {
    if (words !== "invalid_client" && words !== "unauthorized_client") return;
    const { records } = this.#options;
    const known = await records.get("client");
    if (known?.client_id === client.client_id) await records.delete("client");
  }

  #fetch(): OAuthFetch {
    const { oauth, server } = this.#options;
    const origins = new Set(oauth.origins ?? []);
    return oauthFetch({ server, origins, signal: AbortSignal.timeout(LOGIN_MS) });
  }

  /** The address is opened in a person's browser. */
  #assertLoginPage(text: string): void {
    const { oauth, server } = this.#options;
    if (text.length > LONGEST_URL)
      throw new McpServerError(`the login page's address is longer than ${LONGEST_URL} characters`);
    assertReachable({ server, origins: new Set(oauth.origins ?? []) }, new URL(text));
  }

  #needOf({ url, scope }: FlowRecord): McpAuthorizationError {
    return new McpAuthorizationError({ server: this.#options.name, url, scopes: scopesOf(scope) });
  }

  readonly #remember = ({ access_token, refresh_token }: StoredOAuthTokens): void => {
    this.#options.remember("access_token", access_token);
    if (refresh_token !== undefined) this.#options.remember("refresh_token", refresh_token);
  };
}

function scopesOf(scope: string | undefined): string[] {
  return (scope ?? "").split(" ").filter((one) => one !== "");
}

/** Whether all wanted scopes are among those that were requested. */
function covers(requested: string | undefined, wanted: string | undefined): boolean {
  if (requested === undefined && wanted !== undefined) return false;
  const known = new Set(scopesOf(requested));
  return scopesOf(wanted).every((one) => known.has(one));
}

/** The error for a redirect without a code. Texts of the redirect are not shown: their author is not known. */
function refusalOf(
  { client }: McpSdk,
  { flow, redirect, iss }: { flow: FlowRecord; redirect: URLSearchParams; iss: string | undefined },
): Error {
  const metadata = flow.discovery.authorizationServerMetadata;
  try {
    client.validateAuthorizationResponseIssuer({
      iss,
      expectedIssuer: metadata?.issuer,
      issParameterSupported: metadata?.["authorization_response_iss_parameter_supported"] === true,
    });
  } catch {
    return new McpServerError("the redirect came from another authorization server than the login page");
  }
  const code = redirect.get("error") ?? "";
  const reason = /^[a-z_]{1,60}$/.test(code) ? code : "no code";
  return new McpServerError(`the authorization server refused the login: ${reason}`);
}

/** The message of an error of the official client, without texts of a redirect. */
function wordsOfLogin({ client }: McpSdk, error: unknown): string {
  if (error instanceof client.IssuerMismatchError) {
    return error.kind === "authorization_response"
      ? "the redirect came from another authorization server than the login page"
      : "the authorization server's metadata names another issuer than its address";
  }
  if (error instanceof client.RegistrationRejectedError) {
    return `the authorization server refused to register this program (status ${error.status}); register it by hand and give auth.oauth.client`;
  }
  const words = wordsOfThrown(error).toWellFormed();
  return /does not support dynamic client registration/.test(words)
    ? "the authorization server does not register programs by itself; register it by hand and give auth.oauth.client"
    : words.slice(0, 1_000);
}

interface LoginProviderOptions {
  readonly oauth: McpOAuthOptions;
  readonly records: OAuthRecords;
  /** The actor's tokens, to refresh. */
  readonly record?: TokensRecord | undefined;
  /** The login to finish. */
  readonly flow?: FlowRecord | undefined;
  /** Called with new tokens before they are stored. */
  readonly onTokens: (tokens: StoredOAuthTokens) => void;
}

/** What the official client reads and writes during one login or refresh. A login that begins is kept in memory until `flow()`. */
class LoginProvider implements OAuthClientProvider {
  readonly #oauth: McpOAuthOptions;
  readonly #records: OAuthRecords;
  readonly #finishing: FlowRecord | undefined;
  readonly #onTokens: LoginProviderOptions["onTokens"];
  readonly redirectUrl: string;
  readonly clientMetadataUrl?: string;
  readonly saveClientInformation?: (client: StoredOAuthClientInformation) => Promise<void>;
  readonly #record: TokensRecord | undefined;
  #client: StoredOAuthClientInformation | undefined;
  #state = "";
  #codeVerifier = "";
  #url: URL | undefined;
  #discovery: OAuthDiscoveryState | undefined;

  constructor({ oauth, records, record, flow, onTokens }: LoginProviderOptions) {
    this.#onTokens = onTokens;
    this.#oauth = oauth;
    this.#records = records;
    this.#record = record;
    this.#finishing = flow;
    this.redirectUrl = oauth.redirectUrl;
    if (oauth.clientMetadataUrl !== undefined) this.clientMetadataUrl = oauth.clientMetadataUrl;
    // A client that was registered by hand is never registered anew.
    if (oauth.client === undefined) {
      this.saveClientInformation = async (client) => {
        this.#client = client;
        if (this.#finishing === undefined) await records.set("client", client);
      };
    }
  }

  get clientMetadata(): OAuthClientMetadata {
    const { redirectUrl, scopes, clientMetadata } = this.#oauth;
    return {
      client_name: "troupe",
      ...clientMetadata,
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      ...(scopes === undefined ? {} : { scope: scopes.join(" ") }),
    };
  }

  state(): string {
    this.#state = randomBytes(32).toString("base64url");
    return this.#state;
  }

  async clientInformation(_context?: OAuthClientInformationContext): Promise<StoredOAuthClientInformation | undefined> {
    const { client } = this.#oauth;
    if (client !== undefined) {
      const { clientId, clientSecret, issuer } = client;
      this.#client = {
        client_id: clientId,
        ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
        issuer,
      };
      return this.#client;
    }
    const refreshing = this.#record?.tokens.refresh_token === undefined ? undefined : this.#record.client;
    this.#client = this.#finishing?.client ?? refreshing ?? (await this.#records.get("client"));
    return this.#client;
  }

  tokens(): StoredOAuthTokens | undefined {
    return this.#record?.tokens;
  }

  async saveTokens(tokens: StoredOAuthTokens): Promise<void> {
    const client = this.#client;
    if (client === undefined) throw new McpServerError("the tokens came without a client");
    this.#onTokens(tokens);
    const scope = this.#finishing?.scope ?? this.#record?.scope;
    await this.#records.set("tokens", { tokens, client, ...(scope === undefined ? {} : { scope }) });
  }

  redirectToAuthorization(url: URL): void {
    this.#url = url;
  }

  saveCodeVerifier(codeVerifier: string): void {
    this.#codeVerifier = codeVerifier;
  }

  codeVerifier(): string {
    return this.#finishing?.codeVerifier ?? this.#codeVerifier;
  }

  saveDiscoveryState(discovery: OAuthDiscoveryState): void {
    this.#discovery = discovery;
  }

  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#finishing?.discovery;
  }

  /** The login that has begun. */
  flow(): FlowRecord {
    const client = this.#client;
    if (this.#url === undefined || client === undefined || this.#discovery === undefined) {
      throw new McpServerError("the authorization server gave no login page");
    }
    const scope = this.#url.searchParams.get("scope");
    return {
      state: this.#state,
      codeVerifier: this.#codeVerifier,
      url: this.#url.href,
      ...(scope === null ? {} : { scope }),
      client,
      discovery: this.#discovery,
      begunAt: systemClock.now(),
    };
  }
}
