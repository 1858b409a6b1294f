import { expect, it } from "vitest";
import { type AgentDefinition, defineAgent, type Stores } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes, type Stage, stageLeaseMs, type StagedProcess } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

const bound = 1.5 * stageLeaseMs;
const TENANT = "default";

/** A desk whose model answers, or hangs in a process that is going to die. */
function desk(name = "desk", isHeld = false) {
  const gate = createGate<string>();
  return { gate, definition: defineAgent({ name, model: scriptedModel(() => (isHeld ? gate.pass() : "done")) }) };
}

/** A process that is killed after it started a turn of each agent. */
async function leftBehind(stage: Stage, agentIds: readonly string[], name = "desk"): Promise<StagedProcess> {
  const { gate, definition } = desk(name, true);
  const doomed = await stage.openProcess({ agents: [definition] });
  for (const agentId of agentIds) {
    const agent = await doomed.runtime.agent(name, { agentId });
    await agent.start();
    agent.executeTurn("go").result.catch(() => undefined);
    await gate.reached();
    await agent.saveState();
  }
  doomed.kill();
  return doomed;
}

/** Advances the clock in small steps, so that the processes do everything due. */
async function pass(stage: Stage, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 250) {
    stage.clock.advance(250);
    await loopTurns(4);
  }
}

async function statusOf(stores: Stores, agentId: string): Promise<string | undefined> {
  return (await stores.turns({ tenant: TENANT, agentId }))[0]?.status;
}

async function ended(stores: Stores, agentIds: readonly string[]): Promise<number> {
  const all = await Promise.all(agentIds.map((agentId) => statusOf(stores, agentId)));
  return all.filter((status) => status === "completed").length;
}

/** Waits in turns of the event loop, without advancing the clock. */
async function untilEnded(stores: Stores, agentIds: readonly string[]): Promise<void> {
  for (let turn = 0; turn < 500 && (await ended(stores, agentIds)) < agentIds.length; turn += 1) await loopTurns(2);
  expect(await ended(stores, agentIds)).toBe(agentIds.length);
}

describeRuntimes("turns whose process has died", (stage) => {
  it("are continued within one and a half leases by a process that was already running", async () => {
    const survivor = await stage().open({ agents: [desk().definition] });
    await leftBehind(stage(), ["a", "b"]);
    const result = (await survivor.find("a")).turn("a#1").result;
    await pass(stage(), bound);
    await untilEnded(stage().look(), ["a", "b"]);
    expect(await result).toMatchObject({ status: "completed", text: "done" });
  });

  it("are continued by a process that starts before the lease expires, without recover()", async () => {
    await leftBehind(stage(), ["a"]);
    await stage().open({ agents: [desk().definition] });
    expect(await ended(stage().look(), ["a"])).toBe(0);
    await pass(stage(), bound);
    await untilEnded(stage().look(), ["a"]);
  });

  it("are continued much later, once a process with their definition starts", async () => {
    await leftBehind(stage(), ["a"], "clerk");
    const other = await stage().open({ agents: [desk().definition] });
    const before = await stage().look().holder({ tenant: TENANT, agentId: "a" });
    await pass(stage(), 5 * stageLeaseMs);
    // The process without the definition does not take the agent.
    expect(await stage().look().holder({ tenant: TENANT, agentId: "a" })).toEqual(before);
    expect((await other.metrics()).unattended).toBe(0);
    await stage().open({ agents: [desk("clerk").definition] });
    await pass(stage(), bound);
    await untilEnded(stage().look(), ["a"]);
  });

  it("are left alone by a process that recovers only its own trees", async () => {
    const survivor = await stage().open({ agents: [desk().definition], recovers: "own" });
    await leftBehind(stage(), ["a"]);
    await pass(stage(), 3 * stageLeaseMs);
    expect(await statusOf(stage().look(), "a")).toBe("open");
    expect(await survivor.recover()).toEqual(["a"]);
    await untilEnded(stage().look(), ["a"]);
  });

  it("are continued by one of many processes, each once", async () => {
    const agentIds = Array.from({ length: 12 }, (_, index) => `agent-${index}`);
    let calls = 0;
    const counting = (): AgentDefinition =>
      defineAgent({ name: "desk", model: scriptedModel(() => `${(calls += 1)}`) });
    for (let index = 0; index < 4; index += 1) await stage().open({ agents: [counting()] });
    await leftBehind(stage(), agentIds);
    await pass(stage(), bound);
    await untilEnded(stage().look(), agentIds);
    expect(calls).toBe(agentIds.length);
  });

  it("are continued in a process where the agent was idle before another process took it", async () => {
    const keeper = await stage().open({ agents: [desk().definition] });
    const agent = await keeper.agent("desk", { agentId: "a" });
    await agent.start();
    await agent.executeTurn("first").result;
    // The agent is passive and its lease expires: this process needs no heartbeat.
    await pass(stage(), 2 * stageLeaseMs);
    const { gate, definition } = desk("desk", true);
    const doomed = await stage().openProcess({ agents: [definition] });
    const there = await doomed.runtime.find("a");
    await there.start();
    there.executeTurn("second").result.catch(() => undefined);
    await gate.reached();
    await there.saveState();
    doomed.kill();
    const result = agent.turn("a#2").result;
    await pass(stage(), bound);
    await untilEnded(stage().look(), ["a"]);
    expect(await result).toMatchObject({ status: "completed", text: "done" });
    expect(await agent.executeTurn("third").result).toMatchObject({ status: "completed" });
  });
});
