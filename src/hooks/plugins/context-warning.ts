import { functionRule, optionsOf, ruleOf } from "../../base/index.ts";
import type { HookContext } from "../hook-context.ts";
import type { Plugin } from "../hooks.ts";

export interface ContextWarningOptions {
  /** How full the model's context window must be, above 0 and at most 100. Default 80. */
  readonly atPercent?: number | undefined;
  /** Called with the warning's text besides the `warning` event. Default: nothing. */
  readonly warn?: ((message: string, run: HookContext) => void | Promise<void>) | undefined;
}

const percentRule = ruleOf(
  "a number above 0 and at most 100",
  (value) => typeof value === "number" && value > 0 && value <= 100,
);

/**
 * A `warning` event with code `context_percent`, once per turn, when the model's context window is filling up. The model
 * must know its `contextWindow`.
 */
export function contextWarning(options?: ContextWarningOptions): Plugin {
  const { atPercent = 80, warn } = optionsOf<ContextWarningOptions>(options, "contextWarning()", {
    rules: { atPercent: percentRule, warn: functionRule },
    instead: { percent: "atPercent" },
  });
  return {
    name: "context-warning",
    hooks: {
      async beforeLlm(_draft, run) {
        const { contextPercent } = run;
        if (contextPercent === null || contextPercent < atPercent) return;
        const message = `the context window is ${Math.round(contextPercent)} % full (warned at ${atPercent} %)`;
        if (run.emitWarning("context_percent", message)) await warn?.(message, run);
      },
    },
  };
}
