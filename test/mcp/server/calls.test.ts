import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createRuntime, defineAgent, defineTool, type Runtime } from "troupe";
import { mcp } from "troupe/mcp";
import { serveMcp } from "troupe/mcp/server";
import { tokenAuth } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { z } from "zod";
import { identities, tokens } from "../../server/served.ts";
import { callerOf } from "../served-desk.ts";
import { clientOf, connectedClient, deskAgent, eras, servedMcp, structuredIn, textIn } from "./served-desk.ts";

/** An agent whose tool `wait` runs until `release`. */
function waiting(): { readonly agents: readonly [ReturnType<typeof deskAgent>]; readonly release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { agents: [deskAgent(undefined, promise)], release: resolve };
}

async function statuses(runtime: Runtime): Promise<readonly string[]> {
  return (await runtime.turns()).map(({ status }) => status);
}

describe.each(eras)("a call of a client of the %s era", (era) => {
  it("with a key starts one turn, however often it is sent", async () => {
    const { url, runtime } = await servedMcp();
    const client = await connectedClient(url, { era });
    const call = { name: "desk", arguments: { input: "hello", key: "k-1" } };
    const results = await Promise.all(Array.from({ length: 10 }, () => client.callTool(call)));
    expect(new Set(results.map((result) => `${textIn(result)} ${structuredIn(result).turnId}`)).size).toBe(1);
    expect(await runtime.turns()).toHaveLength(1);
    const other = await client.callTool({ name: "desk", arguments: { input: "bye", key: "k-1" } });
    expect([other.isError, await runtime.turns()]).toMatchObject([true, { length: 1 }]);
    const bob = await connectedClient(url, { era, as: "bob" });
    expect(textIn(await bob.callTool({ name: "desk", arguments: { input: "bye", key: "k-1" } }))).toBe("1: bye");
  });

  it("with a long turn returns its id in time, and turn_result returns its answer", async () => {
    const { agents, release } = waiting();
    const { url, runtime } = await servedMcp({ agents }, { agents, waitMs: 50 });
    const client = await connectedClient(url, { era });
    const one = await client.callTool({ name: "desk", arguments: { input: "wait", key: "k" } });
    const { turnId, status, conversation } = structuredIn(one);
    expect([status, textIn(one)]).toEqual(["working", expect.stringContaining(turnId)]);
    const again = await client.callTool({ name: "desk", arguments: { input: "wait", key: "k" } });
    expect(structuredIn(again)).toEqual(structuredIn(one));
    release();
    await expect.poll(() => statuses(runtime)).toEqual(["completed"]);
    const result = await client.callTool({ name: "turn_result", arguments: { turnId } });
    expect(structuredIn(result)).toMatchObject({ status: "completed", text: "so: waited", turnId, conversation });
    const stranger = await connectedClient(url, { era, as: "bob" });
    const hidden = await stranger.callTool({ name: "turn_result", arguments: { turnId } });
    const unknown = await stranger.callTool({ name: "turn_result", arguments: { turnId: "nothing.1" } });
    expect(hidden).toEqual(unknown);
    const aborted = await stranger.callTool({ name: "turn_abort", arguments: { turnId } });
    expect(aborted).toEqual(unknown);
  });

  it("is ended by turn_abort", async () => {
    const { agents } = waiting();
    const { url, runtime } = await servedMcp({ agents }, { agents, waitMs: 50 });
    const client = await connectedClient(url, { era });
    const { turnId } = structuredIn(await client.callTool({ name: "desk", arguments: { input: "wait" } }));
    const result = await client.callTool({ name: "turn_abort", arguments: { turnId } });
    expect([structuredIn(result).status, result.isError ?? false]).toEqual(["stopped", false]);
    expect(await statuses(runtime)).toEqual(["stopped"]);
  });

  it("that is cancelled ends its turn", async () => {
    const { agents } = waiting();
    const { url, runtime } = await servedMcp({ agents }, { agents });
    // Without a session, a client of the legacy era has no way to cancel.
    const client = await connectedClient(url, { era, answers: () => ({ action: "cancel" }) });
    const cancel = new AbortController();
    const called = client.callTool({ name: "desk", arguments: { input: "wait" } }, { signal: cancel.signal });
    called.catch(() => undefined);
    await expect.poll(() => statuses(runtime)).toEqual(["open"]);
    cancel.abort("no longer needed");
    await expect(called).rejects.toThrow(/no longer needed|abort/i);
    await expect.poll(() => statuses(runtime)).toEqual(["stopped"]);
  });

  it("reports steps and tools as progress", async () => {
    const { url } = await servedMcp();
    const client = await connectedClient(url, {
      era,
      answers: () => ({ action: "accept", content: { decision: "approve" } }),
    });
    const told: string[] = [];
    await client.callTool(
      { name: "desk", arguments: { input: "remove" } },
      { onprogress: ({ message }) => void told.push(message ?? "") },
    );
    expect(told).toEqual(expect.arrayContaining(["desk: step 1", "desk: waits for a person"]));
    const numbers: number[] = [];
    await client.callTool(
      { name: "desk", arguments: { input: "hello" } },
      { onprogress: ({ progress }) => void numbers.push(progress) },
    );
    expect(numbers).toEqual([1]);
  });

  it("whose budget is spent is a readable error", async () => {
    const spending = defineAgent({
      name: "spender",
      model: scriptedModel(() => ({ toolCalls: [{ name: "look", arguments: {} }] })),
      tools: [
        defineTool({
          name: "look",
          description: "Looks",
          parameters: z.object({}),
          effect: "none",
          execute: () => "seen",
        }),
      ],
      budget: { maxSteps: 2 },
    });
    const { url } = await servedMcp({ agents: [spending] }, { agents: [spending] });
    const client = await connectedClient(url, { era });
    const result = await client.callTool({ name: "spender", arguments: { input: "go" } });
    expect([result.isError, structuredIn(result).status]).toEqual([true, "stopped"]);
    expect(textIn(result)).toMatch(/a limit of the agent is reached: maxSteps, 2 of 2/);
  });

  it("of two users never meets the other's conversation", async () => {
    const { url, runtime } = await servedMcp();
    const [ann, bob] = await Promise.all([connectedClient(url, { era }), connectedClient(url, { era, as: "bob" })]);
    const mine = await ann.callTool({ name: "desk", arguments: { input: "secret", conversation: "shared" } });
    const theirs = await bob.callTool({ name: "desk", arguments: { input: "hello", conversation: "shared" } });
    expect([textIn(mine), textIn(theirs)]).toEqual(["1: secret", "1: hello"]);
    expect(new Set((await runtime.list()).map(({ ownerId }) => ownerId))).toEqual(new Set(["ann", "bob"]));
  });

  it("above the caller's turns is refused in words", async () => {
    const { agents } = waiting();
    const { url } = await servedMcp({ agents }, { agents, waitMs: 20, limits: { openTurns: 1 } });
    const client = await connectedClient(url, { era });
    await client.callTool({ name: "desk", arguments: { input: "wait" } });
    const refused = await client.callTool({ name: "desk", arguments: { input: "wait" } });
    expect([refused.isError, textIn(refused)]).toEqual([true, expect.stringContaining("1 open turns")]);
  });
});

