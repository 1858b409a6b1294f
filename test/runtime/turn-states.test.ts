import { expect, it } from "vitest";
import {
  type Agent,
  askUser,
  defineAgent,
  NotFoundError,
  formatTurnCursor,
  type Runtime,
  subagent,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

async function firstOf(events: AsyncIterable<unknown>): Promise<unknown> {
  for await (const event of events) return event;
  return undefined;
}

const asking = () =>
  defineAgent({
    name: "desk",
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? "thanks" : calling({ name: "ask_user", arguments: { question: "?" } }),
    ),
    tools: [askUser()],
  });
const started = async (runtime: Runtime, agentId = "d", ownerId?: string): Promise<Agent> => {
  const agent = await runtime.agent("desk", { agentId, ownerId });
  await agent.start();
  return agent;
};

describeRuntimes("states of turns", (stage) => {
  it("current() of a waiting turn returns the wait, in any process, and later its result", async () => {
    const runtime = await stage().open({ agents: [asking()] });
    const agent = await started(runtime);
    const turn = agent.executeTurn("go");
    await turn.settled;
    const waiting = { status: "waiting", reason: "request", turnId: "d#1", requests: [{ name: "ask_user" }] };
    expect(await turn.current()).toMatchObject(waiting);
    const onlooker = await stage().open({ agents: [asking()] });
    const there = (await onlooker.find("d")).turn("d#1");
    expect(await there.current()).toMatchObject(waiting);
    expect(await there.isReplayed).toBe(true);
    expect(await runtime.turns()).toMatchObject([{ status: "open" }]);
    const [request] = await agent.requests();
    await runtime.decide(request?.requestId ?? "", { verdict: "answered", result: "yes" });
    const result = await turn.result;
    expect(await turn.current()).toEqual(result);
    expect(await there.current()).toMatchObject({ status: "completed", text: "thanks" });
  });

  it("a paused turn is waiting, and a resumed one is running", async () => {
    const gate = createGate<string>();
    const model = scriptedModel((_request, { signal }) => gate.pass(signal));
    const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model })] });
    const agent = await started(runtime);
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.pause({ now: true });
    expect(await turn.current()).toEqual({ status: "waiting", turnId: "d#1", reason: "paused" });
    await agent.resume();
    await gate.reached();
    expect(await turn.current()).toEqual({ status: "running", turnId: "d#1", step: 1 });
    gate.open("done");
    expect(await turn.result).toMatchObject({ text: "done" });
  });

  it("a turn or a tree that was never opened is not found, even if the agent starts turns by itself", async () => {
    const aide = defineAgent({ name: "aide", model: scriptedModel("fine") });
    const lead = defineAgent({
      name: "desk",
      model: scriptedModel("fine"),
      tools: [subagent(aide, { mode: "background", onEnd: "wake" })],
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await started(runtime);
    const unknown = agent.turn("d#1");
    for (const asked of [unknown.id, unknown.isReplayed, unknown.current(), unknown.result, unknown.settled]) {
      await expect(asked).rejects.toThrow(NotFoundError);
    }
    await expect(firstOf(unknown)).rejects.toThrow(NotFoundError);
    await expect(firstOf(runtime.follow("nobody"))).rejects.toThrow(NotFoundError);
  });

  it("an owner's turns are listed in pages, the latest change first", async () => {
    const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model: scriptedModel("fine") })] });
    for (const [agentId, owner] of [
      ["a", "ann"],
      ["b", "bob"],
      ["c", "ann"],
      ["a", "ann"],
    ] as const) {
      const agent = await started(runtime, agentId, owner);
      stage().clock.advance(10);
      await agent.executeTurn("go").result;
    }
    const page = await runtime.turns({ ownerId: "ann", limit: 2 });
    expect(page.map(({ turnId }) => turnId)).toEqual(["a#2", "c#1"]);
    const last = page.at(-1);
    const next = await runtime.turns({ ownerId: "ann", limit: 2, after: last && formatTurnCursor(last) });
    expect(next.map(({ turnId }) => turnId)).toEqual(["a#1"]);
    await expect(runtime.turns({ after: "nonsense" })).rejects.toThrow("formatTurnCursor(record)");
    await expect(runtime.turns({ statis: "open" } as object)).rejects.toThrow("did you mean status?");
  });
});
