// Stubs over HTTP: an end-to-end test drives a served agent with the client, and none of its tools runs.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, memoryStores, type SessionStub, type Stores } from "troupe";
import { createClient, type TroupeClient } from "troupe/client";
import { serveRuntime, tokenAuth } from "troupe/server";
import { sqliteStores } from "troupe/stores/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { look, rounds, type StubbedDesk, stubbedDesk, stubs } from "../../support/stubbed-desk.ts";
import { runtimeOf, serve, tokens } from "../served.ts";
import { apiSurface } from "../../../src/server/api/api-surface.ts";

const secret = "c2VjcmV0IG9mIHRlc3Rz";

interface Listening {
  readonly client: TroupeClient;
  readonly close: () => Promise<void>;
}

async function listening({ desk }: StubbedDesk, stores: Stores): Promise<Listening> {
  const runtime = await createRuntime({ agents: [desk], stores });
  const server = serveRuntime(runtime, {
    authenticate: tokenAuth({ tokens: { [tokens.ann]: { userId: "ann", scopes: [] } } }),
    stubs: { secret },
  });
  const { url } = await server.listen({ port: 0 });
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (!isOpen) return;
    isOpen = false;
    await server.close();
    await runtime.shutdown();
  };
  onTestFinished(close);
  return {
    client: createClient({ url, stubsSecret: secret, headers: { authorization: `Bearer ${tokens.ann}` } }),
    close,
  };
}

test.each(["memory", "sqlite"])("a session is driven from another process, with stores in %s", async (kind) => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-stubs-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const memory = memoryStores();
  const open = (): Stores => (kind === "memory" ? memory : sqliteStores(join(folder, "jobs.db")));
  const first = stubbedDesk();
  const before = await listening(first, open());
  const made = await before.client.createAgent({ definition: "desk", key: "case 1", stubs });
  expect((await made.info()).isStubbed).toBe(true);
  const turn = await made.executeTurn(rounds(look("7"), look("8")));
  expect((await turn.settled()).result?.text).toBe('{"broken":true} | Error: no such order');

  // SQLite: another process goes on where the first one has ended.
  const second = kind === "memory" ? first : stubbedDesk();
  if (kind === "sqlite") await before.close();
  const { client } = kind === "memory" ? before : await listening(second, open());
  const agent = await client.createAgent({ definition: "desk", key: "case 1", stubs });
  expect(agent.agentId).toBe(made.agentId);
  const next = await agent.executeTurn(rounds([...look("7"), ["helper", { input: rounds(look("8")) }]]));
  expect((await next.settled()).result?.text).toBe('{"broken":false} | Error: no such order');
  const failed = await (await agent.executeTurn(rounds([["look", { order: "9" }]]))).settled();
  expect(failed.status).toBe("failed");
  expect(failed.result?.error).toMatchObject({ code: "stub_mismatch", message: expect.stringContaining('"9"') });
  const report = await agent.stubs();
  expect(report.stubs.map(({ used }) => used)).toEqual([1, 1, 2, 0]);
  expect(report.unused).toEqual([{ tool: "pay", output: "stubbed payment", used: 0 }]);
  expect(report.mismatches).toMatchObject([{ agentId: agent.agentId, tool: "look" }]);
  expect([first.ran, second.ran]).toEqual([[], []]);
});

const body = { definition: "desk", key: "case 1", stubs };
const header = "troupe-stubs-secret";

test("without the right secret stubs are refused with 403, and nothing is stored", async () => {
  const { desk } = stubbedDesk();
  const runtime = await runtimeOf({ agents: [desk] });
  const accepting = serve(runtime, { surfaces: [apiSurface()], stubs: { secret } });
  const closed = serve(runtime, { surfaces: [apiSurface()] });
  const refused = [
    await accepting.ask("/api/agents", { method: "POST", body }),
    await accepting.ask("/api/agents", { method: "POST", body, headers: { [header]: `${secret}x` } }),
    await accepting.ask("/api/agents", { method: "POST", body, headers: { [header]: "" } }),
    await closed.ask("/api/agents", { method: "POST", body, headers: { [header]: secret } }),
  ];
  const answers = await Promise.all(refused.map(async (one) => [one.status, await one.text()]));
  expect(answers.map(([status]) => status)).toEqual([403, 403, 403, 403]);
  expect(new Set(answers.map(([, text]) => text)).size).toBe(1);
  expect(JSON.stringify([answers, accepting.lines, closed.lines])).not.toContain(secret);
  expect(await runtime.list()).toEqual([]);
  const stranger = await accepting.ask("/api/agents", {
    method: "POST",
    body,
    headers: { [header]: secret, authorization: "Bearer an-unknown-token-01" },
  });
  expect(stranger.status).toBe(401);
});

