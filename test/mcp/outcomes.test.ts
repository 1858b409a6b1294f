import { describe, expect, test } from "vitest";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { callerOf, connected, openDesk, type McpCaller } from "./served-desk.ts";
import { openScripted, type Script } from "./scripted-server.ts";

/** How the calls of a turn ended, and what the model read. */
async function endOf({ agent, stores }: McpCaller): Promise<{ outcomes: readonly string[]; texts: readonly string[] }> {
  await agent.executeTurn("go").result;
  const settled = await entriesOfType(stores, "caller", "tool.settled");
  return { outcomes: settled.map(({ outcome }) => outcome), texts: await toolTextsOf(agent) };
}

const notStarted = ["error", /did not run the tool/] as const;
const unknown = ["outcome_unknown", /not known.*It is not repeated/] as const;

describe("what an error means for a once tool", () => {
  const rows: readonly (readonly [name: string, call: Script["call"], outcome: string, text: RegExp])[] = [
    ["-32601", (_n, _r, { error }) => error(-32_601, "no such method"), ...notStarted],
    ["-32602", (_n, _r, { error }) => error(-32_602, "no such argument"), ...notStarted],
    ["-32042", (_n, _r, { error }) => error(-32_042, "visit the page first"), ...notStarted],
    ["-32603", (_n, _r, { error }) => error(-32_603, "internal"), ...unknown],
    ["an error of its own", (_n, _r, { error }) => error(-32_000, "hm"), ...unknown],
    ["401", () => new Response("who?", { status: 401 }), ...notStarted],
    ["403", () => new Response("no", { status: 403 }), ...notStarted],
    ["404 without a session", () => new Response("gone", { status: 404 }), ...notStarted],
    ["400 without a session", () => new Response("session?", { status: 400 }), ...unknown],
    ["500", () => new Response("oops", { status: 500 }), ...unknown],
    [
      "an answer that is not JSON",
      () => new Response("<html>", { headers: { "content-type": "text/html" } }),
      ...unknown,
    ],
    [
      "a stream that ends without an answer",
      () => new Response(": hello\n\n", { headers: { "content-type": "text/event-stream" } }),
      ...unknown,
    ],
  ];
  test.each(rows)("%s", async (_name, call, outcome, text) => {
    const server = await openScripted(call === undefined ? {} : { call });
    const { tools } = await connected({ name: "far", url: server.url });
    const { outcomes, texts } = await endOf(await callerOf(tools, [{ name: "far__work" }]));
    expect(outcomes).toEqual([outcome]);
    expect(texts[0]).toMatch(text);
    expect(server.calls()).toBe(1);
  });

  test("a result with isError is a known failure", async () => {
    const desk = await openDesk("http modern");
    const { tools } = await connected({ name: "desk", ...desk.options });
    const { outcomes, texts } = await endOf(await callerOf(tools, [{ name: "desk__refuse" }]));
    expect([outcomes, texts]).toEqual([["error"], ["there is no paper"]]);
  });

  test("a server that has stopped listening: not started, and the next call finds its successor", async () => {
    const desk = await openDesk("http modern");
    const { tools } = await connected({ name: "desk", ...desk.options });
    await desk.stop();
    const { outcomes, texts } = await endOf(await callerOf(tools, [{ name: "desk__put" }]));
    expect(outcomes).toEqual(["error"]);
    expect(texts[0]).toMatch(/did not run the tool.*ECONNREFUSED/);
    await desk.restart();
    expect((await endOf(await callerOf(tools, [{ name: "desk__put" }]))).texts).toEqual(["put"]);
  });

  test.each([404, 400])("%d for a session: a new session, and the call once more", async (status) => {
    const server = await openScripted({
      hasSessions: true,
      call: (_number, request, { text }) =>
        request.headers.get("mcp-session-id") === "s1" ? new Response("Session not found", { status }) : text("worked"),
    });
    const { tools } = await connected({ name: "far", url: server.url });
    const { outcomes, texts } = await endOf(await callerOf(tools, [{ name: "far__work" }]));
    expect([outcomes, texts]).toEqual([["success"], ["worked"]]);
    expect([server.calls(), server.sessions()]).toEqual([2, 2]);
  });

  test("a server that forgets every session is asked twice, not for ever", async () => {
    const server = await openScripted({ hasSessions: true, call: () => new Response("gone", { status: 404 }) });
    const { tools } = await connected({ name: "far", url: server.url });
    const { outcomes, texts } = await endOf(await callerOf(tools, [{ name: "far__work" }]));
    expect(outcomes).toEqual(["error"]);
    expect(texts[0]).toMatch(/did not run the tool/);
    expect(server.calls()).toBe(2);
  });
});

