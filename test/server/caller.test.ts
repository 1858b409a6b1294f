import { askUser, clientTool, defineAgent, defineTool, type Runtime, textOf } from "troupe";
import { type Call, jsonFailure, type Page, type ServeOptions, type Surface } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { routeAt, runtimeOf, type Served, serve } from "./served.ts";

const remove = defineTool({
  name: "remove",
  description: "Removes a file",
  parameters: z.object({ path: z.string() }),
  needsApproval: true,
  execute: () => "removed",
});
const locate = clientTool({ name: "locate", description: "Where the user is", parameters: z.object({}) });
const model = scriptedModel(({ messages }) => {
  const last = messages.at(-1);
  if (last?.role !== "user") return { text: "done" };
  const names = textOf(last.content)
    .split(" ")
    .filter((word) => ["remove", "ask_user", "locate"].includes(word));
  if (names.length === 0) return { text: "hello" };
  const argumentsOf = { remove: { path: "a" }, ask_user: { question: "who?" }, locate: {} } as const;
  return { toolCalls: names.map((name) => ({ name, arguments: argumentsOf[name as keyof typeof argumentsOf] })) };
});
const desk = defineAgent({ name: "desk", model, tools: [remove, askUser(), locate] });
const other = defineAgent({ name: "other", model });

type Act = (call: Call) => Promise<unknown>;

/** A server with one route, which the test implements. */
async function doing(
  act: Act,
  options: Partial<ServeOptions> = {},
  more: Partial<Surface> = {},
): Promise<Served & { runtime: Runtime }> {
  const runtime = await runtimeOf({ agents: [desk, other] });
  const route = routeAt("act", async (call) => Response.json((await act(call)) ?? null));
  const surface: Surface = { name: "test", paths: ["/test"], routes: [route], failure: jsonFailure, ...more };
  return { ...serve(runtime, { surfaces: [surface], ...options }), runtime };
}

/** Everything of an answer that a client sees and that is not new for each request. */
async function seen(response: Response): Promise<unknown> {
  const headers = [...response.headers].filter(([name]) => name !== "x-request-id");
  return { status: response.status, headers, body: await response.text() };
}

const list: Act = async ({ caller }) => ({
  agents: (await caller.agents()).items.map(({ agentId }) => agentId),
  turns: (await caller.turns()).items.map(({ turnId }) => turnId),
  requests: (await caller.requests({})).items.map(({ agentId }) => agentId),
});

const start: Act = async ({ caller }) => {
  const agent = await caller.openAgent({ definition: "desk", name: crypto.randomUUID() });
  await (await caller.startTurn(agent, "remove")).turn.settled;
};

describe("data of another user", () => {
  const lookups: Readonly<Record<string, (call: Call, id: string) => Promise<unknown>>> = {
    agent: ({ caller }, id) => caller.agent(id),
    root: ({ caller }, id) => caller.root(id),
    turn: ({ caller }, id) => caller.turn(`${id}#1`),
    request: ({ caller }, id) => caller.request(`${id}#1:1:0:1`),
    decide: ({ caller }, id) => caller.decide(`${id}#1:1:0:1`, { verdict: "approved" }),
    requests: ({ caller }, id) => caller.requests({ rootAgentId: id }),
    events: ({ caller }, id) => caller.events(id, { after: "1.1.0" }).next(),
    "an id that a surface made": ({ caller }, id) => caller.openAgent({ definition: "desk", agentId: id }),
  };

  it.each(Object.keys(lookups).filter((name) => name !== "an id that a surface made"))(
    "%s is answered byte for byte like missing data",
    async (name) => {
      let id = "";
      const { ask, runtime } = await doing((call) => lookups[name]?.(call, id) ?? Promise.reject(new Error(name)));
      for (const [agentId, ownerId] of [
        ["bobs", "bob"],
        ["nobodys", undefined],
      ] as const) {
        const agent = await runtime.agent("desk", { agentId, ownerId });
        await agent.start();
        await agent.executeTurn("remove").settled;
      }
      const answers = await Promise.all(
        ["unknown", "bobs", "nobodys"].map(async (one) => {
          id = one;
          return await seen(await ask("/test/act"));
        }),
      );
      expect(answers[0]).toMatchObject({ status: 404 });
      expect(answers.slice(1)).toEqual([answers[0], answers[0]]);
    },
  );

  it("cannot be taken over by its id", async () => {
    const { ask, runtime } = await doing(
      (call) => lookups["an id that a surface made"]?.(call, "bobs") ?? Promise.reject(),
    );
    await runtime.agent("desk", { agentId: "bobs", ownerId: "bob" });
    expect((await ask("/test/act")).status).toBe(404);
    expect((await ask("/test/act", { as: "bob" })).status).toBe(200);
  });

  it("may be answered like a request without a token", async () => {
    let id = "unknown";
    const { ask, runtime, server } = await doing(
      ({ caller }) => caller.agent(id),
      {},
      { strangers: "unauthenticated" },
    );
    await runtime.agent("desk", { agentId: "bobs", ownerId: "bob" });
    expect((await ask("/test/act")).status).toBe(404);
    id = "bobs";
    const nobody = await seen(await server.fetch(new Request("http://127.0.0.1/test/act")));
    expect(await seen(await ask("/test/act"))).toEqual(nobody);
    expect(nobody).toMatchObject({ status: 401 });
  });

  it("is in no list", async () => {
    const { ask, runtime } = await doing(list);
    for (const user of ["ann", "bob"]) {
      const agent = await runtime.agent("desk", { agentId: user, ownerId: user });
      await agent.start();
      await agent.executeTurn("remove").settled;
    }
    expect(await (await ask("/test/act")).json()).toEqual({ agents: ["ann"], turns: ["ann#1"], requests: ["ann"] });
  });
});

