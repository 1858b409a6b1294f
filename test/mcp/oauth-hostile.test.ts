import { mcpLogins, type McpOAuthOptions, memoryMcpTokens } from "troupe/mcp";
import { describe, expect, test } from "vitest";
import { requestOf } from "../support/deciding.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { type GuardedDesk, metadataOf, openGuarded, redirectUrl } from "./oauth-server.ts";
import { callerOf, connected, type Handler, serve } from "./served-desk.ts";

const asMetadata = "/.well-known/oauth-authorization-server";
const resourceMetadata = "/.well-known/oauth-protected-resource/mcp";

async function loginsOf(desk: GuardedDesk, oauth: Partial<McpOAuthOptions> = {}) {
  const store = memoryMcpTokens();
  const auth = { oauth: { redirectUrl, store, ...oauth } };
  return { store, logins: await mcpLogins({ name: "desk", url: desk.url, auth }) };
}

const ann = { actorId: "ann" };

async function begun() {
  const desk = await openGuarded();
  const { logins } = await loginsOf(desk);
  const page = await logins.begin(ann);
  return { desk, logins, redirected: new URL(await desk.logIn(page, "ann")) };
}

function withParameter(url: URL, name: string, value: string | null): URL {
  const changed = new URL(url);
  if (value === null) changed.searchParams.delete(name);
  else changed.searchParams.set(name, value);
  return changed;
}

describe("a redirect", () => {
  test.each(["guessed", "", null])("with the state %j is refused, and the login can still be ended", async (state) => {
    const { desk, logins, redirected } = await begun();
    await expect(logins.finish(withParameter(redirected, "state", state), ann)).rejects.toThrow(/state is unknown/);
    await logins.finish(redirected, ann);
    expect(desk.count("/token")).toBe(1);
  });

  test("of another actor's login is refused", async () => {
    const { desk, logins, redirected } = await begun();
    await logins.begin({ actorId: "eve" });
    for (const actorId of ["eve", "bob", null]) {
      await expect(logins.finish(redirected, { actorId })).rejects.toThrow(/not begun for this actor/);
    }
    expect(desk.count("/token")).toBe(0);
  });

  test("is good for one answer, also at the same time", async () => {
    const { desk, logins, redirected } = await begun();
    const ends = await Promise.allSettled([logins.finish(redirected, ann), logins.finish(redirected.href, ann)]);
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(desk.count("/token")).toBe(1);
  });

  test.each(["https://evil.example.com", null])(
    "with the issuer %j is refused before its code is sent",
    async (iss) => {
      const { desk, logins, redirected } = await begun();
      const failure = logins.finish(withParameter(redirected, "iss", iss), ann);
      await expect(failure).rejects.toThrow(/another authorization server/);
      await expect(failure).rejects.not.toThrow(/evil/);
      expect(desk.count("/token")).toBe(0);
    },
  );

  test("with an error ends the login; texts of the redirect are not shown", async () => {
    const { logins, redirected } = await begun();
    const denied = withParameter(withParameter(redirected, "code", null), "error", "access_denied");
    denied.searchParams.set("error_description", "call 0800-EVIL");
    const failure = logins.finish(denied, ann);
    await expect(failure).rejects.toThrow(/refused the login: access_denied$/);
    await expect(logins.finish(redirected, ann)).rejects.toThrow(/state is unknown/);
  });

  test.each([5, null, "/callback?code=1", "x".repeat(30_000)])("without an address is refused", async (given) => {
    const { logins } = await loginsOf(await openGuarded());
    await expect(logins.finish(given as never, ann)).rejects.toThrow(/give the whole address/);
  });
});

/** Names an authorization server; the MCP server itself seems to be elsewhere. */
async function beginAt(metadata: object, oauth: Partial<McpOAuthOptions> = {}): Promise<unknown> {
  const desk = await openGuarded();
  desk.override(asMetadata, async () => Response.json({ ...metadataOf(desk.issuer), ...metadata }));
  const { logins } = await loginsOf(desk, oauth);
  return await logins.begin(ann);
}

