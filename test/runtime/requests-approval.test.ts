import { expect, it } from "vitest";
import { type AgentOptions, type Auth, defineAgent, InvalidInputError, RequestConflictError } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { openTill, payment, requestOf, startAgent } from "../support/deciding.ts";
import { entriesOfType, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, eventsOfTurn } from "../support/turn-probes.ts";

const payThenEnd: ModelScript = [calling(payment(250)), "the end"];

describeRuntimes("approval", (stage) => {
  const open = async (options: Partial<AgentOptions>, script: ModelScript = payThenEnd) => {
    const model = scriptedModel(script);
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", ...options, model })] });
    const agent = await startAgent(runtime, "clerk", "c");
    return { runtime, agent, model };
  };

  it("the request shows the exact arguments, and the call runs once they are approved", async () => {
    const till = openTill({ describeCall: ({ to, amount }) => `Pay ${amount} to ${to}?` });
    const { runtime, agent, model } = await open({ tools: [till.tool] });
    const turn = agent.executeTurn("pay", { auth: { actorId: "ada" } });
    const events = eventsOfTurn(turn);
    const request = await requestOf(turn);
    expect(request).toMatchObject({
      requestId: "c#1:1:0:1",
      agentId: "c",
      agentName: "clerk",
      rootAgentId: "c",
      turnId: "c#1",
      step: 1,
      callId: "c#1:1:0",
      kind: "approval",
      name: "pay",
      arguments: { to: "Ada", amount: 250 },
      argumentsHash: expect.stringMatching(/^[0-9a-f]{8,}$/),
      prompt: "Pay 250 to Ada?",
      actorId: "ada",
      openedAt: stage().clock.now(),
      expiresAt: null,
      status: "open",
      decision: null,
    });
    expect(await agent.requests()).toEqual([request]);
    expect(await runtime.requests()).toEqual([request]);
    expect(till.paid).toEqual([]);
    expect(model.calls).toHaveLength(1);

    stage().clock.advance(1_000);
    const decided = await runtime.decide(request.requestId, {
      verdict: "approved",
      by: "grace",
      argumentsHash: request.argumentsHash,
    });
    expect(decided).toMatchObject({
      status: "decided",
      decision: { verdict: "approved", by: "grace", reason: null },
      decidedAt: stage().clock.now(),
    });
    expect(await turn.result).toMatchObject({ status: "completed", text: "the end", toolCalls: 1, errors: [] });
    expect(till.paid).toEqual([{ to: "Ada", amount: 250 }]);
    expect(await toolTextsOf(agent)).toEqual(["paid 250 to Ada"]);
    expect(await runtime.requests()).toEqual([]);
    expect(await runtime.requests({ status: "decided" })).toEqual([decided]);
    const { requestId, callId, kind, name, prompt } = request;
    const told = (await events).filter(({ type }) => type.startsWith("request.") || type === "turn.waiting");
    expect(told).toMatchObject([
      { type: "request.opened", turnId: "c#1", step: 1, requestId, callId, kind, name, prompt, expiresAt: null },
      { type: "turn.waiting", reason: "request" },
      { type: "request.decided", requestId, callId, verdict: "approved", by: "grace", reason: null },
    ]);
  });

  it("a function of the arguments decides which calls wait, and is called once per call", async () => {
    const judged: number[] = [];
    const till = openTill({
      needsApproval: ({ amount }) => {
        judged.push(amount);
        return amount > 100;
      },
    });
    const script: ModelScript = [calling(payment(20), payment(300)), "the end"];
    const { runtime, agent } = await open({ tools: [till.tool] }, script);
    const turn = agent.executeTurn("pay");
    const request = await requestOf(turn);
    expect(request).toMatchObject({ callId: "c#1:1:1", arguments: { to: "Ada", amount: 300 } });
    // Without a prompt of the tool, the request shows the call.
    expect(request.prompt).toBe('pay({"to":"Ada","amount":300})');
    expect(till.paid).toEqual([{ to: "Ada", amount: 20 }]);
    await runtime.decide(request.requestId, { verdict: "approved" });
    await turn.result;
    expect(till.paid).toEqual([
      { to: "Ada", amount: 20 },
      { to: "Ada", amount: 300 },
    ]);
    expect(judged).toEqual([20, 300]);
  });

  it("H10: a rejected call does not run, and the model gets the reason", async () => {
    const till = openTill();
    const failures: string[] = [];
    const script: ModelScript = [calling(payment(1), payment(2)), "the end"];
    const hooks: AgentOptions["hooks"] = { onError: (draft) => void failures.push(draft.result.outcome) };
    const { runtime, agent, model } = await open({ tools: [till.tool], hooks }, script);
    const turn = agent.executeTurn("pay");
    await turn.settled;
    await runtime.decide("c#1:1:0:1", { verdict: "rejected", by: "grace", reason: "the budget is spent" });
    await runtime.decide("c#1:1:1:1", { verdict: "rejected" });
    expect(await turn.result).toMatchObject({ status: "completed", text: "the end" });
    expect(await toolTextsOf(agent)).toEqual(["Rejected by user: the budget is spent", "Rejected by user."]);
    expect(model.calls[1]?.messages.filter(({ role }) => role === "tool")).toHaveLength(2);
    expect(till.paid).toEqual([]);
    // A rejection does not count as a failure of the tool.
    expect(failures).toEqual([]);
    const settled = await entriesOfType(stage().look(), "c", "tool.settled");
    expect(settled.map(({ outcome }) => outcome)).toEqual(["denied", "denied"]);
    expect(await entriesOfType(stage().look(), "c", "tool.started")).toEqual([]);
  });

  it("an edited call runs with the person's arguments and without another request", async () => {
    const till = openTill({ needsApproval: ({ amount }) => amount > 0 });
    const { runtime, agent } = await open({ tools: [till.tool] });
    const turn = agent.executeTurn("pay");
    const { requestId, argumentsHash } = await requestOf(turn);
    const edited = { to: "Bob", amount: 9 };
    const { decision } = await runtime.decide(requestId, { verdict: "edited", by: "grace", arguments: edited });
    expect(decision).toEqual({ verdict: "edited", by: "grace", reason: null, arguments: edited });
    expect((await turn.result).status).toBe("completed");
    expect(till.paid).toEqual([edited]);
    expect(await toolTextsOf(agent)).toEqual(["paid 9 to Bob"]);
    const gates = await entriesOfType(stage().look(), "c", "call.gated");
    expect(gates.map((gate) => gate.arguments)).toEqual([{ to: "Ada", amount: 250 }, edited]);
    expect(new Set([argumentsHash, ...gates.map((gate) => gate.argumentsHash)]).size).toBe(2);
    expect(await runtime.requests({ status: "decided" })).toHaveLength(1);
  });

  it("later changes to the object of edited arguments have no effect", async () => {
    const till = openTill();
    const { runtime, agent } = await open({ tools: [till.tool] });
    const turn = agent.executeTurn("pay");
    const { requestId } = await requestOf(turn);
    const edited = { to: "Bob", amount: 9 };
    const deciding = runtime.decide(requestId, { verdict: "edited", arguments: edited });
    edited.amount = 1_000_000;
    await deciding;
    edited.to = "Mallory";
    await turn.result;
    expect(till.paid).toEqual([{ to: "Bob", amount: 9 }]);
  });

  it("a decision without a verdict is refused, and the error lists the allowed verdicts", async () => {
    const till = openTill();
    const { runtime, agent } = await open({ tools: [till.tool] });
    const turn = agent.executeTurn("pay");
    const { requestId } = await requestOf(turn);
    const deciding = runtime.decide(requestId, {} as never);
    await expect(deciding).rejects.toThrow(InvalidInputError);
    await expect(deciding).rejects.toThrow(/needs a verdict, one of: approved, edited, rejected/);
    await runtime.decide(requestId, { verdict: "rejected" });
    await turn.result;
  });

  it.each<[string, unknown, RegExp]>([
    ["that do not fit the schema", { to: "Bob", amount: "much" }, /c#1:1:0:1.*amount/s],
    ["of a forbidden name", JSON.parse('{ "to": "Bob", "amount": 1, "__proto__": { "admin": true } }'), /__proto__/],
    ["that are missing", undefined, /verdict "edited" requires/],
    ["without a JSON form", { to: "Bob", amount: 1n }, /JSON/],
  ])("edited arguments %s are refused before anything is decided", async (_what, args, told) => {
    const till = openTill();
    const { runtime, agent } = await open({ tools: [till.tool] });
    const turn = agent.executeTurn("pay");
    const request = await requestOf(turn);
    const deciding = runtime.decide(request.requestId, { verdict: "edited", arguments: args as never });
    await expect(deciding).rejects.toThrow(InvalidInputError);
    await expect(deciding).rejects.toThrow(told);
    expect(await agent.requests()).toEqual([request]);
    await runtime.decide(request.requestId, { verdict: "rejected" });
    await turn.result;
    expect(till.paid).toEqual([]);
  });

  it("S15: a decision with the hash of other arguments is refused", async () => {
    const till = openTill();
    const { runtime, agent } = await open({ tools: [till.tool] }, [
      calling(payment(1)),
      calling(payment(1_000)),
      "the end",
    ]);
    const turn = agent.executeTurn("pay");
    const small = await requestOf(turn);
    await runtime.decide(small.requestId, { verdict: "approved", argumentsHash: small.argumentsHash });
    const large = await requestOf(agent.turn("c#1"));
    expect(large).toMatchObject({ requestId: "c#1:2:0:1", arguments: { amount: 1_000 } });
    const { argumentsHash } = small;
    for (const verdict of ["approved", "rejected"] as const) {
      const deciding = runtime.decide(large.requestId, { verdict, argumentsHash });
      await expect(deciding).rejects.toThrow(RequestConflictError);
      await expect(deciding).rejects.toThrow(/other arguments than those that were shown/);
    }
    expect(await agent.requests()).toEqual([large]);
    expect(till.paid).toEqual([{ to: "Ada", amount: 1 }]);
    await runtime.decide(large.requestId, { verdict: "rejected" });
    await turn.result;
    expect(till.paid).toHaveLength(1);
  });

  it("each call has its own request, even with equal arguments", async () => {
    const till = openTill();
    const { runtime, agent } = await open({ tools: [till.tool] }, [calling(payment(5), payment(5)), "the end"]);
    const turn = agent.executeTurn("pay");
    await turn.settled;
    await runtime.decide("c#1:1:1:1", { verdict: "approved" });
    expect(await requestOf(agent.turn("c#1"))).toMatchObject({ callId: "c#1:1:0" });
    await runtime.decide("c#1:1:0:1", { verdict: "rejected" });
    await turn.result;
    expect(till.paid).toEqual([{ to: "Ada", amount: 5 }]);
    expect(await toolTextsOf(agent)).toEqual(expect.arrayContaining(["paid 5 to Ada", "Rejected by user."]));
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it("the tool runs for the actor that started the turn, never for the one that approved the call", async () => {
    const seen: (Auth | string | null | undefined)[] = [];
    const till = openTill({ onPay: (run) => seen.push(run.actorId, run.auth) });
    const { runtime, agent } = await open({ tools: [till.tool] });
    const auth = { actorId: "ada", credentials: { token: "of-ada" } };
    const turn = agent.executeTurn("pay", { auth });
    await runtime.decide((await requestOf(turn)).requestId, { verdict: "approved", by: "grace" });
    await turn.result;
    expect(seen).toMatchObject(["ada", auth]);
  });

  it("the request shows the arguments after the hooks, and no hook overrules the person", async () => {
    const till = openTill();
    let hooked = 0;
    const hooks: AgentOptions["hooks"] = {
      beforeEachTool(draft) {
        hooked += 1;
        draft.changeArguments({ to: "Ada", amount: 7 });
      },
    };
    const { runtime, agent } = await open({ tools: [till.tool], hooks });
    const turn = agent.executeTurn("pay");
    const request = await requestOf(turn);
    expect(request.arguments).toEqual({ to: "Ada", amount: 7 });
    await runtime.decide(request.requestId, { verdict: "edited", arguments: { to: "Ada", amount: 8 } });
    await turn.result;
    expect(till.paid).toEqual([{ to: "Ada", amount: 8 }]);
    expect(hooked).toBe(1);
  });

  it("if needsApproval throws, the call does not run and no request is opened", async () => {
    const till = openTill({
      needsApproval: () => {
        throw new Error("no rule for that");
      },
    });
    const { runtime, agent } = await open({ tools: [till.tool] });
    expect((await agent.executeTurn("pay").result).status).toBe("completed");
    expect(await toolTextsOf(agent)).toEqual(["Error: no rule for that"]);
    expect(till.paid).toEqual([]);
    expect(await runtime.requests({ status: "decided" })).toEqual([]);
  });
});
