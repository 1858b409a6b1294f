import { expect, it } from "vitest";
import { AlreadyOwnedError, defineAgent, subagent, TurnInterruptedError } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { entriesOf, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const worker = (script: ModelScript) => defineAgent({ name: "worker", model: scriptedModel(script) });
const counting: ModelScript = ({ messages }) => `I see ${messages.length}`;

const leading = (childScript: ModelScript) =>
  defineAgent({
    name: "lead",
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? "all done" : calling({ name: "child", arguments: { input: "x" } }),
    ),
    tools: [subagent(defineAgent({ name: "child", model: scriptedModel(childScript) }))],
  });

describeRuntimes("unfinished agents of dead processes", (stage) => {
  it("a turn that was accepted but not started is started", async () => {
    const first = await stage().openProcess({ agents: [worker("never")] });
    const before = await first.runtime.agent("worker", { agentId: "r" });
    await before.start();
    // As if the process died between the answer to its caller and the turn's first commit.
    const command = { input: "go", actorId: null, limits: null, ifBusy: "refuse" } as const;
    await stage().look().openTurn({ tenant: "default", agentId: "r" }, command, stage().clock.now());
    first.kill();
    stage().expireLeases();
    const second = await stage().open({ agents: [worker("begun")] });
    const agent = await second.find("r");
    await agent.start();
    expect(await agent.turn("r#1").result).toMatchObject({ status: "completed", text: "begun" });
    expect((await agent.getMessages()).map(({ content }) => content)).toEqual(["go", "begun"]);
  });

  it("a queued turn starts after the one before it, in another process too", async () => {
    const gate = createGate<string>();
    const first = await stage().open({ agents: [worker((_request, { signal }) => gate.pass(signal))] });
    const before = await first.agent("worker", { agentId: "r" });
    await before.start();
    const one = before.executeTurn("one");
    const two = before.executeTurn("two", { ifBusy: "queue" });
    await gate.reached();
    await two.id;
    await first.shutdown();
    await expect(one.result).rejects.toThrow(TurnInterruptedError);
    await expect(two.result).rejects.toThrow(TurnInterruptedError);

    const second = await stage().open({ agents: [worker(counting)] });
    const agent = await second.find("r");
    await agent.start();
    expect(await agent.turn("r#1").result).toMatchObject({ text: "I see 1" });
    expect(await agent.turn("r#2").result).toMatchObject({ text: "I see 3" });
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 2 });
  });

  it("shutdown() of an agent with a queued turn releases the agent", async () => {
    const gate = createGate<string>();
    const first = await stage().open({
      agents: [worker((_request, { index, signal }) => (index === 0 ? gate.pass(signal) : "later"))],
    });
    const agent = await first.agent("worker", { agentId: "r" });
    await agent.start();
    const one = agent.executeTurn("one");
    const two = agent.executeTurn("two", { ifBusy: "queue" });
    await gate.reached();
    await two.id;
    await agent.shutdown();
    const other = await stage().open({ agents: [worker("elsewhere")] });
    const there = await other.find("r");
    await there.start();
    expect(await there.turn("r#1").result).toMatchObject({ text: "elsewhere" });
    expect(await there.turn("r#2").result).toMatchObject({ text: "elsewhere" });
    gate.open("this answer is lost");
    await loopTurns(10);
    expect((await there.getMessages()).map(({ content }) => content)).toEqual(["one", "elsewhere", "two", "elsewhere"]);
    for (const turn of [one, two]) turn.result.catch(() => undefined);
  });

  it("recover() activates an idle agent whose pause was ended after its process had died", async () => {
    const key = { tenant: "default", agentId: "r" };
    const first = await stage().openProcess({ agents: [worker("done")] });
    const before = await first.runtime.agent("worker", { agentId: "r" });
    await before.start();
    await before.pause();
    first.kill();
    // The dead process still holds the lease, so the end of the pause goes into the inbox.
    const second = await stage().openProcess({ agents: [worker("done")] });
    const resuming = second.runtime.find("r").then((there) => there.resume());
    resuming.catch(() => undefined);
    await expect.poll(async () => (await stage().look().inbox(key)).map(({ kind }) => kind)).toEqual(["resume"]);
    second.kill();
    stage().expireLeases();
    const third = await stage().open({ agents: [worker("done")] });
    await third.recover();
    await expect.poll(async () => (await stage().look().readAgent(key))?.status).not.toBe("paused");
    expect(await stage().look().inbox(key)).toEqual([]);
  });

  it("M6: recover() recovers every unfinished agent without an owner, and no other", async () => {
    const gate = createGate<string>();
    const held = worker((_request, { signal }) => gate.pass(signal));
    const doomed = await stage().openProcess({ agents: [held] });
    for (const agentId of ["r1", "r2", "idle"]) await (await doomed.runtime.agent("worker", { agentId })).start();
    (await doomed.runtime.find("r1")).executeTurn("one");
    (await doomed.runtime.find("r2")).executeTurn("two");
    await gate.reached(2);
    const living = await stage().open({ agents: [held] });
    const busy = await living.agent("worker", { agentId: "r3" });
    await busy.start();
    const third = busy.executeTurn("three");
    await gate.reached(3);
    doomed.kill();
    stage().expireLeases();
    const rescuer = await stage().open({ agents: [worker("rescued")] });
    expect((await rescuer.recover()).toSorted()).toEqual(["r1", "r2"]);
    expect((await (await rescuer.find("r1")).turn("r1#1").result).text).toBe("rescued");
    expect((await (await rescuer.find("r2")).turn("r2#1").result).text).toBe("rescued");
    gate.open("own");
    expect((await third.result).text).toBe("own");
    expect(await rescuer.recover()).toEqual([]);
    await expect((await rescuer.find("r3")).start()).rejects.toThrow(AlreadyOwnedError);
    await (await rescuer.find("idle")).start();
  });

  it("a subagent that was working at the crash continues together with its parent", async () => {
    const gate = createGate<string>();
    const first = await stage().open({ agents: [leading((_request, { signal }) => gate.pass(signal))] });
    const before = await first.agent("lead", { agentId: "r" });
    await before.start();
    before.executeTurn("go");
    await gate.reached();
    await first.shutdown();
    const second = await stage().open({ agents: [leading("child done")] });
    const agent = await second.find("r");
    await agent.start();
    expect(await agent.turn("r#1").result).toMatchObject({ status: "completed", text: "all done" });
    const entries = await entriesOf(stage().look(), "r");
    expect(entries.filter(({ type }) => type === "child.spawned")).toHaveLength(1);
    expect(entries.filter(({ type }) => type === "child.ended")).toHaveLength(1);
  });
});
