import type { Agent } from "troupe";
import type { McpOptions } from "troupe/mcp";
import { describe, expect, test } from "vitest";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { canary, hostileInputs } from "./asking-server.ts";
import { openScripted } from "./scripted-server.ts";
import { callerOf, connected, openDesk, type Way, ways } from "./served-desk.ts";

type Answer = string | number | object | { readonly reject: string };

const opened = async (way: Way, tool: string, options: Partial<McpOptions> = {}) => {
  const inn = await openDesk(way, "inn");
  const { tools } = await connected({ name: "inn", elicitation: true, ...inn.options, ...options });
  const caller = await callerOf(tools, [{ name: `inn__${tool}` }]);
  return { ...caller, inn, tools };
};

/** Answers the requests of a turn, one after the other, until it ends; returns the prompts. */
async function answering(agent: Agent, answers: readonly Answer[]): Promise<string[]> {
  const turn = agent.executeTurn("go");
  const prompts: string[] = [];
  for (const answer of answers) {
    const rest = await turn.settled;
    if (rest.status !== "waiting" || rest.reason !== "request") throw new Error(`no request, but ${rest.status}`);
    const [request] = rest.requests;
    if (request === undefined) throw new Error("no request");
    prompts.push(request.prompt);
    const decide =
      typeof answer === "object" && "reject" in answer
        ? ({ verdict: "rejected", reason: answer.reject } as const)
        : ({ verdict: "answered", result: answer as string } as const);
    await agent.decide(request.requestId, decide);
  }
  expect((await turn.result).status).toBe("completed");
  return prompts;
}

test.each(ways)("questions of a server over %s are answered one after the other, and the call goes on", async (way) => {
  const { agent, inn } = await opened(way, "book");
  const prompts = await answering(agent, ["Sea", 3]);
  expect(prompts[0]).toMatch(/The MCP server "inn" asks: Which room\?\n- room \(one of r1 \(Sea\), r2 \(Yard\)\)/);
  expect(prompts[1]).toMatch(/asks: How long\?\n- nights \(whole number\)/);
  expect((await toolTextsOf(agent))[0]).toMatch(/^booked {"room":"r1"} .*"nights":3/);
  expect(inn.effects()).toEqual(['booked {"room":"r1"}']);
});

describe.each(["http legacy", "http modern"] as const)("questions of a server over %s", (way) => {
  test("are asked again after a wrong answer", async () => {
    const { agent } = await opened(way, "stay");
    const prompts = await answering(agent, ["soon", "99", { nights: 2, more: true }, { nights: 2 }]);
    expect(prompts[1]).toMatch(/^The last answer is not valid: nights: .*\nThe MCP server "inn" asks/s);
    expect(prompts[2]).toMatch(/not valid: nights/);
    expect(prompts[3]).toMatch(/not valid: more/);
    expect((await toolTextsOf(agent))[0]).toMatch(/^stayed .*"accept".*"nights":2/);
  });

  test("may be declined, and the server reads no reason", async () => {
    const { agent, inn } = await opened(way, "book");
    await answering(
      agent,
      way.includes("modern") ? [{ reject: "too dear" }, { reject: "no" }] : [{ reject: "too dear" }],
    );
    const [text] = await toolTextsOf(agent);
    expect(text).toMatch(/^not booked: .*decline/);
    expect(text).not.toContain("dear");
    expect(inn.effects()).toEqual([]);
  });

  test("ten wrong answers cancel the question", async () => {
    const { agent } = await opened(way, "stay");
    await answering(
      agent,
      Array.from({ length: 10 }, () => "never"),
    );
    expect((await toolTextsOf(agent))[0]).toMatch(/^stayed .*"cancel"/);
  });

  test("a server that asks endlessly is stopped", async () => {
    const { agent } = await opened(way, "endless");
    await answering(
      agent,
      Array.from({ length: 10 }, () => 1),
    );
    expect((await toolTextsOf(agent))[0]).toMatch(
      way.includes("modern") ? /asked for input more than 10 times/ : /asked more than 10 times/,
    );
  });

  test("roots are a fixed list", async () => {
    const { agent } = await opened(way, "folders", {
      roots: ["/srv/work", { path: "file:///srv/more", name: "more" }],
    });
    await answering(agent, []);
    const [text] = await toolTextsOf(agent);
    expect(text).toContain('{"uri":"file:///srv/work"},{"uri":"file:///srv/more","name":"more"}');
  });
});