it("lists continue where the page before ended", async () => {
  const found: string[] = [];
  const { ask, runtime } = await doing(async ({ caller }) => {
    for (let after: string | undefined; ; ) {
      const page: Page<{ agentId: string }> = await caller.agents({ limit: 2, after });
      found.push(page.items.map(({ agentId }) => agentId).join(" "));
      if (page.next === null) return;
      after = page.next;
    }
  });
  for (const agentId of ["a", "b", "c", "d", "e"]) await runtime.agent("desk", { agentId, ownerId: "ann" });
  await ask("/test/act");
  expect(found.map((page) => page.split(" ").length)).toEqual([2, 2, 1]);
  expect(found.flatMap((page) => page.split(" ")).toSorted()).toEqual(["a", "b", "c", "d", "e"]);
});

describe("an agent that a key creates", () => {
  const key = { route: "test.create", value: "k" };

  it("is created once, also by concurrent callers", async () => {
    const { ask, runtime } = await doing(async ({ caller }) => {
      const made = await caller.createAgent({ definition: "desk", key, metadata: { a: 1 } });
      return [made.agent.agentId, made.isReplayed];
    });
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => (await (await ask("/test/act")).json()) as [string, boolean]),
    );
    expect(new Set(ids.map(([id]) => id)).size).toBe(1);
    expect(await (await ask("/test/act")).json()).toEqual([ids[0]?.[0], true]);
    expect(await runtime.list()).toHaveLength(1);
  });

  it.each([
    ["another definition", { definition: "other" }],
    ["other metadata", { metadata: { a: 2 } }],
    ["another session", { sessionId: "s" }],
    ["another conversation", { messages: [{ role: "user" as const, content: "hello" }] }],
  ])("cannot be requested with %s", async (_, change) => {
    let options = { definition: "desk", key, metadata: { a: 1 } };
    const { ask } = await doing(async ({ caller }) => (await caller.createAgent(options)).isReplayed);
    expect((await ask("/test/act")).status).toBe(200);
    options = { ...options, ...change };
    const refused = await ask("/test/act");
    expect([refused.status, await refused.json()]).toMatchObject([422, { error: { code: "key_reused" } }]);
    // Bob's key is independent.
    expect((await ask("/test/act", { as: "bob" })).status).toBe(200);
  });
});

describe("a plain message is refused", () => {
  it.each([
    ["when two questions are open", "ask_user ask_user"],
    ["when a question and an approval are open", "ask_user remove"],
    ["when only a client tool is awaited", "locate"],
  ])("%s, and the error names the requests", async (_, text) => {
    const { ask, runtime } = await doing(async ({ caller }) => {
      const agent = await caller.openAgent({ definition: "desk", name: "n" });
      if (agent.openTurn() === undefined) await (await caller.startTurn(agent, text)).turn.settled;
      else await caller.plainMessage(agent, "yes");
    });
    expect((await ask("/test/act")).status).toBe(200);
    const refused = await ask("/test/act");
    const open = await runtime.requests();
    expect(open.length).toBeGreaterThan(0);
    const { error } = (await refused.json()) as { error: { message: string } };
    expect([refused.status, open.filter(({ requestId }) => !error.message.includes(requestId))]).toEqual([409, []]);
  });
});

describe("too many turns", () => {
  it.each([
    ["in a minute", { turnsPerMinute: 2 }, "more than 2 turns in a minute"],
    ["that are open", { openTurns: 2 }, "you have 2 open turns"],
  ])("%s are refused as retryable", async (_, limits, message) => {
    const { ask } = await doing(start, { limits });
    expect([(await ask("/test/act")).status, (await ask("/test/act")).status]).toEqual([200, 200]);
    const refused = await ask("/test/act");
    expect([refused.status, refused.headers.has("retry-after")]).toEqual([429, true]);
    expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining(message) } });
    expect((await ask("/test/act", { as: "bob" })).status).toBe(200);
  });
});