test("an agent is stubbed or not from its creation on, and only a request with its stubs reaches it by its name", async () => {
  const { desk } = stubbedDesk();
  const { ask } = serve(await runtimeOf({ agents: [desk] }), { surfaces: [apiSurface()], stubs: { secret } });
  const create = async (more: object): Promise<readonly [number, string]> => {
    const answer = await ask("/api/agents", {
      method: "POST",
      body: { ...body, ...more },
      headers: { [header]: secret },
    });
    return [answer.status, await answer.text()];
  };
  expect((await create({}))[0]).toBe(201);
  expect((await create({}))[0]).toBe(200);
  expect(await create({ stubs: undefined })).toEqual([400, expect.stringContaining("exists, and has stubs")]);
  expect(await create({ stubs: [{ tool: "pay", output: 1 }] })).toEqual([
    400,
    expect.stringContaining("has other stubs"),
  ]);
  expect((await create({ key: "real", stubs: undefined }))[0]).toBe(201);
  expect(await create({ key: "real" })).toEqual([400, expect.stringContaining("has no stubs")]);
});

test("unknown tools and wrong stubs are refused with 400 that names what is known", async () => {
  const { desk } = stubbedDesk();
  const runtime = await runtimeOf({ agents: [desk] });
  const { ask } = serve(runtime, { surfaces: [apiSurface()], stubs: { secret } });
  const cases: readonly (readonly [unknown, string])[] = [
    [[{ tool: "refund", output: 1 }], "there are look, pay, ask_user, helper"],
    [[{ tool: "look" }], "either an output or an error"],
    [[{ tool: "look", output: 1, args: {} }], "args"],
    [[{ tool: "look", output: "x".repeat(200_001) }], "200000"],
    [Array.from({ length: 201 }, () => ({ tool: "look", output: 1 })), "<=200"],
    [{}, "array"],
  ];
  for (const [given, message] of cases) {
    const answer = await ask("/api/agents", {
      method: "POST",
      body: { definition: "desk", stubs: given },
      headers: { [header]: secret },
    });
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(message)]);
  }
  expect(await runtime.list()).toEqual([]);
});

test("another owner sees no report, and an agent without stubs has an empty one", async () => {
  const { desk } = stubbedDesk();
  const { ask } = serve(await runtimeOf({ agents: [desk] }), { surfaces: [apiSurface()], stubs: { secret } });
  const made = await ask("/api/agents", { method: "POST", body: { definition: "desk" } });
  const { agentId, isStubbed } = (await made.json()) as { agentId: string; isStubbed: boolean };
  expect(isStubbed).toBe(false);
  expect(await (await ask(`/api/agents/${agentId}/stubs`)).json()).toEqual({ stubs: [], unused: [], mismatches: [] });
  expect((await ask(`/api/agents/${agentId}/stubs`, { as: "bob" })).status).toBe(404);
});

test("options with wrong values are refused without showing the secret", async () => {
  const runtime = await runtimeOf({ agents: [stubbedDesk().desk] });
  const authenticate = tokenAuth({ tokens: {} });
  for (const wrong of [
    {},
    "secret",
    { secret: "short" },
    { secret: `${secret} with spaces` },
    { secret: 5 },
    { token: secret },
  ]) {
    expect(() => serveRuntime(runtime, { authenticate, stubs: wrong as never })).toThrow(/stubs/);
    expect(() => serveRuntime(runtime, { authenticate, stubs: wrong as never })).not.toThrow(secret);
  }
  const url = "http://127.0.0.1:1";
  for (const wrong of ["short", 5, `${secret} with spaces`]) {
    expect(() => createClient({ url, stubsSecret: wrong as never })).toThrow("invalid stubsSecret");
  }
  const client = createClient({ url, stubsSecret: secret });
  const creating = (given: unknown) =>
    client.createAgent({ definition: "desk", stubs: given as readonly SessionStub[] }, {});
  await expect(creating([])).rejects.toThrow("stubs is a list of 0");
  await expect(creating([5])).rejects.toThrow("stubs[0] is 5");
  await expect(creating([{ tool: "look", result: 1 }])).rejects.toThrow('stubs[0] has no "result"');
  await expect(createClient({ url }).createAgent({ definition: "desk", stubs })).rejects.toThrow("pass stubsSecret");
});
