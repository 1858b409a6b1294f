import {
  describeValue,
  listRule,
  nameRule,
  optionsRule,
  type OptionRule,
  portRule,
  recordRule,
  ruleOf,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { isLoopbackName } from "../net/index.ts";
import type { Json } from "../state/index.ts";
import { jsonSchema } from "../state/index.ts";
import type { McpTokenStore } from "./mcp-token-store.ts";

/** A client that was registered at the authorization server by hand. */
export interface McpOAuthClient {
  /** Id of the client. */
  readonly clientId: string;
  /** Secret of the client. Default: none, for public clients. */
  readonly clientSecret?: string | undefined;
  /** The authorization server's `issuer`: the client is sent to no other one, even if the MCP server names another. */
  readonly issuer: string;
}

/** Login of people by OAuth 2.1 with PKCE. */
export interface McpOAuthOptions {
  /** Route of your program to which the authorization server sends people back; it calls `logins.finish()`. https, or http to this machine. */
  readonly redirectUrl: string;
  /** Where tokens are kept, for each actor. `memoryMcpTokens()` and `fileMcpTokens()` are ready-made. */
  readonly store: McpTokenStore;
  /** Scopes to request, besides those for which the server asks. Default: those that the server names. */
  readonly scopes?: readonly string[] | undefined;
  /**
   * What the dynamic registration says about your program, such as `{ client_name, client_uri, logo_uri }` (RFC 7591). Default:
   * `client_name` is `troupe`.
   */
  readonly clientMetadata?: Readonly<Record<string, Json>> | undefined;
  /**
   * Address of a client id metadata document, https with a path: it is used as the client id if the authorization server supports it.
   * Default: dynamic registration.
   */
  readonly clientMetadataUrl?: string | undefined;
  /** A client that was registered by hand. Default: dynamic registration. */
  readonly client?: McpOAuthClient | undefined;
  /**
   * Origins of authorization servers that may be in private networks, such as `https://login.internal`. Others need public addresses,
   * unless the MCP server is on this machine. Default: none.
   */
  readonly origins?: readonly string[] | undefined;
}

/** Login of a program as itself, without a person. All actors share its token, which is kept in memory. */
export interface McpClientCredentials extends McpOAuthClient {
  /** Secret of the client. */
  readonly clientSecret: string;
  /** Scopes to request. Default: those that the server names. */
  readonly scopes?: readonly string[] | undefined;
  /** As in `oauth`. Default: none. */
  readonly origins?: readonly string[] | undefined;
}

/** How calls of an MCP server over HTTP are authorized. Give exactly one of the three. */
export interface McpAuth {
  /**
   * A bearer token. A function is called when an actor's connection opens, and again after the server refused its token (401).
   * Default: none.
   */
  readonly token?: string | ((owner: { readonly actorId: string | null }) => string | Promise<string>) | undefined;
  /** People log in; each actor has tokens of its own. Default: none. */
  readonly oauth?: McpOAuthOptions | undefined;
  /** The program logs in as itself. Default: none. */
  readonly clientCredentials?: McpClientCredentials | undefined;
}

const LONGEST_TOKEN = 100_000;

/** Whether a text may be sent as a bearer token. */
export function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]+$/.test(value) && value.length <= LONGEST_TOKEN;
}

/** A rule whose error does not contain the value. */
function secretRule(expected: string, fits: (value: unknown) => boolean): OptionRule {
  return (value, where) => {
    if (fits(value)) return value;
    const given = typeof value === "string" ? "the text" : describeValue(value);
    throw new InvalidInputError(`${where} must be ${expected}; ${given} is not`);
  };
}

const tokenRule = secretRule(
  "a token of visible ASCII characters, without spaces, or a function that returns one",
  (value) => typeof value === "function" || isToken(value),
);

function urlRule(expected: string, fits: (url: URL) => boolean): OptionRule {
  return ruleOf(expected, (value) => {
    const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
    return url !== undefined && url.username === "" && url.password === "" && fits(url);
  });
}

