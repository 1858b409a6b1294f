import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool, ModelError, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse } from "../support/journal-probes.ts";
import { calling, createGate, nextEvent } from "../support/turn-probes.ts";
import { askReader, desk, interrupted, reader, type Scenario, turns } from "./scenario.ts";
import { held, look } from "./scenario-tools.ts";

const refusedByModel = new ModelError("bad request", { retryable: false, status: 400, mayHaveBeenSent: true });

const trees: readonly Scenario[] = [
  {
    name: "two subagents in one round, together with a tool call",
    shows: ["child.spawned", "child.ended stopped"],
    run: turns(() => {
      const child = reader(calling("look"), { tools: [look], budget: { maxSteps: 2 } });
      return desk([calling(askReader("a"), "look", askReader("b")), "done"], { tools: [look, subagent(child)] });
    }),
  },
  {
    name: "a subagent of a subagent, and one that fails",
    shows: ["child.ended failed", "child.ended completed"],
    run: turns(() => {
      const leaf = defineAgent({ name: "leaf", model: scriptedModel({ error: refusedByModel }) });
      const child = reader([calling({ name: "leaf", arguments: { input: "x" } }), "read"], { tools: [subagent(leaf)] });
      return desk([calling(askReader("a")), "done"], { tools: [subagent(child)] });
    }),
  },
  {
    name: "children that wait for each other's reservations",
    shows: ["intent.refused mustWait", "budget.freed", "child.ended completed"],
    run: turns(() => {
      const child = reader("read", { maxOutputTokens: 900 });
      return desk([calling(askReader("a"), askReader("b"), askReader("c")), "done"], {
        tools: [subagent(child)],
        budget: { maxTokens: 2_000 },
        maxOutputTokens: 300,
      });
    }),
  },
];

const searching = (onEnd: "keep" | "wake") => subagent(reader("read"), { mode: "background", onEnd });

/** Children in the background, which `autoSave: false` refuses. */
export const backgroundScenarios: readonly Scenario[] = [
  {
    name: "background children whose results the turn waits for or the next turn sees",
    shows: ["child.spawned", "child.reported completed", "messages.released"],
    run: turns(
      () =>
        desk(
          [
            calling(askReader("a"), askReader("b")),
            calling("subagent_status"),
            calling("subagent_wait"),
            "done",
            "seen",
          ],
          {
            tools: [searching("keep")],
          },
        ),
      ["go", "and now?"],
    ),
  },
  {
    name: "a wait that times out before its child ends, and an abort of the agent",
    shows: ["call.expired", "child.reported stopped"],
    run: (stage, options) =>
      interrupted(
        stage,
        options,
        async (gate, runtime) => {
          const agent = await runtime.find("desk");
          await elapse(stage.clock, agent.turn("desk#1").result);
          const told = nextEvent(runtime, ({ type }) => type === "subagent.ended");
          await agent.abort();
          await elapse(stage.clock, told);
          gate.open("late");
        },
        (gate) => {
          const child = reader(async (_request, { signal }) => await gate.pass(signal));
          const wait = { name: "subagent_wait", arguments: { timeoutSeconds: 5 } };
          const tools = [subagent(child, { mode: "background", onEnd: "wake" })];
          return desk([calling(askReader("a")), calling(wait), "done"], { tools });
        },
      ),
  },
  {
    name: "a turn that the agent starts by itself for a child's result",
    shows: ["child.reported completed", "turn.started"],
    run: async (stage, options) => {
      const gate = createGate<string>();
      const child = reader(async (_request, { signal }) => await gate.pass(signal));
      const tools = [subagent(child, { mode: "background", onEnd: "wake" })];
      const agents = [desk([calling(askReader("a")), "started", "told"], { tools })];
      const runtime = await stage.open({ ...options, agents });
      const agent = await runtime.agent("desk", { agentId: "desk" });
      await agent.start();
      await elapse(stage.clock, agent.executeTurn("go").result);
      await gate.reached();
      const woken = nextEvent(runtime, ({ type, turnId }) => type === "turn.started" && turnId === "desk#2");
      gate.open("read");
      await elapse(stage.clock, woken);
      await elapse(stage.clock, agent.turn("desk#2").result);
      return runtime;
    },
  },
  {
    name: "a tool that leaves its result to a child",
    shows: ["child.awaited", "child.ended completed", "tool.settled success"],
    run: async (stage, options) => {
      const child = reader("read");
      const runtime = await stage.open({ ...options, agents: [delegatingDesk(child), child] });
      const agent = await runtime.agent("desk", { agentId: "desk" });
      await agent.start();
      await elapse(stage.clock, agent.executeTurn("go").result);
      return runtime;
    },
  },
];

