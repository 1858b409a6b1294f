import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { deskServer } from "./desk-server.ts";
import { type Era, type Handler, legacyHandler, modernHandler, serve } from "./served-desk.ts";

export const redirectUrl = "https://app.example.com/callback";

interface Grant {
  readonly user: string;
  readonly scope: string;
  readonly clientId: string;
}

interface Code extends Grant {
  readonly challenge: string;
}

export interface GuardedDesk {
  /** Address of the MCP server. */
  readonly url: string;
  /** Origin of the authorization server. */
  readonly issuer: string;
  /** Every secret that the authorization server has issued or received. */
  readonly secrets: ReadonlySet<string>;
  /** How often a path of the authorization server was requested. */
  count(path: string): number;
  /** How often tokens were refreshed. */
  refreshes(): number;
  /** The users whose calls of tools have arrived, in order. */
  users(): readonly string[];
  effects(): string[];
  /** Logs in as a person would in a browser. Returns the address to which the browser is sent back. */
  logIn(page: string, user: string): Promise<string>;
  /** Ends all access tokens. */
  expire(): void;
  /** Ends all refresh tokens. */
  revoke(): void;
  /** Ends the registration of all clients. */
  forgetClients(): void;
  /** The usual answer to a token request. */
  readonly token: Handler;
  /** Replaces the answers to a path of the authorization server, or of the MCP server's metadata. */
  override(path: string, handler: Handler): void;
}

export interface GuardedOptions {
  readonly era?: Era;
  /** Scopes that a tool needs besides "desk". */
  readonly scopes?: Readonly<Record<string, string>>;
  /** Whether the first call of a tool ends all logins before it is answered. Default false. */
  readonly isLoginEndedByFirstCall?: boolean;
  /** Whether each refresh ends the token that was used. Default true. */
  readonly rotates?: boolean;
}

const metadataPath = "/.well-known/oauth-protected-resource/mcp";