/** Whether the address has TLS, or is on this machine. */
function isSafe({ protocol, hostname }: URL): boolean {
  return protocol === "https:" || (protocol === "http:" && isLoopbackName(hostname.replace(/^\[(.*)\]$/, "$1")));
}

const originRule: OptionRule = ruleOf('an https origin such as "https://login.internal"', (value) => {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  return url !== undefined && url.protocol === "https:" && url.origin === value;
});

const issuerRule = urlRule('the issuer of the authorization server, such as "https://login.example.com"', isSafe);

const scopeRule: OptionRule = ruleOf(
  "a scope: visible ASCII characters without quotes, backslashes and spaces",
  (value) => typeof value === "string" && /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/.test(value),
);
const scopesRule = listRule("a list of scopes", scopeRule);
const originsRule = listRule("a list of origins", originRule);

const clientSecretRule = secretRule(
  "a text that is not empty",
  (value) => typeof value === "string" && value.trim() !== "",
);

const instead = { client_id: "clientId", client_secret: "clientSecret", id: "clientId", secret: "clientSecret" };

const clientRule = optionsRule<McpOAuthClient>({
  rules: { clientId: nameRule, clientSecret: clientSecretRule, issuer: issuerRule },
  needed: ["clientId", "issuer"],
  instead,
});

/** Members that follow from other options. */
const setByUs = ["redirect_uris", "grant_types", "response_types", "scope"];

const metadataRule: OptionRule = (value, where) => {
  const metadata = recordRule(
    'an object such as { client_name: "My agents" }',
    ruleOf("a JSON value", (member) => jsonSchema.safeParse(member).success),
  )(value, where) as Readonly<Record<string, Json>>;
  const taken = setByUs.find((name) => Object.hasOwn(metadata, name));
  if (taken === undefined) return structuredClone(metadata);
  throw new InvalidInputError(`${where}.${taken} follows from the other options; leave it out`);
};

const oauthRule = optionsRule<McpOAuthOptions>({
  rules: {
    redirectUrl: urlRule("an address such as https://app.example.com/callback, or http to this machine", isSafe),
    store: portRule("a token store such as memoryMcpTokens()", ["get", "set", "delete"]),
    scopes: scopesRule,
    clientMetadata: metadataRule,
    clientMetadataUrl: urlRule(
      "an https address with a path",
      ({ protocol, pathname }) => protocol === "https:" && pathname !== "/",
    ),
    client: clientRule,
    origins: originsRule,
  },
  needed: ["redirectUrl", "store"],
  instead: {
    redirectUri: "redirectUrl",
    redirect_uri: "redirectUrl",
    scope: "scopes",
    tokenStore: "store",
    clientId: "client: { clientId, issuer }",
  },
});

const clientCredentialsRule = optionsRule<McpClientCredentials>({
  rules: {
    clientId: nameRule,
    clientSecret: clientSecretRule,
    issuer: issuerRule,
    scopes: scopesRule,
    origins: originsRule,
  },
  needed: ["clientId", "clientSecret", "issuer"],
  instead: { ...instead, scope: "scopes" },
});

const authRuleOfOne = optionsRule<McpAuth>({
  rules: { token: tokenRule, oauth: oauthRule, clientCredentials: clientCredentialsRule },
  instead: { bearer: "token", accessToken: "token", apiKey: "token", authProvider: "oauth" },
});

/** The option `auth` of `mcp()`. */
export const mcpAuthRule: OptionRule = (value, where) => {
  const auth = authRuleOfOne(value, where) as McpAuth;
  const given = Object.keys(auth).filter((name) => auth[name as keyof McpAuth] !== undefined);
  if (given.length !== 1) {
    throw new InvalidInputError(`${where}: give one of token, oauth and clientCredentials`);
  }
  if (auth.oauth?.client !== undefined && auth.oauth.clientMetadataUrl !== undefined) {
    throw new InvalidInputError(`${where}.oauth: give either client or clientMetadataUrl`);
  }
  return auth;
};
