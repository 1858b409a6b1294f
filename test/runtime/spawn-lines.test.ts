import { expect, it } from "vitest";
import { type AgentDefinition, askUser, type Budget, defineAgent, subagent, type Turn } from "../../src/index.ts";
import { type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";
import { requestOf, requestsOf, startAgent } from "../support/deciding.ts";
import { entriesOfType, loopTurns, toolTexts, toolTextsOf } from "../support/journal-probes.ts";
import { asks } from "../support/leads.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const question = calling({ name: "ask_user", arguments: { question: "Shall I?" } });

/** A child that asks a person and repeats the answer. */
function asker(): AgentDefinition {
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "tool" ? toolTexts(messages).join() : question,
  );
  return defineAgent({ name: "asker", model, tools: [askUser()] });
}

/** A lead that calls its child several times in one round. The policy allows one child at a time. */
function leadOf(
  child: AgentDefinition,
  { calls = 2, budget, first }: { calls?: number; budget?: Budget; first?: ScriptedAnswer } = {},
): AgentDefinition {
  const round = calling(...Array.from({ length: calls }, (_, index) => asks(child.name, `part ${index}`)));
  return defineAgent({
    name: "lead",
    model: scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "the end" : (first ?? round))),
    tools: [
      subagent(child, { policy: { maxConcurrent: 1 } }),
      subagent(child, { name: "aside", mode: "background" }),
      askUser(),
    ],
    budget,
  });
}

/** How a turn ended, or "nothing" if it has not ended within 300 turns of the event loop. */
async function cameTo(turn: Turn): Promise<string> {
  const ended = turn.result.then(({ status, stopReason }) => `${status}: ${stopReason}`);
  return await Promise.race([ended, loopTurns(300).then(() => "nothing")]);
}

async function passHours(stage: Stage, hours: number): Promise<void> {
  for (let quarter = 0; quarter < hours * 4; quarter += 1) {
    stage.clock.advance(15 * 60_000);
    await loopTurns(3);
  }
}

const team = () => leadOf(asker(), { calls: 3 });