/** Calls a tool as a client whose connection is lost while the turn runs. */
const callThenLeave = async (
  url: string,
  runtime: Runtime,
  call: { name: string; arguments: Record<string, unknown> },
) => {
  const client = clientOf({ era: "modern" });
  const gone = new AbortController();
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${tokens.ann}` } },
    fetch: async (input, init) =>
      await fetch(input, { ...init, signal: AbortSignal.any([gone.signal, ...(init?.signal ? [init.signal] : [])]) }),
  });
  await client.connect(transport);
  const called = client.callTool(call).then(String, () => "lost");
  await expect.poll(() => statuses(runtime)).toEqual(["open"]);
  gone.abort();
  expect(await called).toBe("lost");
};

describe("a lost connection over HTTP", () => {
  it("ends a turn without a key, which its client cannot find again", async () => {
    const { agents } = waiting();
    const { url, runtime } = await servedMcp({ agents }, { agents });
    await callThenLeave(url, runtime, { name: "desk", arguments: { input: "wait" } });
    await expect.poll(() => statuses(runtime)).toEqual(["stopped"]);
  });

  it("leaves a turn with a key for the repeated call", async () => {
    const { agents, release } = waiting();
    const { url, runtime } = await servedMcp({ agents }, { agents });
    const call = { name: "desk", arguments: { input: "wait", key: "k" } };
    await callThenLeave(url, runtime, call);
    const another = await connectedClient(url, { era: "modern" });
    const repeated = another.callTool(call);
    release();
    expect(textIn(await repeated)).toBe("so: waited");
    expect(await statuses(runtime)).toEqual(["completed"]);
  });
});

describe.each(eras)("the end of the server, for a client of the %s era", (era) => {
  it("answers an open call with its turn, which goes on", async () => {
    const { agents, release } = waiting();
    const { url, serving, runtime } = await servedMcp({ agents }, { agents });
    const client = await connectedClient(url, { era });
    const called = client.callTool({ name: "desk", arguments: { input: "wait" } });
    await expect.poll(() => statuses(runtime)).toEqual(["open"]);
    await serving.close();
    expect(structuredIn(await called)).toMatchObject({ status: "working" });
    release();
    await expect.poll(() => statuses(runtime)).toEqual(["completed"]);
  });
});

describe("an agent that uses another agent over MCP", () => {
  it("gets its answer, sends its own key, and reads why the other one stopped", async () => {
    const other = defineAgent({
      name: "other",
      model: scriptedModel(({ messages }) =>
        JSON.stringify(messages.at(-1)?.content).includes("loop")
          ? { toolCalls: [{ name: "look", arguments: {} }] }
          : { text: "forty-two" },
      ),
      tools: [
        defineTool({
          name: "look",
          description: "Looks",
          parameters: z.object({}),
          effect: "none",
          execute: () => "loop",
        }),
      ],
      budget: { maxSteps: 3 },
    });
    const { url, runtime } = await servedMcp({ agents: [other] }, { agents: [other] });
    const server = await mcp({
      name: "far",
      url: `${url}/mcp`,
      headers: { authorization: `Bearer ${tokens.ann}` },
      tools: { other: { idempotencyArgument: "key", needsApproval: false } },
    });
    onTestFinished(() => server.close());
    const { agent } = await callerOf(server.tools, [
      { name: "far__other", arguments: { input: "what is it?" } },
      { name: "far__other", arguments: { input: "loop" } },
    ]);
    const result = await agent.executeTurn("go").result;
    expect(result.status).toBe("completed");
    const texts = (await agent.getMessages())
      .filter(({ role }) => role === "tool")
      .map(({ content }) => JSON.stringify(content));
    expect([texts[0], texts[1]]).toEqual([
      expect.stringContaining("forty-two"),
      expect.stringContaining("maxSteps, 3 of 3"),
    ]);
    const turns = await runtime.turns();
    expect(turns.map(({ key }) => key?.startsWith("mcp.call/"))).toEqual([true, true]);
  });
});

test("the turn of a call belongs to the trace of its client", async () => {
  const { url, runtime } = await servedMcp();
  const client = await connectedClient(url, { era: "modern" });
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const call = { name: "desk", arguments: { input: "hello" }, _meta: { traceparent } };
  await client.callTool(call);
  const [turn] = await runtime.turns();
  const agent = await runtime.find(turn?.agentId ?? "");
  const events = [];
  for await (const event of agent.turn(turn?.turnId ?? "")) events.push(event);
  expect(events.find(({ type }) => type === "turn.started")).toMatchObject({ trace: { traceparent } });
  await client.callTool({ ...call, _meta: { traceparent: "no trace" } });
  expect((await runtime.turns()).map(({ status }) => status)).toEqual(["completed", "completed"]);
});

describe("the endpoint", () => {
  it("refuses requests without a token, of other origins, and too large ones", async () => {
    const { url, serving } = await servedMcp({}, { limits: { bodyBytes: 1_000 } });
    const post = async (headers: Record<string, string>, body: string): Promise<Response> =>
      await fetch(`${url}/mcp`, { method: "POST", headers: { "content-type": "application/json", ...headers }, body });
    const bearer = { authorization: `Bearer ${tokens.ann}` };
    const anonymous = await post({}, "{}");
    expect([anonymous.status, anonymous.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    expect((await post({ ...bearer, origin: "https://evil.example" }, "{}")).status).toBe(403);
    const rebound = new Request("http://evil.example/mcp", { method: "POST", headers: bearer, body: "{}" });
    expect((await serving.fetch(rebound)).status).toBe(403);
    expect((await post(bearer, `{"a":"${"x".repeat(2_000)}"}`)).status).toBe(413);
    expect((await post(bearer, "{")).status).toBe(400);
    expect((await post(bearer, '{"__proto__":{}}')).status).toBe(400);
    expect((await post({ ...bearer, "mcp-session-id": "unknown" }, "{}")).status).toBe(404);
    expect((await fetch(`${url}/mcp`, { headers: bearer })).status).toBe(405);
  });

  it("accepts a subscription, which has nothing to report and ends with the server", async () => {
    const { url, serving } = await servedMcp();
    const client = await connectedClient(url, { era: "modern" });
    const subscription = await client.listen({ toolsListChanged: true });
    expect(subscription.honoredFilter).toEqual({});
    await serving.close();
    expect(await subscription.closed).not.toBe("local");
  });

  it("does not let a user into another user's session", async () => {
    const { url } = await servedMcp();
    const client = await connectedClient(url, { era: "legacy", answers: () => ({ action: "cancel" }) });
    const { sessionId } = client.transport as StreamableHTTPClientTransport;
    expect(sessionId).toBeDefined();
    const stolen = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${tokens.bob}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-session-id": sessionId ?? "",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    });
    expect(stolen.status).toBe(404);
  });

  it("names the issuers of its tokens", async () => {
    const agents = [deskAgent()];
    const runtime = await createRuntime({ agents });
    onTestFinished(() => runtime.shutdown());
    const serving = await serveMcp(runtime, {
      agents,
      authenticate: tokenAuth({ tokens: identities }),
      authorizationServers: ["https://login.example.com"],
      publicUrl: "https://agents.example.com/",
    });
    const metadata = "https://agents.example.com/.well-known/oauth-protected-resource/mcp";
    const refused = await serving.fetch(new Request("http://127.0.0.1/mcp", { method: "POST", body: "{}" }));
    expect(refused.headers.get("www-authenticate")).toBe(`Bearer resource_metadata="${metadata}"`);
    const response = await serving.fetch(new Request("http://127.0.0.1/.well-known/oauth-protected-resource/mcp"));
    expect(await response.json()).toEqual({
      resource: "https://agents.example.com/mcp",
      authorization_servers: ["https://login.example.com"],
      bearer_methods_supported: ["header"],
    });
  });
});