test("a call that may be repeated is sent again after a fault", async () => {
  const server = await openScripted({
    call: (number, _request, { error, text }) => (number === 1 ? error(-32_603, "busy") : text("worked")),
  });
  const { tools } = await connected({ name: "far", url: server.url, tools: { work: { effect: "keyed" } } });
  const { outcomes, texts } = await endOf(await callerOf(tools, [{ name: "far__work" }]));
  expect([outcomes, texts, server.calls()]).toEqual([["success"], ["worked"], 2]);
});

describe.each(["stdio legacy", "stdio modern"] as const)("over %s", (way) => {
  test("a crash of the server ends its calls at once as unknown, and the next call starts another process", async () => {
    const desk = await openDesk(way);
    const { tools } = await connected({ name: "desk", ...desk.options });
    const { outcomes } = await endOf(await callerOf(tools, [{ name: "desk__crash" }, { name: "desk__hang" }]));
    expect(outcomes).toEqual(["outcome_unknown", "outcome_unknown"]);
    const { texts } = await endOf(await callerOf(tools, [{ name: "desk__echo", arguments: { text: "again" } }]));
    expect(texts).toEqual(["echo: again"]);
  });

  test("a call that exceeds its time is cancelled at the server, and its outcome is unknown", async () => {
    const desk = await openDesk(way);
    const { tools } = await connected({ name: "desk", ...desk.options, tools: { hang: { timeoutMs: 500 } } });
    const { outcomes } = await endOf(await callerOf(tools, [{ name: "desk__hang" }]));
    expect(outcomes).toEqual(["outcome_unknown"]);
    const { texts } = await endOf(await callerOf(tools, [{ name: "desk__echo", arguments: { text: "still here" } }]));
    expect(texts).toEqual(["echo: still here"]);
    expect(desk.effects()).toEqual(["hang", "cancelled"]);
  });
});

const hello = { name: "desk__echo", arguments: { text: "hello" } };

test.each(["http legacy", "http modern"] as const)("over %s, the server is replaced between two calls", async (way) => {
  const desk = await openDesk(way);
  const { tools } = await connected({ name: "desk", ...desk.options });
  await desk.restart();
  expect((await endOf(await callerOf(tools, [hello]))).texts).toEqual(["echo: hello"]);
});

test("over sse, a call after the loss of the connection opens another", async () => {
  const desk = await openDesk("sse");
  const { tools } = await connected({ name: "desk", ...desk.options });
  await desk.restart();
  // The loss is noticed at once or by this call.
  await endOf(await callerOf(tools, [hello]));
  expect((await endOf(await callerOf(tools, [hello]))).texts).toEqual(["echo: hello"]);
});

test("an abort of the turn ends a call, and the connection stays for others", async () => {
  const desk = await openDesk("http modern");
  const { tools } = await connected({ name: "desk", ...desk.options });
  const { agent } = await callerOf(tools, [{ name: "desk__hang" }]);
  const turn = agent.executeTurn("go");
  turn.subscribe((event) => {
    if (event.type === "tool.started") void turn.abort("enough");
  });
  expect((await turn.result).status).not.toBe("completed");
  const { texts } = await endOf(await callerOf(tools, [{ name: "desk__echo", arguments: { text: "still here" } }]));
  expect(texts).toEqual(["echo: still here"]);
});

test("after close() calls are not started", async () => {
  const desk = await openDesk("http legacy");
  const server = await connected({ name: "desk", ...desk.options });
  await server.close();
  await server.close();
  const { outcomes, texts } = await endOf(await callerOf(server.tools, [{ name: "desk__refuse" }]));
  expect(outcomes).toEqual(["error"]);
  expect(texts[0]).toMatch(/closed by close\(\)/);
});