/** A desk behind an authorization server of its own, which rotates refresh tokens and supports PKCE, registration and `iss`. */
export async function openGuarded(options: GuardedOptions = {}): Promise<GuardedDesk> {
  const { era = "modern", scopes = {}, rotates = true, isLoginEndedByFirstCall = false } = options;
  const folder = mkdtempSync(join(tmpdir(), "troupe-oauth-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const witness = join(folder, "effects");
  const desk = era === "modern" ? modernHandler(() => deskServer(witness)) : legacyHandler(() => deskServer(witness));
  const access = new Map<string, Grant>();
  const refresh = new Map<string, Grant>();
  const clients = new Map<string, { readonly secret: string; readonly redirects: readonly string[] }>();
  const codes = new Map<string, Code>();
  const secrets = new Set<string>();
  const counts = new Map<string, number>();
  const overrides = new Map<string, Handler>();
  const users: string[] = [];
  let refreshes = 0;
  let endsLogins = isLoginEndedByFirstCall;
  let issuer = "";
  let origin = "";
  const secret = (kind: string): string => {
    const value = `${kind}-${randomBytes(12).toString("hex")}`;
    secrets.add(value);
    return value;
  };
  const tokensFor = (grant: Grant, hasRefresh = true) => {
    const token = secret("access");
    access.set(token, grant);
    const next = secret("refresh");
    if (hasRefresh) refresh.set(next, grant);
    return Response.json({
      access_token: token,
      token_type: "Bearer",
      expires_in: 3_600,
      scope: grant.scope,
      ...(hasRefresh ? { refresh_token: next } : {}),
    });
  };

  const revoke = (): void => {
    access.clear();
    refresh.clear();
  };

  const token = async (request: Request): Promise<Response> => {
    const form = new URLSearchParams(await request.text());
    for (const name of ["code", "code_verifier", "refresh_token"]) {
      const value = form.get(name);
      if (value !== null && value.length > 20) secrets.add(value);
    }
    const [, basic = ""] = /^Basic (.+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    const [id = "", password = ""] = Buffer.from(basic, "base64").toString().split(":").map(decodeURIComponent);
    const client = clients.get(id);
    if (client === undefined || client.secret !== password) return refused("invalid_client");
    if (form.get("grant_type") === "client_credentials") {
      return tokensFor({ user: id, scope: form.get("scope") ?? "desk", clientId: id }, false);
    }
    if (form.get("grant_type") === "refresh_token") {
      refreshes += 1;
      const used = form.get("refresh_token") ?? "";
      const grant = refresh.get(used);
      if (grant === undefined || grant.clientId !== id) return refused("invalid_grant");
      if (rotates) refresh.delete(used);
      return tokensFor(grant);
    }
    const code = codes.get(form.get("code") ?? "");
    codes.delete(form.get("code") ?? "");
    const digest = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (code === undefined || code.challenge !== digest || code.clientId !== id) return refused("invalid_grant");
    return tokensFor(code);
  };

  const register = async (request: Request): Promise<Response> => {
    const given = (await request.json()) as { readonly redirect_uris: readonly string[] };
    const id = `client-${clients.size + 1}`;
    const password = secret("client");
    clients.set(id, { secret: password, redirects: given.redirect_uris });
    return Response.json({ ...given, client_id: id, client_secret: password }, { status: 201 });
  };

  const authorize = (request: Request): Response => {
    const { searchParams } = new URL(request.url);
    const client = clients.get(searchParams.get("client_id") ?? "");
    const back = searchParams.get("redirect_uri") ?? "";
    if (client === undefined || !client.redirects.includes(back))
      return new Response("no such client", { status: 400 });
    const code = secret("code");
    codes.set(code, {
      user: request.headers.get("x-user") ?? "nobody",
      scope: searchParams.get("scope") ?? "",
      clientId: searchParams.get("client_id") ?? "",
      challenge: searchParams.get("code_challenge") ?? "",
    });
    const location = new URL(back);
    for (const [name, value] of Object.entries({ code, state: searchParams.get("state") ?? "", iss: issuer })) {
      location.searchParams.set(name, value);
    }
    return new Response(null, { status: 302, headers: { location: location.href } });
  };

  const authority = await serve(async (request) => {
    const { pathname } = new URL(request.url);
    counts.set(pathname, (counts.get(pathname) ?? 0) + 1);
    const own = overrides.get(pathname);
    if (own) return await own(request);
    if (pathname === "/register") return await register(request);
    if (pathname === "/token") return await token(request);
    if (pathname === "/authorize") return authorize(request);
    if (pathname !== "/.well-known/oauth-authorization-server") return new Response("no", { status: 404 });
    return Response.json(metadataOf(issuer));
  });
  issuer = authority.url;

  const guard: Handler = async (request) => {
    const { pathname } = new URL(request.url);
    const own = overrides.get(pathname);
    if (own) return await own(request);
    if (pathname === metadataPath) {
      return Response.json({ resource: `${origin}/mcp`, authorization_servers: [issuer], scopes_supported: ["desk"] });
    }
    const body = request.method === "POST" ? await request.clone().text() : "";
    const { method, params } = JSON.parse(body || "{}") as { method?: string; params?: { name: string } };
    const tool = method === "tools/call" ? params?.name : undefined;
    if (tool !== undefined && endsLogins) {
      endsLogins = false;
      revoke();
    }
    const [, sent = ""] = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    const grant = access.get(sent);
    const challenge = `Bearer resource_metadata="${origin}${metadataPath}"`;
    if (grant === undefined) {
      return new Response("who is it?", { status: 401, headers: { "www-authenticate": `${challenge}, scope="desk"` } });
    }
    const needed = tool === undefined ? undefined : scopes[tool];
    if (needed !== undefined && !grant.scope.split(" ").includes(needed)) {
      const words = `${challenge}, error="insufficient_scope", scope="${needed}"`;
      return new Response("more", { status: 403, headers: { "www-authenticate": words } });
    }
    if (tool !== undefined) users.push(grant.user);
    const response = await desk(request);
    if (tool === undefined) return response;
    // A careless server shows the token that it got.
    const headers = new Headers(response.headers);
    headers.delete("content-length");
    return new Response((await response.text()).replaceAll("MY-TOKEN", sent), { status: response.status, headers });
  };
  const { url } = await serve(guard);
  origin = url;

  return {
    url: `${url}/mcp`,
    issuer,
    secrets,
    count: (path) => counts.get(path) ?? 0,
    refreshes: () => refreshes,
    users: () => users,
    effects: () => linesOf(witness),
    logIn: async (page, user) => {
      const response = await fetch(page, { redirect: "manual", headers: { "x-user": user } });
      const location = response.headers.get("location");
      if (location === null) throw new Error(`the login page answered ${response.status}: ${await response.text()}`);
      return location;
    },
    token,
    forgetClients: () => clients.clear(),
    expire: () => access.clear(),
    revoke,
    override: (path, handler) => void overrides.set(path, handler),
  };
}

function refused(error: string): Response {
  return Response.json({ error }, { status: 400 });
}

export function metadataOf(issuer: string) {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    response_types_supported: ["code"],
    grant_types_supported: ["authorization_code", "refresh_token", "client_credentials"],
    token_endpoint_auth_methods_supported: ["client_secret_basic"],
    code_challenge_methods_supported: ["S256"],
    scopes_supported: ["desk", "pay"],
    authorization_response_iss_parameter_supported: true,
  };
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, "utf8").trim().split("\n");
  } catch {
    return [];
  }
}
