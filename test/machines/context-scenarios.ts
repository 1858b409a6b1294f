import { z } from "zod";
import { type AgentOptions, dropOldest, type Hooks, ModelError, reactHistory, summarize } from "../../src/index.ts";
import { elapse } from "../support/journal-probes.ts";
import { calling, createGate } from "../support/turn-probes.ts";
import { desk, type Scenario, turns } from "./scenario.ts";
import { look } from "./scenario-tools.ts";

const prompts = ["one", "two", "three", "four"] as const;
const hooks: Hooks = {
  afterEachTool: () => undefined,
  afterTools: (draft) => draft.add({ role: "user", content: "seen" }),
  onComplete: () => undefined,
};
const narrow: Partial<AgentOptions> = { history: reactHistory({ contextWindowSize: 2, expandBy: 2 }), hooks };

const compacting: readonly Scenario[] = [
  {
    name: "a conversation cut to its newest messages",
    shows: ["context.compacted"],
    run: turns(() => desk("ok", { maxMessages: 3, autoCompact: { strategy: dropOldest({ keep: 2 }) } }), [...prompts]),
  },
  {
    name: "a conversation summarised within a turn with rounds",
    shows: ["context.compacted", "generate.responded", "turn.ended completed"],
    run: turns(
      () =>
        desk((request) => (request.messages.length % 3 === 0 ? calling("look") : "ok"), {
          maxMessages: 4,
          autoCompact: { strategy: summarize({ keep: 2 }) },
          hooks,
        }),
      [...prompts],
    ),
  },
  {
    name: "a prompt that the model refuses as too long, once",
    shows: ["model.failed", "context.compacted", "turn.ended completed"],
    run: turns(
      () => desk(["a", "b", { error: tooLong() }, "c"], { autoCompact: { strategy: dropOldest({ keep: 2 }) } }),
      [...prompts].slice(0, 3),
    ),
  },
  {
    name: "a prompt that stays too long",
    shows: ["model.failed", "turn.ended error"],
    run: turns(
      () => desk(["a", { error: tooLong() }, { error: tooLong() }, { error: tooLong() }, "b"], { autoCompact: true }),
      ["one", "two"],
    ),
  },
  {
    name: "a conversation past its limit, without compaction",
    shows: ["warning", "turn.ended completed"],
    run: turns(() => desk("ok", { maxMessages: 2 }), [...prompts]),
  },
  {
    name: "a conversation that is cleared between turns, after a compaction",
    shows: ["conversation.cleared", "context.compacted"],
    run: async (stage, options) => {
      const definition = desk("ok", { maxMessages: 2, autoCompact: { strategy: dropOldest({ keep: 1 }) } });
      const runtime = await stage.open({ ...options, agents: [definition] });
      const agent = await runtime.agent("desk", { agentId: "desk" });
      await agent.start();
      for (const prompt of prompts) {
        await elapse(stage.clock, agent.executeTurn(prompt).result);
        if (prompt === "three") await agent.clear();
      }
      return runtime;
    },
  },
];

function tooLong(): ModelError {
  const details = { kind: "context_length" };
  return new ModelError("too long", { retryable: false, status: 400, mayHaveBeenSent: true, details });
}

const internal: readonly Scenario[] = [
  {
    name: "a window that the model widens, in rounds without other calls",
    shows: ["context.expanded", "turn.ended completed"],
    run: turns(
      () => desk(["a", "b", "c", calling("load_history"), calling("load_history"), "d"], narrow),
      [...prompts],
    ),
  },
  {
    name: "earlier calls that the model lists and loads, together with a tool call",
    shows: ["context.loaded", "tool.settled not_found", "turn.ended completed"],
    run: turns(
      () =>
        desk(
          [
            calling("look", "look"),
            "a",
            calling("list_tool_calls"),
            calling({ name: "load_tool_results", arguments: { callIds: ["desk#1:1:0"] } }, "look", "nowhere"),
            calling({ name: "load_tool_results", arguments: { callIds: ["none"] } }, { name: "list_tool_calls" }),
            "b",
          ],
          { ...narrow, tools: [look] },
        ),
      ["one", "two"],
    ),
  },
];

const output = z.object({ colour: z.string() });
const blue = '{"colour":"blue"}';

const checked: readonly Scenario[] = [
  {
    name: "an answer that fits its schema, after a round",
    shows: ["output.checked fits", "hooks.settled answer", "turn.ended completed"],
    run: turns(() => desk([calling("look"), blue], { output, hooks })),
  },
  {
    name: "an answer that is requested again",
    shows: ["output.checked misfit", "output.checked fits", "turn.ended completed"],
    run: turns(() => desk(["blue", calling("look"), blue], { output, hooks })),
  },
  {
    name: "an answer that does not fit at the second attempt either, and another turn",
    shows: ["output.checked misfit", "turn.ended error", "turn.ended completed"],
    run: turns(() => desk(["blue", "{}", blue], { output, hooks }), ["one", "two"]),
  },
];

const dropped: readonly Scenario[] = [
  { name: "a first call", prompt: "go", script: ["done"], at: 1, options: {} },
  { name: "the call of a turn without a message", prompt: null, script: ["done"], at: 1, options: {} },
  {
    name: "a step requested by a hook",
    prompt: "go",
    script: ["one", "two"],
    at: 2,
    options: {
      hooks: { afterLlm: (draft, { step }) => void (step === 1 && draft.continue()) },
    } satisfies Partial<AgentOptions>,
  },
  { name: "a repair", prompt: "go", script: ["blue", blue], at: 2, options: { output } },
].map(
  ({ name, prompt, script, at, options }) =>
    ({
      name: `a pause that drops ${name}`,
      shows: ["model.failed", "agent.paused", "agent.resumed", "turn.ended completed"],
      run: async (stage, given) => {
        const gate = createGate<string>();
        const answers = [...script];
        const definition = desk(async (_request, { index, signal }) => {
          if (index === at - 1) await gate.pass(signal);
          return answers.shift() ?? "";
        }, options);
        const runtime = await stage.open({ ...given, agents: [definition] });
        const agent = await runtime.agent("desk", { agentId: "desk" });
        await agent.start();
        const turn = agent.executeTurn(prompt);
        await gate.reached();
        await elapse(stage.clock, agent.pause({ now: true }));
        await agent.resume();
        await elapse(stage.clock, turn.result);
        return runtime;
      },
    }) satisfies Scenario,
);

export const contextScenarios: readonly Scenario[] = [...compacting, ...internal, ...checked, ...dropped];