describe("addresses that a server names", () => {
  test.each([
    "http://169.254.169.254/latest/meta-data",
    "https://10.0.0.1/register",
    "https://[fd00::1]/register",
    "https://[::ffff:10.0.0.1]/register",
    "http://example.com/register",
    "https://db.localhost/register",
  ])("%s is not requested", async (address) => {
    await expect(beginAt({ registration_endpoint: address })).rejects.toThrow(
      /for its authorization, which is (?:without TLS|not a public address)/,
    );
  });

  test.each(["javascript:alert(1)", "data:text/html,hi", "file:///etc/passwd", "http://example.com/login"])(
    "the login page %s is refused",
    async (page) => {
      await expect(beginAt({ authorization_endpoint: page })).rejects.toThrow(/URL|without TLS/i);
    },
  );

  test("a login page longer than a prompt is refused", async () => {
    await expect(beginAt({ authorization_endpoint: `https://example.com/${"a".repeat(9_000)}` })).rejects.toThrow(
      /longer than 8000 characters/,
    );
  });

  test("a private authorization server is used if it is listed", async () => {
    await expect(
      beginAt({ registration_endpoint: "https://10.255.255.1/register" }, { origins: ["https://10.0.0.1"] }),
    ).rejects.toThrow(/list it in origins/);
  });

  test("metadata of another issuer is refused", async () => {
    await expect(beginAt({ issuer: "https://evil.example.com" })).rejects.toThrow(/another issuer/);
  });

  test("a resource that is not the server's is refused", async () => {
    const desk = await openGuarded();
    desk.override(resourceMetadata, async () =>
      Response.json({ resource: "https://bank.example.com/mcp", authorization_servers: [desk.issuer] }),
    );
    await expect((await loginsOf(desk)).logins.begin(ann)).rejects.toThrow(/resource/i);
  });

  test("a redirect to another origin is not followed", async () => {
    const desk = await openGuarded();
    let isReached = false;
    const inside = await serve(async () => {
      isReached = true;
      return Response.json(metadataOf(desk.issuer));
    });
    desk.override("/register", async () => Response.redirect(`${inside.url}/register`, 307));
    await expect((await loginsOf(desk)).logins.begin(ann)).rejects.toThrow(/refused to register/);
    expect(isReached).toBe(false);
  });
});

const endless: Handler = async () =>
  new Response(
    new ReadableStream({
      pull: (controller) => controller.enqueue(Buffer.alloc(100_000, "a")),
    }),
  );

describe("an authorization server", () => {
  test.each([asMetadata, "/register"])("with an endless answer to %s is left", async (path) => {
    const desk = await openGuarded();
    desk.override(path, endless);
    await expect((await loginsOf(desk)).logins.begin(ann)).rejects.toThrow(/more than 1000000 bytes/);
  });

  test("with an endless answer to a code is left", async () => {
    const desk = await openGuarded();
    const { logins } = await loginsOf(desk);
    const redirected = await desk.logIn(await logins.begin(ann), "ann");
    desk.override("/token", endless);
    await expect(logins.finish(redirected, ann)).rejects.toThrow(/more than 1000000 bytes/);
  });

  test("that registers no programs: the error names the way out", async () => {
    const desk = await openGuarded();
    desk.override("/register", async () => Response.json({ error: "access_denied" }, { status: 403 }));
    await expect((await loginsOf(desk)).logins.begin(ann)).rejects.toThrow(/status 403.*auth\.oauth\.client/);
    desk.override(asMetadata, async () => {
      const { registration_endpoint: _none, ...metadata } = metadataOf(desk.issuer);
      return Response.json(metadata);
    });
    await expect((await loginsOf(desk)).logins.begin(ann)).rejects.toThrow(/by hand and give auth\.oauth\.client/);
  });

  test("that is down keeps the tokens: the call is not started, and the next one refreshes", async () => {
    const desk = await openGuarded();
    const { logins, store } = await loginsOf(desk);
    for (const actorId of [null, "ann"]) {
      await logins.finish(await desk.logIn(await logins.begin({ actorId }), actorId ?? "program"), { actorId });
    }
    const auth = { oauth: { redirectUrl, store } };
    const { tools } = await connected({ name: "desk", url: desk.url, auth });
    const { agent } = await callerOf(tools, [{ name: "desk__echo", arguments: { text: "hi" } }]);
    desk.expire();
    let isDown = true;
    desk.override("/token", async (request) => {
      if (isDown) return new Response("busy", { status: 503 });
      return await desk.token(request);
    });
    const first = agent.executeTurn("go", { auth: ann });
    expect((await first.result).status).toBe("completed");
    expect((await toolTextsOf(agent))[0]).toMatch(/did not run the tool: the authorization failed:.*status 503/);
    isDown = false;
    await agent.executeTurn("go", { auth: ann }).result;
    expect((await toolTextsOf(agent))[1]).toBe("echo: hi");
  });

  test.each([
    "not json, but access-0123456789abcdef",
    '{"error":"<script>","error_description":"access-0123456789abcdef"}',
  ])("that answers a code with %s: nothing of it is shown", async (text) => {
    const desk = await openGuarded();
    const { logins } = await loginsOf(desk);
    const redirected = await desk.logIn(await logins.begin(ann), "ann");
    desk.override("/token", async () => new Response(text, { headers: { "content-type": "application/json" } }));
    const failure = await logins.finish(redirected, ann).catch((error: Error) => error);
    expect(String(failure)).toMatch(/answered without a token/);
    expect(String(failure)).not.toMatch(/0123456789abcdef|script/);
  });

  test("that has forgotten the client registers it again at the next login", async () => {
    const desk = await openGuarded();
    const { logins } = await loginsOf(desk);
    const redirected = await desk.logIn(await logins.begin(ann), "ann");
    desk.forgetClients();
    await expect(logins.finish(redirected, ann)).rejects.toThrow(/refused: invalid_client/);
    await logins.finish(await desk.logIn(await logins.begin(ann), "ann"), ann);
    expect(desk.count("/register")).toBe(2);
  });
});

