import { type Agent, type AgentRequest, type Turn } from "troupe";
import { type McpLogins, mcpLogins, type McpOptions, type McpTools, memoryMcpTokens } from "troupe/mcp";
import { describe, expect, test } from "vitest";
import { requestOf, requestsOf } from "../support/deciding.ts";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { type GuardedDesk, openGuarded, redirectUrl } from "./oauth-server.ts";
import { type AskedTool, callerOf, connected, type McpCaller } from "./served-desk.ts";

function optionsFor(desk: GuardedDesk, options: Partial<McpOptions> = {}): McpOptions {
  const oauth = { redirectUrl, store: memoryMcpTokens() };
  return { name: "desk", url: desk.url, auth: { oauth }, ...options };
}

async function logIn(desk: GuardedDesk, logins: McpLogins, actorId: string | null): Promise<void> {
  const page = await logins.begin({ actorId });
  await logins.finish(await desk.logIn(page, actorId ?? "program"), { actorId });
}

/** The tools, listed with a login of the program itself. */
async function openTools(desk: GuardedDesk, options: McpOptions): Promise<McpTools> {
  await logIn(desk, await mcpLogins(options), null);
  return await connected(options);
}

interface Scene extends McpCaller {
  readonly desk: GuardedDesk;
  readonly server: McpTools;
}

async function openScene(desk: GuardedDesk, calls: readonly AskedTool[], options = optionsFor(desk)): Promise<Scene> {
  const server = await openTools(desk, options);
  return { desk, server, ...(await callerOf(server.tools, calls)) };
}

const pay = { name: "desk__pay", arguments: { amount: 5, key: "k1" } };
const echo = (text: string) => ({ name: "desk__echo", arguments: { text } });
const auth = { actorId: "ann" };

function pageOf({ arguments: about }: AgentRequest): string {
  return (about as { readonly url: string }).url;
}

async function letIn({ desk, server, runtime }: Scene, request: AgentRequest, user = "ann"): Promise<void> {
  await server.logins.finish(await desk.logIn(pageOf(request), user), { actorId: user });
  await runtime.decide(request.requestId, { verdict: "provided", by: user });
}

async function outcomesOf({ stores }: McpCaller): Promise<readonly string[]> {
  return (await entriesOfType(stores, "caller", "tool.settled")).map(({ outcome }) => outcome);
}

async function endOf(agent: Agent, turn: Turn): Promise<readonly string[]> {
  expect((await turn.result).status).toBe("completed");
  return await toolTextsOf(agent);
}

describe.each(["legacy", "modern"] as const)("a server of the %s era", (era) => {
  test("the first call of a once tool waits for a login, and then has one effect", async () => {
    const scene = await openScene(await openGuarded({ era }), [pay]);
    const turn = scene.agent.executeTurn("go", { auth });
    const request = await requestOf(turn);
    expect(request).toMatchObject({ kind: "auth", actorId: "ann", isAsked: true });
    expect(request.prompt).toContain(pageOf(request));
    expect(request.arguments).toMatchObject({ server: "desk", scopes: ["desk"] });
    expect(scene.desk.effects()).toEqual([]);
    await letIn(scene, request);
    expect(await endOf(scene.agent, turn)).toEqual(["paid 5 with k1"]);
    expect([scene.desk.effects(), scene.desk.users()]).toEqual([["5 k1"], ["ann"]]);
  });

  test("an expired token is refreshed once for ten calls at the same time", async () => {
    const calls = Array.from({ length: 10 }, (_, index) => echo(`${index}`));
    const scene = await openScene(await openGuarded({ era }), calls);
    await logIn(scene.desk, scene.server.logins, "ann");
    expect(await endOf(scene.agent, scene.agent.executeTurn("go", { auth }))).toHaveLength(10);
    scene.desk.expire();
    const texts = await endOf(scene.agent, scene.agent.executeTurn("again", { auth }));
    expect(texts.slice(10).sort()).toEqual(calls.map(({ arguments: { text } }) => `echo: ${text}`));
    expect(scene.desk.refreshes()).toBe(1);
  });

  test("a revoked refresh token in the middle of a turn leads to another login, then the same call goes on", async () => {
    const scene = await openScene(await openGuarded({ era }), [pay]);
    await logIn(scene.desk, scene.server.logins, "ann");
    scene.desk.revoke();
    const turn = scene.agent.executeTurn("go", { auth });
    await letIn(scene, await requestOf(turn));
    expect(await endOf(scene.agent, turn)).toEqual(["paid 5 with k1"]);
    expect([scene.desk.effects(), scene.desk.refreshes()]).toEqual([["5 k1"], 1]);
  });
});

