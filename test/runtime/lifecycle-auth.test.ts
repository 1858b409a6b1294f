import { expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  type Auth,
  type AuthRequest,
  defineAgent,
  defineTool,
  subagent,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOf, entriesOfType, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, type Gate } from "../support/turn-probes.ts";

const canary = "canary-7f3a9c";
const auth: Auth = { actorId: "ada", credentials: { token: canary, nested: { refresh: `${canary}-2` } } };

/** A lead with a child. Both use a tool that records the actor it runs for. */
function team(seen: (Auth | undefined)[], gate?: Gate<string>): AgentDefinition {
  const whoami = defineTool({
    name: "whoami",
    description: "Notes who it runs for.",
    parameters: z.object({}),
    effect: "keyed",
    execute: async (_args, run) => {
      seen.push(run.auth);
      await gate?.pass(run.signal);
      return JSON.stringify(run.auth ?? null).includes(canary) ? "leaked through JSON" : "noted";
    },
  });
  const child = defineAgent({
    name: "child",
    model: scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "done" : calling("whoami"))),
    tools: [whoami],
  });
  return defineAgent({
    name: "lead",
    model: scriptedModel(({ messages }) => {
      const results = messages.filter(({ role }) => role === "tool").length % 2;
      if (messages.at(-1)?.role === "user") return calling("whoami");
      return results === 1 ? calling({ name: "child", arguments: { input: "x" } }) : "all done";
    }),
    tools: [whoami, subagent(child)],
  });
}