test("a client that was registered by hand is used with its authorization server only", async () => {
  const desk = await openGuarded();
  const other = { clientId: "mine", clientSecret: "s3cret-of-mine", issuer: "https://login.example.com" };
  await expect((await loginsOf(desk, { client: other })).logins.begin(ann)).rejects.toThrow(
    /issuer|authorization server/i,
  );
  const body = JSON.stringify({ redirect_uris: [redirectUrl] });
  const registered = (await (await fetch(`${desk.issuer}/register`, { method: "POST", body })).json()) as {
    client_id: string;
    client_secret: string;
  };
  const client = { clientId: registered.client_id, clientSecret: registered.client_secret, issuer: desk.issuer };
  const { logins } = await loginsOf(desk, { client });
  await logins.finish(await desk.logIn(await logins.begin(ann), "ann"), ann);
  expect(desk.count("/register")).toBe(1);
});

test("a client id metadata document is used where the authorization server supports it", async () => {
  const desk = await openGuarded();
  desk.override(asMetadata, async () =>
    Response.json({ ...metadataOf(desk.issuer), client_id_metadata_document_supported: true }),
  );
  const clientMetadataUrl = "https://app.example.com/client.json";
  const page = await (await loginsOf(desk, { clientMetadataUrl })).logins.begin(ann);
  expect(new URL(page).searchParams.get("client_id")).toBe(clientMetadataUrl);
  expect(desk.count("/register")).toBe(0);
});

test("a server that refuses every token: the person is asked a few times, not for ever", async () => {
  const desk = await openGuarded();
  const { logins, store } = await loginsOf(desk);
  await logins.finish(await desk.logIn(await logins.begin({ actorId: null }), "program"), { actorId: null });
  const { tools } = await connected({ name: "desk", url: desk.url, auth: { oauth: { redirectUrl, store } } });
  const { agent, runtime } = await callerOf(tools, [{ name: "desk__echo", arguments: { text: "hi" } }]);
  desk.override("/mcp", async () => new Response("no", { status: 401 }));
  const turn = agent.executeTurn("go", { auth: ann });
  for (let asked = 1; asked <= 10; asked += 1) {
    const { requestId } = await requestOf(turn);
    await runtime.decide(requestId, { verdict: "provided" });
  }
  expect((await turn.result).status).toBe("completed");
  expect((await toolTextsOf(agent))[0]).toMatch(/asks for a login again after each one/);
});
