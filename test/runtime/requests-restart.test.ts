import { expect, it } from "vitest";
import {
  AgentNotStartedError,
  AlreadyOwnedError,
  defineAgent,
  RequestConflictError,
  type RuntimeOptions,
  TurnInterruptedError,
} from "../../src/index.ts";
import { lastStepOf } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { openTill, payment, requestOf, startAgent, type Till } from "../support/deciding.ts";
import { elapse, entriesOf, entriesOfType, loopTurns, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn, nextEvent } from "../support/turn-probes.ts";

/** The same team in every process; each process counts its payments in its own till. */
const clerkWith = (till: Till): RuntimeOptions["agents"] => [
  defineAgent({
    name: "clerk",
    model: scriptedModel(({ messages }) => (messages.at(-1)?.role === "user" ? calling(payment(5)) : "the end")),
    tools: [till.tool],
  }),
];

const stranger = [defineAgent({ name: "stranger", model: scriptedModel("") })];

describeRuntimes("a restart while a turn waits for a decision", (stage) => {
  const waitingIn = async (till = openTill()) => {
    const staged = await stage().openProcess({ agents: clerkWith(till) });
    const agent = await startAgent(staged.runtime, "clerk", "c");
    const turn = agent.executeTurn("pay");
    return { staged, agent, turn, till, request: await requestOf(turn) };
  };

  it("the request is unchanged and can be decided in the next process", async () => {
    const { staged, request, till } = await waitingIn();
    staged.kill();
    stage().expireLeases();
    const other = openTill();
    const runtime = await stage().open({ agents: clerkWith(other) });
    expect(await runtime.requests()).toEqual([request]);
    const agent = await runtime.find("c");
    await agent.start();
    const turn = agent.turn("c#1");
    expect(await requestOf(turn)).toEqual(request);
    await runtime.decide(request.requestId, { verdict: "approved" });
    expect(await turn.result).toMatchObject({ status: "completed", text: "the end", steps: 2 });
    expect([till.paid, other.paid]).toEqual([[], [{ to: "Ada", amount: 5 }]]);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    expect(await entriesOfType(stage().look(), "c", "request.opened")).toHaveLength(1);
    expect(await entriesOfType(stage().look(), "c", "call.gated")).toHaveLength(1);
  });

  it("several restarts open no second request and do not call needsApproval again", async () => {
    let judged = 0;
    const tillOf = () =>
      openTill({
        needsApproval: () => {
          judged += 1;
          return true;
        },
      });
    const { staged, request } = await waitingIn(tillOf());
    let before = staged;
    for (let restart = 0; restart < 3; restart += 1) {
      before.kill();
      stage().expireLeases();
      before = await stage().openProcess({ agents: clerkWith(tillOf()) });
      await before.runtime.recover();
      await loopTurns(20);
      expect(await before.runtime.requests()).toEqual([request]);
    }
    await before.runtime.decide(request.requestId, { verdict: "approved" });
    const agent = await before.runtime.find("c");
    expect((await agent.turn("c#1").result).status).toBe("completed");
    expect(judged).toBe(1);
  });

  it("a decision without an owner is stored, and the next process that starts the agent processes it", async () => {
    const { staged, request } = await waitingIn();
    staged.kill();
    stage().expireLeases();
    const page = await stage().open({ agents: stranger });
    await page.decide(request.requestId, { verdict: "approved", by: "grace" });
    expect(await stage().look().inbox({ tenant: "default", agentId: "c" })).toMatchObject([{ kind: "decision" }]);
    expect(await entriesOfType(stage().look(), "c", "request.decided")).toEqual([]);
    const other = openTill();
    const runtime = await stage().open({ agents: clerkWith(other) });
    const agent = await runtime.find("c");
    await agent.start();
    expect((await agent.turn("c#1").result).text).toBe("the end");
    expect(other.paid).toHaveLength(1);
    expect(await entriesOfType(stage().look(), "c", "request.decided")).toMatchObject([
      { verdict: "approved", by: "grace" },
    ]);
  });

  it("a process without the definition can decide, with unchecked edits, and leaves the agent to its owner", async () => {
    const { turn, till, agent, request } = await waitingIn();
    const page = await stage().open({ agents: stranger });
    const { requestId } = request;
    await page.decide(requestId, { verdict: "edited", by: "grace", arguments: { to: "Bob", amount: "much" } });
    expect(await elapse(stage().clock, turn.result)).toMatchObject({ status: "completed", text: "the end" });
    // The agent, which has the tool, refused the arguments.
    expect((await toolTextsOf(agent))[0]).toMatch(/amount/);
    expect(till.paid).toEqual([]);
    const settled = await entriesOfType(stage().look(), "c", "tool.settled");
    expect(settled).toMatchObject([{ outcome: "invalid" }]);
  });

  it("another living process decides, and the owner is notified", async () => {
    const { turn, till, request } = await waitingIn();
    const other = openTill();
    const runtime = await stage().open({ agents: clerkWith(other) });
    const handle = await runtime.find("c");
    expect(await requestOf(handle.turn("c#1"))).toEqual(request);
    await runtime.decide(request.requestId, { verdict: "approved" });
    await expect(handle.start()).rejects.toThrow(AlreadyOwnedError);
    expect((await elapse(stage().clock, turn.result)).text).toBe("the end");
    expect([till.paid.length, other.paid.length]).toEqual([1, 0]);
    expect((await elapse(stage().clock, handle.turn("c#1").result)).text).toBe("the end");
  });

  it("settled resolves in another process for requests that are opened by the owner", async () => {
    const gate = createGate();
    const script = async (): Promise<ReturnType<typeof calling>> => {
      await gate.pass();
      return calling(payment(5));
    };
    const till = openTill();
    const clerk = defineAgent({ name: "clerk", model: scriptedModel(script), tools: [till.tool] });
    const owner = await stage().open({ agents: [clerk] });
    const agent = await startAgent(owner, "clerk", "c");
    const turn = agent.executeTurn("pay");
    await gate.reached();
    const page = await stage().open({ agents: stranger });
    const rest = (await page.find("c")).turn("c#1").settled;
    gate.open();
    expect(await elapse(stage().clock, rest)).toMatchObject({ status: "waiting", reason: "request" });
    await turn.abort();
    await turn.result;
  });

  it("shutdown() of the runtime does not wait for people; the turn's handles reject, and the next process continues", async () => {
    const { staged, turn, request } = await waitingIn();
    const [interrupted] = await Promise.allSettled([turn.result, staged.runtime.shutdown()]);
    expect(interrupted).toMatchObject({ status: "rejected", reason: expect.any(TurnInterruptedError) });
    const till = openTill();
    const runtime = await stage().open({ agents: clerkWith(till) });
    await runtime.decide(request.requestId, { verdict: "rejected", reason: "no" });
    const agent = await runtime.find("c");
    await agent.start();
    expect((await agent.turn("c#1").result).text).toBe("the end");
    expect(await toolTextsOf(agent)).toEqual(["Rejected by user: no"]);
    expect(till.paid).toEqual([]);
  });

  it("L6: shutdown() of the agent keeps the request; a decision takes effect at start(), not before", async () => {
    const { staged, agent, turn, till, request } = await waitingIn();
    await agent.shutdown();
    expect(agent.state).toMatchObject({ status: "shutdown", openTurnId: "c#1" });
    expect(await staged.runtime.requests()).toEqual([request]);
    await staged.runtime.decide(request.requestId, { verdict: "approved" });
    await loopTurns(50);
    expect(till.paid).toEqual([]);
    await expect(agent.executeTurn("more").result).rejects.toThrow(AgentNotStartedError);
    await agent.start();
    expect((await turn.result).text).toBe("the end");
    expect(till.paid).toHaveLength(1);
  });

  it("a call of a tool that was removed before the restart gets an error, even after an approval", async () => {
    const { staged, request } = await waitingIn();
    staged.kill();
    stage().expireLeases();
    const clerk = defineAgent({ name: "clerk", model: scriptedModel("the end") });
    const runtime = await stage().open({ agents: [clerk] });
    await runtime.decide(request.requestId, { verdict: "approved" });
    const agent = await runtime.find("c");
    await agent.start();
    const turn = agent.turn("c#1");
    expect((await turn.result).status).toBe("completed");
    expect(await toolTextsOf(agent)).toEqual(['The tool "pay" is not available any more.']);
    const warnings = (await eventsOfTurn(turn)).filter(({ type }) => type === "warning");
    expect(warnings).toMatchObject([{ code: "definition_changed" }]);
  });

  it("killed after the approval but before the run: a once call runs once, in the next process", async () => {
    const { staged, till, request } = await waitingIn();
    staged.freeze();
    const page = await stage().open({ agents: stranger });
    await page.decide(request.requestId, { verdict: "approved" });
    staged.kill();
    stage().expireLeases();
    const other = openTill();
    const runtime = await stage().open({ agents: clerkWith(other) });
    await runtime.recover();
    const agent = await runtime.find("c");
    expect((await agent.turn("c#1").result).text).toBe("the end");
    expect([till.paid.length, other.paid.length]).toEqual([0, 1]);
    await expect(runtime.decide(request.requestId, { verdict: "approved" })).rejects.toThrow(RequestConflictError);
  });

  it("getState(), the overview and agent.state show the wait", async () => {
    const till = openTill();
    const runtime = await stage().open({ agents: clerkWith(till) });
    const { overview } = runtime;
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("pay");
    const { requestId } = await requestOf(turn);
    expect(agent.state).toMatchObject({ status: "busy", openTurnId: "c#1" });
    const waiting = await agent.getState();
    expect(waiting.execution).toMatchObject({ status: "waiting", executionId: "c#1" });
    expect(overview.getSnapshot().context.agents["c"]).toMatchObject({
      activity: "waiting",
      runningTools: {},
      openRequests: { [requestId]: { kind: "approval", name: "pay" } },
    });
    const answered = nextEvent(runtime, ({ type }) => type === "turn.completed");
    await runtime.decide(requestId, { verdict: "approved" });
    await turn.result;
    await answered;
    const ended = await agent.getState();
    expect(ended.execution).toMatchObject({ status: "completed" });
    expect(ended.execution && lastStepOf(ended.execution)).toBeDefined();
    expect(overview.getSnapshot().context.agents["c"]).toMatchObject({
      activity: "idle",
      toolCalls: 1,
      openRequests: {},
    });
    const types = (await entriesOf(stage().look(), "c")).map(({ type }) => type);
    expect(types.filter((type) => type.startsWith("request.") || type === "turn.waiting")).toEqual([
      "request.opened",
      "turn.waiting",
      "request.decided",
    ]);
  });
});