test("parallel calls show one login page; one login is enough for all", async () => {
  const scene = await openScene(await openGuarded(), [echo("a"), echo("b"), echo("c")]);
  const turn = scene.agent.executeTurn("go", { auth });
  const requests = await requestsOf(turn);
  expect(requests).toHaveLength(3);
  expect(new Set(requests.map(pageOf)).size).toBe(1);
  const [first, ...others] = requests;
  await letIn(scene, first as AgentRequest);
  for (const { requestId } of others) await scene.runtime.decide(requestId, { verdict: "provided" });
  expect((await endOf(scene.agent, turn)).toSorted()).toEqual(["echo: a", "echo: b", "echo: c"]);
  // One login of the program, one of the person, with one registration.
  expect([scene.desk.count("/token"), scene.desk.count("/register")]).toEqual([2, 1]);
});

test("two owners have tokens of their own", async () => {
  const desk = await openGuarded();
  const options = optionsFor(desk);
  const { tools, logins } = await openTools(desk, options);
  await logIn(desk, logins, "ann");
  await logIn(desk, logins, "bob");
  for (const actorId of ["ann", "bob", "ann"]) {
    const { agent } = await callerOf(tools, [echo(actorId)]);
    expect(await endOf(agent, agent.executeTurn("go", { auth: { actorId } }))).toEqual([`echo: ${actorId}`]);
  }
  expect(desk.users()).toEqual(["ann", "bob", "ann"]);
  await logins.forget({ actorId: "ann" });
  const { agent } = await callerOf(tools, [echo("hm")]);
  expect((await requestOf(agent.executeTurn("go", { auth }))).kind).toBe("auth");
});

test("a rejected login: the call has not started, and the next login has another page", async () => {
  const scene = await openScene(await openGuarded(), [pay]);
  const turn = scene.agent.executeTurn("go", { auth });
  const request = await requestOf(turn);
  await scene.runtime.decide(request.requestId, { verdict: "rejected", reason: "not today" });
  expect((await endOf(scene.agent, turn))[0]).toMatch(/was not run: it needs a login.*rejected: not today/);
  expect([await outcomesOf(scene), scene.desk.effects()]).toEqual([["error"], []]);
  const next = await requestOf(scene.agent.executeTurn("go", { auth }));
  expect(pageOf(next)).not.toBe(pageOf(request));
});

test("a request that is answered without a login is asked again", async () => {
  const scene = await openScene(await openGuarded(), [pay]);
  const turn = scene.agent.executeTurn("go", { auth });
  const first = await requestOf(turn);
  await scene.agent.resume({ auth });
  const second = await requestOf(turn);
  expect(second.requestId).not.toBe(first.requestId);
  expect(pageOf(second)).toBe(pageOf(first));
  await letIn(scene, second);
  expect(await endOf(scene.agent, turn)).toEqual(["paid 5 with k1"]);
  expect(scene.desk.effects()).toEqual(["5 k1"]);
});

describe("more scopes", () => {
  test("a call that needs them waits for a login with them", async () => {
    const scene = await openScene(await openGuarded({ scopes: { pay: "pay" } }), [pay]);
    await logIn(scene.desk, scene.server.logins, "ann");
    const turn = scene.agent.executeTurn("go", { auth });
    const request = await requestOf(turn);
    expect(request.arguments).toMatchObject({ scopes: ["desk", "pay"] });
    await letIn(scene, request);
    expect(await endOf(scene.agent, turn)).toEqual(["paid 5 with k1"]);
    expect(scene.desk.effects()).toEqual(["5 k1"]);
  });

  test("a server that is not satisfied by them is not believed", async () => {
    const desk = await openGuarded();
    const scene = await openScene(desk, [pay]);
    await logIn(desk, scene.server.logins, "ann");
    let refusals = 0;
    desk.override("/mcp", async () => {
      refusals += 1;
      const words = 'Bearer error="insufficient_scope", scope="desk"';
      return new Response("more", { status: 403, headers: { "www-authenticate": words } });
    });
    expect((await endOf(scene.agent, scene.agent.executeTurn("go", { auth })))[0]).toMatch(
      /did not run the tool.*scopes "desk", which were requested/,
    );
    expect([await outcomesOf(scene), refusals]).toEqual([["error"], 1]);
  });
});

