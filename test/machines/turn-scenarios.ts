import { z } from "zod";
import { defineTool, ModelError, subagent } from "../../src/index.ts";
import { calling } from "../support/turn-probes.ts";
import { desk, reader, type Scenario, turns } from "./scenario.ts";
import { broken, flaky, leave, look, send, think } from "./scenario-tools.ts";

const cut = new ModelError("overloaded", { retryable: true, status: 503, mayHaveBeenSent: true });
const refusedByModel = new ModelError("bad request", { retryable: false, status: 400, mayHaveBeenSent: true });

const plain: readonly Scenario[] = [
  {
    name: "two plain turns",
    shows: ["turn.ended completed"],
    run: turns(() => desk(["one", "two"]), ["first", "second"]),
  },
  {
    name: "a turn without a message",
    shows: ["turn.ended completed"],
    run: turns(() => desk(["one", "two"]), ["first", null]),
  },
  {
    name: "parallel calls, two rounds",
    shows: ["tool.settled success"],
    run: turns(() =>
      desk([calling("look", "look", "look"), calling({ name: "look", arguments: { at: "x" } }), "done"]),
    ),
  },
  {
    name: "failing, unknown and invalid calls, and a recovery",
    shows: ["tool.settled error", "tool.settled not_found", "tool.settled invalid", "turn.ended completed"],
    run: turns(() =>
      desk([calling("broken", "look"), calling("nowhere"), calling({ name: "look", arguments: { at: 7 } }), "done"], {
        tools: [look, broken],
        maxConsecutiveToolFailures: 5,
      }),
    ),
  },
  {
    name: "failed rounds until the turn fails, then another turn",
    shows: ["tool.settled error", "turn.ended error", "turn.ended completed"],
    run: turns(
      () => desk([calling("broken"), calling("broken"), "again"], { tools: [broken], maxConsecutiveToolFailures: 2 }),
      ["go", "again"],
    ),
  },
  {
    name: "a tool that is retried",
    shows: ["tool.retrying", "tool.settled success"],
    run: turns(() => desk([calling("flaky"), "done"], { tools: [flaky()] })),
  },
  {
    name: "an unknown outcome",
    shows: ["tool.settled outcome_unknown"],
    run: turns(() => desk([calling("send"), "done"], { tools: [send] })),
  },
  {
    name: "a tool that stops the run",
    shows: ["stop.signalled", "turn.ended stop_requested"],
    run: turns(() => desk([calling("leave", "look")], { tools: [leave, look] })),
  },
  {
    name: "a model that answers at the second attempt",
    shows: ["model.failed", "turn.ended completed"],
    run: turns(() => desk([{ error: cut }, calling("look"), { error: cut }, "done"])),
  },
  {
    name: "a model error that is not retried",
    shows: ["model.failed", "turn.ended error"],
    run: turns(() => desk([{ error: refusedByModel }, "ok"]), ["go", null]),
  },
  {
    name: "a tool that spawns a subagent and saves an artifact",
    shows: ["child.spawned", "artifact.saved", "child.ended completed"],
    run: turns(() => {
      const child = reader("read");
      const delegate = defineTool({
        name: "delegate",
        description: "Has it read.",
        parameters: z.object({}),
        effect: "none",
        execute: async (_args, run) => {
          const { result } = await run.spawn(child, "read this", { key: "one" });
          await run.saveArtifact({ name: "notes", contentType: "text/plain", content: "long" });
          return (await result).text;
        },
      });
      return desk([calling("delegate"), "done"], { tools: [delegate, subagent(child)] });
    }),
  },
  {
    name: "a model call inside a tool",
    shows: ["generate.responded"],
    run: turns(() => desk([calling("think"), "deep", "done"], { tools: [think] })),
  },
];

const limited: readonly Scenario[] = [
  {
    name: "the limit of steps",
    shows: ["budget.warning", "turn.ended steps_limit"],
    run: turns(() => desk(calling("look"), { budget: { maxSteps: 3 } })),
  },
  {
    name: "no step allowed",
    shows: ["intent.refused budget", "turn.ended steps_limit"],
    run: turns(() => desk("never", { budget: { maxSteps: 0 } })),
  },
  {
    name: "the limit of tool calls",
    shows: ["intent.refused budget", "tool.settled interrupted"],
    run: turns(() => desk([calling("look", "look"), calling("look"), "done"], { budget: { maxToolCalls: 2 } })),
  },
  {
    name: "the limit of tokens",
    shows: ["intent.refused budget", "turn.ended token_limit"],
    run: turns(() => desk(calling("look"), { budget: { maxTokens: 420 }, maxOutputTokens: 300 })),
  },
];

export const turnScenarios: readonly Scenario[] = [...plain, ...limited];
