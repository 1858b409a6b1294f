import { nameRule, optionsOf, stableStringify, wholeNumberRule } from "../../base/index.ts";
import type { ToolExecutionTrace, TraceEntry } from "../../state/index.ts";
import type { Plugin } from "../hooks.ts";
import { oneLine } from "./reporting.ts";

export interface NoProgressGuardOptions {
  /** How many identical rounds in a row stop the turn, at least 2. Default 3. */
  readonly repeats?: number | undefined;
}

/**
 * Stops a turn that runs in circles: the same calls with the same arguments and results repeat, in every round or in a cycle of
 * several rounds. It reads only the turn's trace, so a restart does not affect it.
 */
export function noProgressGuard(options?: NoProgressGuardOptions): Plugin {
  const { repeats = 3 } = optionsOf<NoProgressGuardOptions>(options, "noProgressGuard()", {
    rules: { repeats: wholeNumberRule(2) },
  });
  return {
    name: "no-progress-guard",
    hooks: {
      afterTools(draft, { trace }) {
        const rounds = roundsOf(trace);
        const isCycle = (length: number): boolean => {
          const tail = rounds.slice(-length * repeats);
          return tail.every((round, index) => round === tail[index % length]);
        };
        for (let length = 1; length * repeats <= rounds.length; length += 1) {
          if (!isCycle(length)) continue;
          const names = [...new Set(draft.results.map(({ call }) => call.name))].join(", ");
          draft.stop(`no progress: the same calls (last ${names}) gave the same results ${repeats} times in a row`);
          return;
        }
      },
    },
  };
}

/** One text per round with its calls and results, independent of the order of the calls. */
function roundsOf(trace: readonly TraceEntry[]): string[] {
  const calls = trace.filter((entry): entry is ToolExecutionTrace => entry.type === "tool_execution");
  const rounds = Map.groupBy(calls, ({ step }) => step);
  return [...rounds.values()].map((round) =>
    round
      .map(({ name, arguments: args, status, result, error }) =>
        stableStringify([name, args, status, result ?? error ?? ""]),
      )
      .sort()
      .join("\n"),
  );
}

export interface ReflectionOptions {
  /** The prompt that asks the model about the round. Default: a built-in prompt. */
  readonly prompt?: string | undefined;
  /** Reflects after every n-th step. Default 1: after each round. */
  readonly every?: number | undefined;
}

const defaultPrompt =
  "What do the results of these tool calls show, and what follows from them for the task? Answer in one or two sentences.";

/** How many characters of each call's arguments and result the model sees. */
const shownCharacters = 2_000;

/**
 * After a round of tool calls, asks the model what the results show, and adds its answer as a message. Uses the agent's budget.
 */
export function reflection(options?: ReflectionOptions): Plugin {
  const { prompt = defaultPrompt, every = 1 } = optionsOf<ReflectionOptions>(options, "reflection()", {
    rules: { prompt: nameRule, every: wholeNumberRule(1) },
  });
  return {
    name: "reflection",
    hooks: {
      async afterTools(draft, run) {
        if (run.step % every !== 0) return;
        const round = draft.results.map(({ call, outcome, text }) => {
          const [args, result] = [call.arguments, text].map((one) => oneLine(one, shownCharacters));
          return `${call.name} ${args} (${outcome}): ${result}`;
        });
        const content = `${prompt}\n\nTask: ${run.prompt}\n\nTool calls:\n${round.join("\n")}`;
        const { content: answer } = await run.generate({ messages: [{ role: "user", content }] });
        if (answer.trim() !== "") draft.add({ role: "user", content: `Reflection on the last tool calls: ${answer}` });
      },
    },
  };
}