test("mcp() rejects with the login page if listing needs a login", async () => {
  const desk = await openGuarded();
  const options = optionsFor(desk);
  const failure = connected(options);
  await expect(failure).rejects.toMatchObject({ code: "mcp_authorization", server: "desk" });
  const page = await failure.catch((error: { readonly url: string }) => error.url);
  await (await mcpLogins(options)).finish(await desk.logIn(page as string, "program"), { actorId: null });
  expect((await connected(options)).tools.length).toBeGreaterThan(3);
});

describe("a program that logs in as itself", () => {
  test("gets one token for all owners, and another after it has expired", async () => {
    const desk = await openGuarded();
    const clientMetadata = { redirect_uris: [redirectUrl] };
    const registered = await fetch(`${desk.issuer}/register`, { method: "POST", body: JSON.stringify(clientMetadata) });
    const { client_id, client_secret } = (await registered.json()) as Record<"client_id" | "client_secret", string>;
    const clientCredentials = { clientId: client_id, clientSecret: client_secret, issuer: desk.issuer };
    const { tools } = await connected({ name: "desk", url: desk.url, auth: { clientCredentials } });
    const { agent } = await callerOf(tools, [echo("a"), echo("b")]);
    expect(await endOf(agent, agent.executeTurn("go", { auth }))).toHaveLength(2);
    desk.expire();
    expect(await endOf(agent, agent.executeTurn("go", { auth }))).toHaveLength(4);
    expect([desk.count("/token"), new Set(desk.users())]).toEqual([2, new Set([client_id])]);
  });

  test("sends its secret to no other authorization server", async () => {
    const desk = await openGuarded();
    const clientCredentials = { clientId: "me", clientSecret: "s3cret-of-mine", issuer: "https://login.example.com" };
    await expect(connected({ name: "desk", url: desk.url, auth: { clientCredentials } })).rejects.toThrow(
      /the authorization failed/,
    );
    expect(desk.count("/token")).toBe(0);
  });
});

describe("a bearer token", () => {
  test("comes from a function, once per owner, and again after a 401", async () => {
    const desk = await openGuarded();
    const options = optionsFor(desk);
    const store = memoryMcpTokens();
    const logins = await mcpLogins({ ...options, auth: { oauth: { redirectUrl, store } } });
    const asked: (string | null)[] = [];
    const token = async ({ actorId }: { readonly actorId: string | null }): Promise<string> => {
      asked.push(actorId);
      await logIn(desk, logins, actorId);
      const value = store.get({ server: desk.url, actorId, item: "tokens" }) as string;
      return (JSON.parse(value) as { readonly tokens: { readonly access_token: string } }).tokens.access_token;
    };
    const { tools } = await connected({ name: "desk", url: desk.url, auth: { token } });
    const { agent } = await callerOf(tools, [echo("a"), echo("b"), echo("c")]);
    await endOf(agent, agent.executeTurn("go", { auth }));
    desk.expire();
    await endOf(agent, agent.executeTurn("go", { auth }));
    expect(asked).toEqual([null, "ann", "ann"]);
    expect(new Set(desk.users())).toEqual(new Set(["ann"]));
  });

  test.each([
    ["throws", () => Promise.reject(new Error("s3cret-of-mine"))],
    ["returns no token", () => "s3cret of mine"],
    ["returns no text", () => 5 as never],
  ])("a function that %s: mcp() rejects without the value", async (_name, token) => {
    const desk = await openGuarded();
    const failure = await connected({ name: "desk", url: desk.url, auth: { token } }).catch((error: Error) => error);
    expect(failure).toMatchObject({ message: expect.stringMatching(/auth\.token\(\) (failed|returned no token)/) });
    expect(JSON.stringify(failure)).not.toContain("s3cret");
  });

  test("a text that the server refuses: the call is not started, and not sent again", async () => {
    const desk = await openGuarded();
    await expect(connected({ name: "desk", url: desk.url, auth: { token: "t0ken-of-mine" } })).rejects.toThrow(
      /cannot be listed/,
    );
  });
});
