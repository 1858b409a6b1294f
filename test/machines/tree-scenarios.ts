import { defineAgent, ModelError, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse } from "../support/journal-probes.ts";
import { calling } from "../support/turn-probes.ts";
import { askReader, desk, interrupted, reader, type Scenario, turns } from "./scenario.ts";
import { held, look } from "./scenario-tools.ts";

const refusedByModel = new ModelError("bad request", { retryable: false, status: 400, mayHaveBeenSent: true });

const trees: readonly Scenario[] = [
  {
    name: "two subagents in one round, beside a tool",
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

const marked: readonly Scenario[] = [
  {
    name: "a pause in the middle of a round, and its end",
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
    name: "working time that runs out",
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
    name: "a turn that waits in line",
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

export const treeScenarios: readonly Scenario[] = [...trees, ...marked];