function delegatingDesk(child: AgentDefinition): AgentDefinition {
  const delegate = defineTool({
    name: "delegate",
    description: "Delegates.",
    parameters: z.object({}),
    execute: async (_args, run) => run.await(await run.spawn(child, "dig", { key: "a" })),
  });
  return desk([calling("delegate"), "done"], { tools: [delegate] });
}

const marked: readonly Scenario[] = [
  {
    name: "a pause in the middle of a round, and a resume",
    shows: ["agent.pausing", "agent.paused", "agent.resumed"],
    run: (stage, options) =>
      interrupted(stage, options, async (gate, runtime) => {
        const agent = await runtime.find("desk");
        const pausing = agent.pause();
        gate.open("late");
        await elapse(stage.clock, pausing);
        await agent.resume();
      }),
  },
  {
    name: "an abort while tools run",
    shows: ["stop.signalled", "tool.settled interrupted", "turn.ended user_requested"],
    run: (stage, options) =>
      interrupted(stage, options, async (_gate, runtime) => (await runtime.find("desk")).abort()),
  },
  {
    name: "an abort while the model answers",
    shows: ["model.failed", "turn.ended user_requested"],
    run: (stage, options) =>
      interrupted(
        stage,
        options,
        async (_gate, runtime) => (await runtime.find("desk")).abort(),
        (gate) => desk(async (_request, { signal }) => await gate.pass(signal)),
      ),
  },
  {
    name: "an abort of a tree",
    shows: ["child.spawned", "turn.ended user_requested"],
    run: (stage, options) =>
      interrupted(
        stage,
        options,
        async (_gate, runtime) => (await runtime.find("desk")).abort(),
        (gate) => {
          const child = reader([calling("held")], { tools: [held(gate)] });
          return desk([calling(askReader("a"), "look")], { tools: [look, subagent(child)] });
        },
      ),
  },
  {
    name: "a pause that holds a call",
    shows: ["intent.refused paused", "agent.resumed", "turn.ended completed"],
    run: (stage, options) =>
      interrupted(
        stage,
        options,
        async (gate, runtime) => {
          const agent = await runtime.find("desk");
          const pausing = agent.pause();
          gate.open("late");
          await elapse(stage.clock, pausing);
          await agent.resume();
        },
        (gate) => desk([calling("held", "held"), "done"], { tools: [held(gate, 1)] }),
      ),
  },
  {
    name: "a working time limit that is reached",
    shows: ["timer.due", "turn.ended time_limit"],
    run: (stage, options) =>
      interrupted(
        stage,
        options,
        async () => undefined,
        (gate) => desk([calling("held")], { tools: [held(gate)], budget: { maxSeconds: 1 } }),
      ),
  },
  {
    name: "a queued turn",
    shows: ["turn.ended completed"],
    run: (stage, options) =>
      interrupted(
        stage,
        options,
        async (gate, runtime) => {
          const agent = await runtime.find("desk");
          const queued = agent.executeTurn("next", { ifBusy: "queue" });
          await queued.id;
          gate.open("late");
          await elapse(stage.clock, queued.result);
        },
        (gate) => desk([calling("held"), "done", "next done"], { tools: [held(gate)] }),
      ),
  },
];

export const treeScenarios: readonly Scenario[] = [...trees, ...backgroundScenarios, ...marked];