describeRuntimes("L9: auth", (stage) => {
  it("reaches the tools of the agent and its children, and is separate for every turn", async () => {
    const seen: (Auth | undefined)[] = [];
    const runtime = await stage().open({ agents: [team(seen)] });
    const agent = await runtime.agent("lead", { agentId: "a" });
    await agent.start();
    expect((await agent.executeTurn("go", { auth }).result).text).toBe("all done");
    expect(seen.map((one) => one?.actorId)).toEqual(["ada", "ada"]);
    for (const one of seen) expect(one?.credentials).toMatchObject({ token: canary });
    seen.length = 0;
    await agent.executeTurn("again", { auth: { actorId: "bob", credentials: { token: "other" } } }).result;
    expect(seen).toMatchObject([{ actorId: "bob", credentials: { token: "other" } }, { actorId: "bob" }]);
    seen.length = 0;
    await agent.executeTurn("and again").result;
    expect(seen).toEqual([undefined, undefined]);
    const started = await entriesOfType(stage().look(), "a", "turn.started");
    expect(started.map(({ actorId }) => actorId)).toEqual(["ada", "bob", null]);
  });

  it("S13: credentials are in no journal, record, message, event, overview or inspection frame", async () => {
    const frames: string[] = [];
    const runtime = await stage().open({
      agents: [team([])],
      onInspect: (_agentId, event) => {
        if (event.type === "@xstate.snapshot") frames.push(JSON.stringify([event.event, event.snapshot]));
      },
    });
    const { overview } = runtime;
    const agent = await runtime.agent("lead", { agentId: "a" });
    const events: unknown[] = [];
    runtime.subscribe((event) => events.push(event));
    await agent.start();
    const result = await agent.executeTurn("go", { auth }).result;
    const look = stage().look();
    const told: unknown[] = [result, events, overview.getSnapshot(), await agent.getTrace(), agent.state];
    for (const record of await look.listAgents({ tenant: "default" })) {
      const key = { tenant: "default", agentId: record.agentId };
      told.push(record, await look.inbox(key), await look.messages(key), await entriesOf(look, record.agentId));
    }
    told.push(await look.accounts("default", "a"), await look.readTree("default", "a", 0, 1_000));
    expect(JSON.stringify(told)).not.toContain(canary);
    expect(frames.join("")).not.toContain(canary);
    expect(frames.length).toBeGreaterThan(10);
    expect(JSON.stringify(told)).not.toContain("leaked");
    expect(JSON.stringify(told)).toContain("noted");
  });

  it("a queued turn has its own auth when it starts", async () => {
    const seen: (Auth | undefined)[] = [];
    const gate = createGate<string>();
    const runtime = await stage().open({ agents: [team(seen, gate)] });
    const agent = await runtime.agent("lead", { agentId: "a" });
    await agent.start();
    const first = agent.executeTurn("one", { auth });
    const second = agent.executeTurn("two", { auth: { actorId: "bob", credentials: 1 }, ifBusy: "queue" });
    await gate.reached();
    gate.open("x");
    await first.result;
    await second.result;
    expect(seen.map((one) => one?.actorId)).toEqual(["ada", "ada", "bob", "bob"]);
  });

  it("is resolved again after a restart, for each agent of the tree that continues", async () => {
    const gate = createGate<string>();
    const first = await stage().open({ agents: [team([], gate)] });
    const before = await first.agent("lead", { agentId: "a" });
    await before.start();
    before.executeTurn("go", { auth }).result.catch(() => undefined);
    await gate.reached();
    await first.shutdown();

    const asked: AuthRequest[] = [];
    const seen: (Auth | undefined)[] = [];
    const second = await stage().open({
      agents: [team(seen)],
      resolveAuth: async (request) => {
        asked.push(request);
        return { actorId: request.actorId, credentials: { token: "fresh" } };
      },
    });
    const agent = await second.find("a");
    await agent.start();
    expect((await agent.turn("a#1").result).text).toBe("all done");
    expect(asked[0]).toEqual({ actorId: "ada", agentId: "a", turnId: "a#1", reason: "restart" });
    expect(seen).toHaveLength(2);
    for (const one of seen) expect(one).toMatchObject({ actorId: "ada", credentials: { token: "fresh" } });
    expect(asked).toHaveLength(1);
  });

  it("without resolveAuth, a turn that continues after a restart has its actor and no credentials", async () => {
    const gate = createGate<string>();
    const first = await stage().open({ agents: [team([], gate)] });
    const before = await first.agent("lead", { agentId: "a" });
    await before.start();
    before.executeTurn("go", { auth }).result.catch(() => undefined);
    await gate.reached();
    await first.shutdown();
    const seen: (Auth | undefined)[] = [];
    const second = await stage().open({ agents: [team(seen)] });
    await (await second.find("a")).start();
    await (await second.find("a")).turn("a#1").result;
    expect(seen.map((one) => [one?.actorId, one?.credentials])).toEqual([
      ["ada", undefined],
      ["ada", undefined],
    ]);
  });

  it("if resolving fails, start() rejects with that error and can be called again", async () => {
    const gate = createGate<string>();
    const first = await stage().open({ agents: [team([], gate)] });
    const before = await first.agent("lead", { agentId: "a" });
    await before.start();
    before.executeTurn("go", { auth }).result.catch(() => undefined);
    await gate.reached();
    await first.shutdown();
    let times = 0;
    const second = await stage().open({
      agents: [team([])],
      resolveAuth: ({ actorId }) => {
        times += 1;
        if (times === 1) throw new Error("the vault is locked");
        return { actorId };
      },
    });
    const agent = await second.find("a");
    await expect(agent.start()).rejects.toThrow("the vault is locked");
    await agent.start();
    expect((await agent.turn("a#1").result).status).toBe("completed");
  });
});

describeRuntimes(
  "L9: the stored data",
  (stage) => {
    it("contains the actor and never the credentials", async () => {
      const runtime = await stage().open({ agents: [team([])] });
      const agent = await runtime.agent("lead", { agentId: "a" });
      await agent.start();
      await agent.executeTurn("go", { auth }).result;
      await loopTurns(5);
      expect(stage().stored()).toContain("ada");
      expect(stage().stored()).not.toContain(canary);
    });
  },
  ["sqlite", "redis"],
);