describe("the newer era", () => {
  const way = "http modern";

  test("an address is shown as a request for authorisation, and the call goes on when it was visited", async () => {
    const { agent, inn } = await opened(way, "pay", { elicitation: undefined });
    const turn = agent.executeTurn("go", { auth: { actorId: "ada" } });
    const rest = await turn.settled;
    if (rest.status !== "waiting" || rest.reason !== "request") throw new Error("no request");
    expect(rest.requests[0]).toMatchObject({ kind: "auth", arguments: { url: "https://pay.example/1" } });
    expect(rest.requests[0]?.prompt).toMatch(/asks to open https:\/\/pay\.example\/1 \(on pay\.example\)/);
    await agent.resume({ auth: { actorId: "ada" } });
    await turn.result;
    expect((await toolTextsOf(agent))[0]).toBe('paid {"action":"accept"}');
    expect(inn.effects()).toEqual(["paid"]);
  });

  test.each(Object.keys(hostileInputs).filter((name) => name !== "pattern"))(
    "a hostile request is refused: %s",
    async (name) => {
      const { agent, stores } = await opened(way, name);
      await answering(agent, []);
      expect((await toolTextsOf(agent))[0]).toMatch(/The MCP server "inn" asked .*The call was not continued\./);
      const [settled] = await entriesOfType(stores, "caller", "tool.settled");
      expect(settled?.outcome).toBe("error");
    },
  );

  test("characters that hide what a question says are left out", async () => {
    const { agent } = await opened(way, "veiled");
    const turn = agent.executeTurn("go");
    const rest = await turn.settled;
    if (rest.status !== "waiting" || rest.reason !== "request") throw new Error("no request");
    const [request] = rest.requests;
    expect(request?.prompt).toContain(
      'The MCP server "inn" asks: Pay 001 francs?[2J\n- ok (true or false, optional): Yes or no',
    );
    for (const hidden of ["\\u001b", "\u200B", "\u202E", "\u2066", "\u2069"])
      expect(JSON.stringify(request)).not.toContain(hidden);
    await agent.decide(request?.requestId ?? "", { verdict: "answered", result: "yes" });
    await turn.result;
    expect((await toolTextsOf(agent))[0]).toContain('"ok":true');
  });

  test("a secret in a question is in no request and no note", async () => {
    const { agent, stores } = await opened(way, "telltale", { headers: { "x-api-key": canary } });
    const turn = agent.executeTurn("go");
    const rest = await turn.settled;
    if (rest.status !== "waiting" || rest.reason !== "request") throw new Error("no request");
    const stored = [
      ...(await entriesOfType(stores, "caller", "request.opened")),
      ...(await entriesOfType(stores, "caller", "tool.noted")),
    ];
    expect(stored.length).toBeGreaterThan(1);
    expect(JSON.stringify([rest.requests, stored])).not.toContain(canary);
    expect(rest.requests[0]?.prompt).toContain("[secret:x-api-key]");
  });

  test("a pattern of the server is not run", async () => {
    const { agent } = await opened(way, "pattern");
    await answering(agent, ["a".repeat(60)]);
    expect((await toolTextsOf(agent))[0]).toContain('"action":"accept"');
  });

  test("a server that wants to be called again is, but not for ever", async () => {
    const { agent } = await opened(way, "patient", { roots: ["/srv"] });
    await answering(agent, []);
    expect(await toolTextsOf(agent)).toEqual(["patient"]);
  });

  test("two people who answer at once: one decision counts", async () => {
    const { agent, inn } = await opened(way, "stay");
    const turn = agent.executeTurn("go");
    const rest = await turn.settled;
    if (rest.status !== "waiting" || rest.reason !== "request") throw new Error("no request");
    const [request] = rest.requests;
    const decisions = await Promise.allSettled(
      ["1", "2", "3"].map((result) => agent.decide(request?.requestId ?? "", { verdict: "answered", result })),
    );
    expect(decisions.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected", "rejected"]);
    await turn.result;
    expect(inn.effects()).toEqual(["stayed"]);
  });

  test("elicitation: false declares nothing", async () => {
    const { agent } = await opened(way, "stay", { elicitation: false });
    await answering(agent, []);
    expect((await toolTextsOf(agent))[0]).toMatch(/elicitation/);
  });
});

describe("the older era", () => {
  const way = "http legacy";

  test("without elicitation: true nothing is declared", async () => {
    const { agent } = await opened(way, "stay", { elicitation: undefined });
    await answering(agent, []);
    expect((await toolTextsOf(agent))[0]).toMatch(/does not support .*elicitation/);
  });

  test("a call that is refused until an address was visited is sent again after the visit", async () => {
    const elicitations = [{ mode: "url", message: "Log in.", url: "https://login.example/", elicitationId: "1" }];
    const server = await openScripted({
      call: (number, _request, { error, text }) =>
        number === 1 ? error(-32_042, "log in", { elicitations }) : text("in"),
    });
    const { tools } = await connected({ name: "far", url: server.url, elicitation: true });
    const { agent } = await callerOf(tools, [{ name: "far__work" }]);
    const turn = agent.executeTurn("go", { auth: { actorId: "ada" } });
    const rest = await turn.settled;
    if (rest.status !== "waiting" || rest.reason !== "request") throw new Error("no request");
    expect(rest.requests[0]).toMatchObject({ kind: "auth", arguments: { url: "https://login.example/" } });
    await agent.resume({ auth: { actorId: "ada" } });
    await turn.result;
    expect(await toolTextsOf(agent)).toEqual(["in"]);
    expect(server.calls()).toBe(2);
  });

  test("a question after the end of the call is refused", async () => {
    const { agent, inn } = await opened(way, "late");
    await answering(agent, []);
    await expect.poll(() => inn.effects()).toEqual([expect.stringMatching(/^late .*no call of a tool is open/)]);
  });

  test("an abort of the turn ends a call that waits for a person", async () => {
    const { agent, stores } = await opened(way, "stay");
    const turn = agent.executeTurn("go");
    await turn.settled;
    await turn.abort("enough");
    expect((await turn.result).status).not.toBe("completed");
    expect(await entriesOfType(stores, "caller", "request.opened")).toHaveLength(1);
  });
});
