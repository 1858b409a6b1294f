import { expect, it } from "vitest";
import {
  AlreadyOwnedError,
  type Agent,
  createRuntime,
  defineAgent,
  LeaseLostError,
  type Runtime,
  type Stores,
  textOf,
  type TroupeEvent,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes, stageLeaseMs } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

const tenant = "default";
const talker = () =>
  defineAgent({ name: "talker", model: scriptedModel(({ messages }) => `I see ${messages.length}`) });

async function started(runtime: Runtime, agentId = "u", autoSave = false): Promise<Agent> {
  const agent = await runtime.agent("talker", { agentId, autoSave });
  await agent.start();
  return agent;
}

/** Returns the durable events of agent `u` after a cursor up to the end of a turn, as a client receives them. */
async function eventsTo(runtime: Runtime, turnId: string, after?: string): Promise<TroupeEvent[]> {
  const events: TroupeEvent[] = [];
  for await (const event of runtime.follow("u", { after })) {
    if (event.cursor === null) continue;
    events.push(event);
    if (event.type === "turn.completed" && event.turnId === turnId) break;
  }
  return events;
}

const cursorsOf = (events: readonly TroupeEvent[]) => events.map(({ cursor }) => cursor);
const typesOf = (events: readonly TroupeEvent[]) => events.map(({ type }) => type);

describeRuntimes("a stored agent that is opened with autoSave: false", (stage) => {
  async function stored(): Promise<Runtime> {
    const runtime = await stage().open({ agents: [talker()] });
    // The rows of another tree lie between those of `u`.
    for (const agentId of ["t", "u", "t"]) {
      const agent = await started(runtime, agentId, true);
      await agent.executeTurn(`hello ${agentId}`).result;
      await agent.shutdown();
    }
    return runtime;
  }

  it("continues with its history in memory; the stored rows do not change until saveState()", async () => {
    const before = await stored();
    const untouched = await stage().look().exportTree(tenant, "u");
    const runtime = await stage().open({ agents: [talker()] });
    const agent = await started(runtime);
    expect(await agent.executeTurn("more").result).toMatchObject({ turnId: "u#2", text: "I see 3" });
    const seen = await stage().look().exportTree(tenant, "u");
    expect(seen?.rows).toEqual(untouched?.rows);
    expect(seen?.agents.map(({ record }) => record)).toEqual(untouched?.agents.map(({ record }) => record));
    await agent.saveState();
    expect((await stage().look().readAgent({ tenant, agentId: "u" }))?.turnCount).toBe(2);
    expect(await stage().look().messages({ tenant, agentId: "u" })).toEqual(await agent.getMessages());
    await before.shutdown();
  });

  it("cannot be started by another process before it is shut down", async () => {
    const before = await stored();
    const runtime = await stage().open({ agents: [talker()] });
    const agent = await started(runtime);
    const theirs = await before.find("u");
    await expect(theirs.start()).rejects.toThrow(AlreadyOwnedError);
    await agent.shutdown();
    await theirs.start();
    await expect(agent.start()).rejects.toThrow(AlreadyOwnedError);
  });

  it("keeps the cursors of clients valid, and after a save no event after any of them is missing", async () => {
    const before = await stored();
    const old = await eventsTo(before, "u#1");
    const runtime = await stage().open({ agents: [talker()] });
    const agent = await started(runtime);
    expect(await eventsTo(runtime, "u#1")).toEqual(old);
    await agent.executeTurn("more").result;
    const last = old.at(-1)?.cursor ?? "";
    const fresh = await eventsTo(runtime, "u#2", last);
    expect(new Set(cursorsOf([...old, ...fresh])).size).toBe(old.length + fresh.length);
    for (const [index, { cursor }] of fresh.entries()) {
      if (index + 1 === fresh.length || cursor === null) break;
      expect(await eventsTo(runtime, "u#2", cursor)).toEqual(fresh.slice(index + 1));
    }
    await agent.saveState();
    await runtime.shutdown();

    const next = await stage().open({ agents: [talker()] });
    expect(await eventsTo(next, "u#1")).toEqual(old);
    expect(typesOf(await eventsTo(next, "u#2", last))).toEqual(typesOf(fresh));
    for (const [index, { cursor }] of fresh.entries()) {
      if (index + 1 === fresh.length || cursor === null) break;
      const missed = typesOf(fresh.slice(index + 1));
      expect(typesOf(await eventsTo(next, "u#2", cursor)).slice(-missed.length)).toEqual(missed);
    }
  });
});

