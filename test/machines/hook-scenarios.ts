import { AgentStopError, type HookName, type Hooks } from "../../src/index.ts";
import type { OnCompleteDraft } from "../../src/hooks/index.ts";
import { hookNames } from "../../src/state/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { calling } from "../support/turn-probes.ts";
import { desk, type Scenario, turns } from "./scenario.ts";
import { broken, leave, look } from "./scenario-tools.ts";

/** Hooks of every name, each doing what its phase allows. */
const everyHook: Hooks = {
  afterUserInput: [(draft) => draft.add({ role: "user", content: `they said ${draft.input}` }), () => undefined],
  beforeLlm: [
    (draft) => draft.add({ role: "system", content: "mind the gap" }),
    (draft) => draft.edit(draft.messages[0]?.id ?? "", "edited"),
  ],
  afterLlm: (draft) => draft.add({ role: "user", content: `it said ${draft.response.text}` }),
  beforeTools: [
    (draft) => draft.add({ role: "user", content: `${draft.calls.length} calls` }),
    (draft) => draft.changeArguments(draft.calls[0]?.callId ?? "", { at: "there" }),
  ],
  beforeEachTool: async (_draft, run) =>
    void (await run.generate({ messages: [{ role: "user", content: "may it?" }] })),
  afterEachTool: [(_draft, run) => void run.emitWarning("seen", "a result came"), () => undefined],
  onError: () => undefined,
  afterTools: (draft) => draft.add({ role: "user", content: `${draft.results.length} results` }),
  onComplete: (draft) => draft.add({ role: "assistant", content: `it is ${draft.end.outcome}` }),
};

const twoRounds = [calling("look", "broken"), "side", "side", calling("look"), "side", "done"] as const;

/** A hook of this name that runs `code`, and an onComplete hook that adds the last word. */
function hooksOf(hook: HookName, code: (draft: { stop?: (reason: string) => void }) => void): Hooks {
  const onComplete: Hooks["onComplete"] = (draft) => (hook === "onComplete" ? code({}) : draft.add(lastWord));
  return { ...(hook === "onComplete" ? {} : { [hook]: code }), onComplete };
}

const lastWord = { role: "assistant", content: "that was it" } as const;

function oneRound(hooks: Hooks): Scenario["run"] {
  const tools = [look, broken];
  return turns(() => desk([calling("look", "broken"), "done", "again"], { tools, hooks }), ["go", "again"]);
}

const stops: readonly Scenario[] = hookNames
  .filter((hook) => hook !== "onComplete")
  .map((hook) => ({
    name: `a stop in ${hook}`,
    shows: [hook === "beforeEachTool" ? "stop.signalled" : `hook.applied ${hook}`, "turn.ended stop_requested"],
    run: oneRound(hooksOf(hook, (draft) => draft.stop?.("enough"))),
  }));

const stopErrors: readonly Scenario[] = hookNames.map((hook) => ({
  name: `AgentStopError in ${hook}`,
  shows: ["stop.signalled", "turn.ended stop_requested"],
  run: oneRound(
    hooksOf(hook, () => {
      throw new AgentStopError("not today");
    }),
  ),
}));

const throwing: readonly Scenario[] = hookNames.map((hook) => ({
  name: `an error in ${hook}`,
  shows: hook === "beforeEachTool" ? ["tool.settled error"] : ["effect.failed", "turn.ended error"],
  run: oneRound(
    hooksOf(hook, () => {
      throw new RangeError("the hook broke");
    }),
  ),
}));

/** Every hook, each waiting a few turns of the event loop, so that agents are restored during the wait. */
const slowHooks: Hooks = Object.fromEntries(hookNames.map((hook) => [hook, async () => await loopTurns(5)]));

function addOne(draft: Pick<OnCompleteDraft, "add">): void {
  draft.add({ role: "assistant", content: "one" });
}

