import { expect, it } from "vitest";
import { type AgentRequest, type Budget, defineAgent, RequestConflictError, type Runtime } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const usage = { inputTokens: 20, outputTokens: 180 };
const clerk = defineAgent({
  name: "clerk",
  model: scriptedModel(() => ({ text: "Done.", usage })),
  maxOutputTokens: 400,
});

/** A turn of a new agent that waits for more budget, and its request. */
async function asking(runtime: Runtime, budget: Budget) {
  const agent = await runtime.agent("clerk", { ownerId: "ada" });
  await agent.start();
  const turn = agent.executeTurn("Sort the post.", { budget });
  expect((await turn.settled).status).toBe("waiting");
  const [request, ...others] = await agent.requests();
  expect(others).toEqual([]);
  return { agent, turn, request: request as AgentRequest };
}

describeRuntimes("askAtLimit", (stage) => {
  it("asks a person at a limit, and continues with the amount that one of two people adds", async () => {
    const runtime = await stage().open({ agents: [clerk] });
    const decided: unknown[] = [];
    runtime.subscribe((event) => {
      if (event.type === "request.opened" || event.type === "request.decided") decided.push(event);
    });
    const { agent, turn, request } = await asking(runtime, { maxTokens: 100, askAtLimit: true });
    expect(request).toMatchObject({
      kind: "budget",
      arguments: { accountId: `turn:${await turn.id}`, limit: "maxTokens" },
    });
    expect(request.prompt).toMatch(/^clerk, this turn: 0 of 100 tokens, .* Continue with \d+ tokens more\?$/);
    const { requestId } = request;
    for (const add of [0.5, -1, 0, "5", null]) {
      await expect(agent.decide(requestId, { verdict: "edited", arguments: { add } as never })).rejects.toThrow(/add/);
    }
    const other = { add: 5_000, accountId: "turn:other#1" };
    await expect(agent.decide(requestId, { verdict: "edited", arguments: other })).rejects.toThrow("it stays");
    const both = await Promise.allSettled([
      agent.decide(requestId, { verdict: "edited", arguments: { add: 5_000 }, by: "mo" }),
      agent.decide(requestId, { verdict: "approved", by: "jo" }),
    ]);
    expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(both.find(({ status }) => status === "rejected")).toMatchObject({
      reason: expect.any(RequestConflictError),
    });
    expect((await turn.result).status).toBe("completed");
    expect(decided).toMatchObject([
      { type: "request.opened", requestId, kind: "budget" },
      { type: "request.decided", requestId, kind: "budget" },
    ]);
  });

  it("ends the turn at its limit when the person declines", async () => {
    const runtime = await stage().open({ agents: [clerk] });
    const { agent, turn, request } = await asking(runtime, { maxTokens: 100, askAtLimit: true });
    await agent.decide(request.requestId, { verdict: "rejected", by: "mo" });
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "token_limit", stop: { max: 100 } });
  });

  it("adds to an owner's account until it renews, which counts for all agents of the owner", async () => {
    const accounts = { owner: { perDay: { maxTokens: 100, askAtLimit: true } } };
    const runtime = await stage().open({ agents: [clerk], accounts });
    const { agent, turn, request } = await asking(runtime, {});
    expect(request).toMatchObject({ name: "owner ada, per day", arguments: { accountId: "owner:perDay:ada" } });
    await agent.decide(request.requestId, { verdict: "edited", arguments: { add: 900 }, by: "mo" });
    expect((await turn.result).status).toBe("completed");
    expect(await runtime.accountsAbove({ ownerId: "ada" })).toMatchObject([
      { limits: { maxTokens: 1_000 }, used: { tokens: 200 }, reserved: { tokens: 0 } },
    ]);
    const next = await runtime.agent("clerk", { ownerId: "ada" });
    await next.start();
    expect((await next.executeTurn("Again.").result).status).toBe("completed");
  });

  it("asks for more of the tenant's budget without its figures, and the amount lets all owners go on", async () => {
    const accounts = { tenant: { total: { maxTokens: 377, askAtLimit: true } } };
    const runtime = await stage().open({ agents: [clerk], accounts });
    const first = await runtime.agent("clerk", { ownerId: "bob" });
    await first.start();
    expect((await first.executeTurn("Sort the post.").result).status).toBe("completed");
    const { agent, turn, request } = await asking(runtime, {});
    expect(request).toMatchObject({
      name: "the tenant, in total",
      arguments: { accountId: "tenant:total", limit: "maxTokens" },
    });
    // Neither the tenant's limit, nor what others have spent.
    expect(JSON.stringify(request)).not.toMatch(/377|177/);
    expect(request.prompt).toMatch(/^the tenant, in total: its limit of tokens. Continue with \d+ tokens more\?$/);
    await agent.decide(request.requestId, { verdict: "edited", arguments: { add: 10_000 }, by: "mo" });
    expect((await turn.result).status).toBe("completed");
    expect((await first.executeTurn("Again.").result).status).toBe("completed");
    expect(await runtime.accountsAbove()).toMatchObject([{ limits: { maxTokens: 10_377 }, reserved: { tokens: 0 } }]);
  });

  it("asks mayDecide with the amount", async () => {
    const attempts: unknown[] = [];
    const runtime = await stage().open({
      agents: [clerk],
      mayDecide: ({ by, arguments: added }) => {
        attempts.push([by, added]);
        return by === "boss";
      },
    });
    const { agent, turn, request } = await asking(runtime, { maxTokens: 100, askAtLimit: true });
    expect(request.isGuarded).toBe(true);
    const more = { verdict: "edited", arguments: { add: 5_000 } } as const;
    await expect(agent.decide(request.requestId, { ...more, by: "mo" })).rejects.toThrow("may not decide");
    await agent.decide(request.requestId, { ...more, by: "boss" });
    expect((await turn.result).status).toBe("completed");
    expect(attempts).toEqual([
      ["mo", { add: 5_000 }],
      ["boss", { add: 5_000 }],
    ]);
  });
});