describeRuntimes("an agent with autoSave: false that several processes use", (stage) => {
  it("a process that lost its lease while frozen cannot overwrite later changes of others", async () => {
    const first = await stage().openProcess({ agents: [talker()] });
    const agent = await started(first.runtime);
    await agent.executeTurn("one").result;
    await agent.saveState();
    await agent.executeTurn("unsaved").result;
    first.freeze();
    stage().expireLeases();
    const second = await stage().open({ agents: [talker()] });
    const theirs = await started(second, "u", true);
    await theirs.executeTurn("two").result;
    first.thaw();
    await expect(agent.saveState()).rejects.toThrow(LeaseLostError);
    await theirs.shutdown();
    await expect(agent.saveState()).rejects.toThrow(LeaseLostError);
    const contents = (await stage().look().messages({ tenant, agentId: "u" })).map(({ content }) => content);
    expect(contents).toEqual(["one", "I see 1", "two", "I see 3"]);
  });

  it("an agent that another process created first is not replaced", async () => {
    const runtime = await stage().open({ agents: [talker()] });
    const agent = await started(runtime);
    await agent.executeTurn("mine").result;
    const other = await stage().open({ agents: [talker()] });
    const theirs = await started(other, "u", true);
    await theirs.executeTurn("theirs").result;
    await expect(agent.saveState()).rejects.toThrow(AlreadyOwnedError);
    await expect(agent.saveState()).rejects.toThrow("was created by another process");
    expect((await theirs.getMessages()).map(({ content }) => content)).toEqual(["theirs", "I see 1"]);
    expect((await agent.getMessages()).map(({ content }) => content)).toEqual(["mine", "I see 1"]);
  });

  it("a turn that another process sends during a save reaches the agent", async () => {
    const other = await stage().open({ agents: [talker()] });
    let sent: Promise<string> | undefined;
    const stores: Stores = new Proxy(stage().look(), {
      get: (target, name: keyof Stores) => {
        if (name !== "importTree") return target[name];
        const put: Stores["importTree"] = async (...given) => {
          if (given[0].rootAgentId === "u" && stored) {
            sent ??= (await other.find("u")).executeTurn("from afar").id;
            await sent;
          }
          stored = true;
          return await target.importTree(...given);
        };
        return put;
      },
    });
    let stored = false;
    const { clock } = stage();
    const runtime = await createRuntime({ agents: [talker()], stores, clock, leaseMs: stageLeaseMs });
    const agent = await started(runtime);
    await agent.executeTurn("mine").result;
    await agent.saveState();
    await agent.saveState();
    expect(await sent).toBe("u#2");
    expect(await agent.turn("u#2").result).toMatchObject({ text: "I see 3" });
    await agent.saveState();
    expect(await stage().look().inbox({ tenant, agentId: "u" })).toEqual([]);
    await runtime.shutdown();
  });

  it("turns, pauses and aborts that other processes send to the saved agent reach it", async () => {
    const gate = createGate<string>();
    const model = scriptedModel(({ messages }, { signal }) => {
      const last = textOf(messages.at(-1)?.content ?? "");
      return last === "wait" ? gate.pass(signal) : `heard ${last}`;
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "talker", model })] });
    const agent = await started(runtime);
    await agent.saveState();
    const other = await stage().open({ agents: [talker()] });
    const theirs = await other.find("u");

    expect(await theirs.executeTurn("from afar").id).toBe("u#1");
    const end = agent.turn("u#1").result;
    await elapse(
      stage().clock,
      waitFor(() => agent.state.turnCount === 1),
    );
    expect(await end).toMatchObject({ text: "heard from afar" });

    const turn = agent.executeTurn("wait");
    await gate.reached();
    await agent.saveState();
    await theirs.abort("enough");
    expect(await elapse(stage().clock, turn.result)).toMatchObject({ status: "stopped", stopReason: "user_requested" });

    await agent.saveState();
    await theirs.pause();
    await elapse(
      stage().clock,
      waitFor(() => agent.state.status === "paused"),
    );
    await agent.saveState();
    await theirs.resume();
    await elapse(
      stage().clock,
      waitFor(() => agent.state.status === "ready"),
    );
    expect((await agent.getMessages()).map(({ content }) => content)).toEqual([
      "from afar",
      "heard from afar",
      "wait",
      "Task incomplete: enough",
    ]);
  });

  it("list() merges unsaved and stored agents, and lists a saved agent once", async () => {
    const runtime = await stage().open({ agents: [talker()] });
    for (const agentId of ["b", "d"]) await started(runtime, agentId, true);
    const unsaved = await started(runtime, "c");
    await started(runtime, "a");
    await unsaved.saveState();
    await unsaved.executeTurn("one").result;
    const list = await runtime.list();
    expect(list.map(({ agentId, turnCount }) => [agentId, turnCount])).toEqual([
      ["a", 0],
      ["b", 0],
      ["c", 1],
      ["d", 0],
    ]);
    expect((await runtime.list({ limit: 2 })).map(({ agentId }) => agentId)).toEqual(["a", "b"]);
    expect((await runtime.list({ limit: 2, after: "b" })).map(({ agentId }) => agentId)).toEqual(["c", "d"]);
    expect(await runtime.recover()).toEqual([]);
  });
});

/** Resolves once `isSo()` is true; checks once per turn of the event loop. */
async function waitFor(isSo: () => boolean): Promise<void> {
  while (!isSo()) await loopTurns(1);
}