const changing: readonly Scenario[] = [
  {
    name: "all nine hooks, over two rounds",
    shows: [
      ...hookNames.filter((hook) => hook !== "beforeEachTool").map((hook) => `hook.applied ${hook}`),
      ...["input", "answer", "end"].map((phase) => `hooks.settled ${phase}`),
      "call.reviewed",
      "messages.released",
      "generate.responded",
      "warning",
      "turn.ended completed",
    ],
    run: turns(() => desk(twoRounds, { tools: [look, broken], hooks: everyHook })),
  },
  {
    name: "all nine hooks, a final answer at once, and another turn",
    shows: ["hook.applied onComplete", "turn.ended completed"],
    run: turns(() => desk(["one", "two"], { hooks: everyHook }), ["first", null]),
  },
  {
    name: "all nine hooks, all of them slow",
    shows: ["hook.applied onError", "call.reviewed", "hook.applied onComplete", "turn.ended completed"],
    run: turns(() => desk([calling("look", "broken", "look"), "done"], { tools: [look, broken], hooks: slowHooks })),
  },
  {
    name: "messages that two hooks hold back over a round",
    shows: ["messages.released"],
    run: turns(() =>
      desk([calling("look", "look"), "done"], { hooks: { afterLlm: addOne, beforeTools: [addOne, addOne] } }),
    ),
  },
  {
    name: "messages held back over a round in which a tool stops the turn",
    shows: ["messages.released", "turn.ended stop_requested"],
    run: turns(() => {
      const hooks: Hooks = {
        beforeTools: (draft) => draft.add({ role: "user", content: "held" }),
        onComplete: (draft) => draft.add({ role: "assistant", content: "that was it" }),
      };
      return desk([calling("leave", "look")], { tools: [leave, look], hooks });
    }),
  },
  {
    name: "calls that hooks change and deny",
    shows: ["tool.settled denied", "tool.settled invalid", "tool.settled success"],
    run: turns(() => {
      const hooks: Hooks = {
        afterLlm: (draft) => {
          for (const { callId } of draft.calls.slice(0, 1)) draft.deny(callId, "not this one");
        },
        beforeTools: (draft) => draft.changeArguments(draft.calls[1]?.callId ?? "", { at: "elsewhere" }),
        beforeEachTool: (draft) => {
          if (draft.call.callId.endsWith(":2")) draft.deny("nor that one");
          if (draft.call.callId.endsWith(":3")) draft.changeArguments({ at: 7 });
        },
        onError: () => undefined,
      };
      return desk([calling("look", "look", "look", "look"), "done"], { hooks });
    }),
  },
  {
    name: "a hook that requests one more step after a final answer",
    shows: ["hook.applied afterLlm", "turn.ended completed"],
    run: turns(() => {
      let answers = 0;
      const hooks: Hooks = {
        afterLlm: (draft) => {
          answers += 1;
          if (answers < 3) draft.continue();
        },
      };
      return desk(["one", "two", "three"], { hooks });
    }),
  },
  {
    name: "a hook that requests one more step after a tool has stopped the turn",
    shows: ["stop.signalled", "hook.applied afterTools", "turn.ended stop_requested"],
    run: turns(() =>
      desk([calling("leave"), "more"], { tools: [leave], hooks: { afterTools: (draft) => draft.continue() } }),
    ),
  },
  {
    name: "hooks that add messages, and instructions from a function",
    shows: ["instructions.resolved", "hook.applied beforeLlm"],
    run: turns(() =>
      desk([calling("look"), "done"], {
        instructions: async () => "be brief",
        hooks: {
          beforeLlm: [(draft) => draft.add({ role: "user", content: "mind the gap" }), () => undefined],
          afterTools: (draft) => draft.add({ role: "user", content: "that was a tool" }),
        },
      }),
    ),
  },
];

export const hookScenarios: readonly Scenario[] = [...changing, ...stops, ...stopErrors, ...throwing];