describeRuntimes("the queue for maxConcurrent", (stage) => {
  it.each([1, 2, 3])("drains if only the first %i calls are granted: refused calls take no slot", async (granted) => {
    const child = defineAgent({ name: "child", model: scriptedModel("done") });
    const lead = leadOf(child, { calls: 3, budget: { maxToolCalls: granted } });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await startAgent(runtime, "lead", "l");
    expect(await cameTo(agent.executeTurn("go"))).toMatch(/^(completed|stopped)/);
    const texts = await toolTextsOf(agent);
    expect(texts.filter((text) => text === "done")).toHaveLength(granted);
    expect(texts.filter((text) => /No subagent was started/.test(text))).toHaveLength(3 - granted);
    // Another turn has its own limit of calls.
    expect(await cameTo(agent.executeTurn("again", { budget: { maxToolCalls: 9 } }))).toMatch(/^completed/);
  });

  it("lets the turn rest while the running child waits for a person, and advances with each decision", async () => {
    const runtime = await stage().open({ agents: [leadOf(asker(), { calls: 3 })] });
    const agent = await startAgent(runtime, "lead", "l");
    const turn = agent.executeTurn("go");
    for (const answer of ["one", "two", "three"]) {
      const { requestId, agentName } = await requestOf(turn);
      expect(agentName).toBe("asker");
      await runtime.decide(requestId, { verdict: "answered", result: answer });
    }
    expect(await turn.result).toMatchObject({ status: "completed", text: "the end" });
    expect((await toolTextsOf(agent)).toSorted()).toEqual(["one", "three", "two"]);
    for (const { activeCount } of await runtime.accounts("l")) expect(activeCount).toBe(0);
  });

  it("counts no working time while the running child waits for a person", async () => {
    const runtime = await stage().open({ agents: [leadOf(asker(), { budget: { maxSeconds: 60 } })] });
    const agent = await startAgent(runtime, "lead", "l");
    const turn = agent.executeTurn("go");
    for (const answer of ["one", "two"]) {
      const { requestId } = await requestOf(turn);
      await passHours(stage(), 1);
      await runtime.decide(requestId, { verdict: "answered", result: answer });
    }
    expect(await turn.result).toMatchObject({ status: "completed" });
  });

  it("does not let the turn rest while the running child works", async () => {
    const gate = createGate<string>();
    const child = defineAgent({ name: "child", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
    const runtime = await stage().open({ agents: [leadOf(child, { budget: { maxSeconds: 60 } })] });
    const agent = await startAgent(runtime, "lead", "l");
    const turn = agent.executeTurn("go");
    await gate.reached();
    for (let second = 0; second < 70; second += 1) {
      stage().clock.advance(1_000);
      await loopTurns(3);
    }
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "time_limit" });
  });

  it("advances if the running child was aborted or another process recovers it", async () => {
    const first = await stage().openProcess({ agents: [team()] });
    const lead = await startAgent(first.runtime, "lead", "l");
    const begun = lead.executeTurn("go");
    const { agentId } = await requestOf(begun);
    await (await first.runtime.find(agentId)).abort("not needed");
    await requestOf(lead.turn("l#1"));
    first.kill();
    stage().expireLeases();
    const { runtime } = await stage().openProcess({ agents: [team()] });
    const agent = await runtime.find("l");
    await agent.start();
    const turn = agent.turn("l#1");
    for (const answer of ["two", "three"])
      await runtime.decide((await requestOf(turn)).requestId, { verdict: "answered", result: answer });
    expect(await turn.result).toMatchObject({ status: "completed" });
    expect(await entriesOfType(stage().look(), "l", "child.spawned")).toHaveLength(3);
  });

  it("stops during a pause and advances after it", async () => {
    const gate = createGate<string>();
    const child = defineAgent({ name: "child", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
    const runtime = await stage().open({ agents: [leadOf(child, { calls: 3 })] });
    const agent = await startAgent(runtime, "lead", "l");
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.pause();
    expect(agent.state.status).toBe("paused");
    gate.open("done");
    await loopTurns(30);
    expect(await entriesOfType(stage().look(), "l", "tool.settled")).toHaveLength(1);
    await agent.resume();
    expect(await cameTo(turn)).toMatch(/^completed/);
  });

  it("ignores background children", async () => {
    const gate = createGate<string>();
    const model = scriptedModel(({ messages }, { signal }) =>
      JSON.stringify(messages).includes("aside") ? gate.pass(signal) : "done",
    );
    const child = defineAgent({ name: "child", model });
    const first = calling(asks("aside", "aside"), asks("child", "a"), asks("child", "b"));
    const runtime = await stage().open({ agents: [leadOf(child, { first })] });
    const agent = await startAgent(runtime, "lead", "l");
    expect(await cameTo(agent.executeTurn("go"))).toMatch(/^completed/);
    gate.open("done");
  });

  it("does not hide the lead's own question", async () => {
    const first = calling(asks("asker", "a"), asks("asker", "b"), {
      name: "ask_user",
      arguments: { question: "And?" },
    });
    const runtime = await stage().open({ agents: [leadOf(asker(), { first })] });
    const agent = await startAgent(runtime, "lead", "l");
    const turn = agent.executeTurn("go");
    expect((await requestsOf(agent.turn(await turn.id))).map(({ agentName }) => agentName).toSorted()).toEqual([
      "asker",
      "lead",
    ]);
    expect((await agent.getState()).execution?.status).toBe("waiting");
    let left = 0;
    for (let rest = await turn.settled; rest.status === "waiting"; rest = await turn.settled) {
      const [request] = rest.reason === "request" ? rest.requests : [];
      if (request) await runtime.decide(request.requestId, { verdict: "answered", result: `answer ${left}` });
      left += 1;
      if (left > 5) break;
    }
    expect(left).toBe(3);
  });
});
