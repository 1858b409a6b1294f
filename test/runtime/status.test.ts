import { expect, it } from "vitest";
import { type Agent, askUser, defineAgent, type Runtime } from "../../src/index.ts";
import type { Lifecycle } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { textOf } from "../../src/state/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, type Gate } from "../support/turn-probes.ts";

const aWhile = 15;

function worker(gate: Gate<string>) {
  const model = scriptedModel(async ({ messages }, { signal }) => {
    const text = textOf(messages.at(-1)?.content ?? "");
    if (text === "fail") return { error: new Error("it broke") };
    if (text === "ask") return calling({ name: "ask_user", arguments: { question: "Shall I?" } });
    return text === "think" ? await gate.pass(signal) : "done";
  });
  return defineAgent({ name: "worker", model, tools: [askUser()] });
}

interface Case {
  readonly name: string;
  readonly status: Lifecycle;
  readonly reach: (agent: Agent, gate: Gate<string>) => Promise<void>;
}

const gives = async (agent: Agent, input: string): Promise<void> => {
  await agent.executeTurn(input).id;
  await loopTurns(aWhile);
};

const cases: readonly Case[] = [
  { name: "made", status: "created", reach: async () => undefined },
  { name: "started", status: "ready", reach: (agent) => agent.start() },
  {
    name: "thinking",
    status: "busy",
    reach: async (agent) => {
      await agent.start();
      await gives(agent, "think");
    },
  },
  {
    name: "waiting for a person",
    status: "busy",
    reach: async (agent) => {
      await agent.start();
      await gives(agent, "ask");
    },
  },
  {
    name: "about to pause",
    status: "busy",
    reach: async (agent) => {
      await agent.start();
      await gives(agent, "think");
      agent.pause().catch(() => undefined);
      await loopTurns(aWhile);
    },
  },
  {
    name: "paused between two turns",
    status: "paused",
    reach: async (agent) => {
      await agent.start();
      await agent.pause();
    },
  },
  {
    name: "paused in a turn",
    status: "paused",
    reach: async (agent) => {
      await agent.start();
      await gives(agent, "ask");
      await agent.pause();
    },
  },
  {
    name: "paused, given a turn",
    status: "paused",
    reach: async (agent) => {
      await agent.start();
      await agent.pause();
      await gives(agent, "think");
    },
  },
  {
    name: "resumed in a turn",
    status: "busy",
    reach: async (agent) => {
      await agent.start();
      await gives(agent, "ask");
      await agent.pause();
      await agent.resume();
    },
  },
  {
    name: "aborted while it was paused",
    status: "ready",
    reach: async (agent) => {
      await agent.start();
      await agent.pause();
      const turn = agent.executeTurn("think");
      await turn.abort();
      await turn.result;
      await loopTurns(aWhile);
    },
  },
  {
    name: "done with a turn",
    status: "ready",
    reach: async (agent) => {
      await agent.start();
      await agent.executeTurn("go").result;
      await loopTurns(aWhile);
    },
  },
  {
    name: "failed",
    status: "failed",
    reach: async (agent) => {
      await agent.start();
      await agent.executeTurn("fail").result;
      await loopTurns(aWhile);
    },
  },
  {
    name: "failed, and at work again",
    status: "busy",
    reach: async (agent) => {
      await agent.start();
      await agent.executeTurn("fail").result;
      await gives(agent, "think");
    },
  },
  {
    name: "shut down",
    status: "shutdown",
    reach: async (agent) => {
      await agent.start();
      await agent.shutdown();
    },
  },
];

const listed = async (runtime: Runtime) => (await runtime.list({ rootAgentId: "w" }))[0]?.status;

/** The status in every API that reports it. */
async function told(agent: Agent, here: Runtime, elsewhere: Runtime): Promise<Record<string, Lifecycle | undefined>> {
  return {
    "its own handle": agent.state.status,
    "a handle found here": (await here.find("w")).state.status,
    "the list here": await listed(here),
    "a handle found elsewhere": (await elsewhere.find("w")).state.status,
    "the list elsewhere": await listed(elsewhere),
    "the overview": here.overview.get().context.agents["w"]?.status ?? "created",
  };
}

describeRuntimes("one status in every API", (stage) => {
  it.each(cases)("$name: $status", async ({ status, reach }) => {
    const gate = createGate<string>();
    const here = await stage().open({ agents: [worker(gate)] });
    expect(here.overview.get().context.agents).toEqual({});
    const elsewhere = await stage().open({ agents: [] });
    const agent = await here.agent("worker", { agentId: "w" });
    await reach(agent, gate);
    const answers = await told(agent, here, elsewhere);
    expect(answers).toEqual(Object.fromEntries(Object.keys(answers).map((way) => [way, status])));
    gate.open("done");
  });
});
