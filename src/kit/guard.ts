import { flagRule, functionRule, nameRule, optionsOf } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Plugin, PluginGuards } from "../hooks/index.ts";

/** Options of `guard()`: at least one of `input`, `toolCall`, `toolResult` and `output`. */
export interface GuardOptions extends PluginGuards {
  /** Name of the plugin, which reasons and events name; an agent may have several guards. Default `guard`. */
  readonly name?: string | undefined;
}

/**
 * A plugin that checks what enters and leaves an agent, before any effect. Each function returns nothing to let a value pass, `{ block:
 * reason }` or `{ rewrite: value }`. A function that throws, or returns anything else, blocks. Throws `InvalidInputError` for invalid
 * options.
 */
export function guard(given: GuardOptions): Plugin {
  const { name = "guard", ...guards } = optionsOf<GuardOptions>(given, "guard()", {
    rules: {
      name: nameRule,
      input: functionRule,
      toolCall: functionRule,
      toolResult: functionRule,
      output: functionRule,
      subagents: flagRule,
    },
    instead: {
      inputs: "input",
      outputs: "output",
      toolCalls: "toolCall",
      toolResults: "toolResult",
      inherit: "subagents",
    },
  });
  if (!guards.input && !guards.toolCall && !guards.toolResult && !guards.output) {
    throw new InvalidInputError("guard() checks nothing; give it input, toolCall, toolResult or output");
  }
  return { name, guards: Object.freeze(guards) };
}
