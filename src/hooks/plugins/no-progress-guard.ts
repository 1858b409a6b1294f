import { optionsOf, stableStringify, wholeNumberRule } from "../../base/index.ts";
import type { ToolExecutionTrace, TraceEntry } from "../../state/index.ts";
import type { Plugin } from "../hooks.ts";

export interface NoProgressGuardOptions {
  /** How often the same rounds may come in a row before the turn is stopped, at least 2. Default 3. */
  readonly repeats?: number | undefined;
}

/**
 * Stops a turn that goes round in circles: the same calls with the same arguments and the same results again and again,
 * in each round or in a cycle of several. All it knows is the turn's trace, so a restart changes nothing.
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

/** What each round of the turn asked and got, as one text, whatever the order of its calls. */
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
