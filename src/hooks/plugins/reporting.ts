import { functionRule, optionsOf, ruleOf } from "../../base/index.ts";
import type { HookContext, Plugin } from "../hooks.ts";

export interface ContextWarningOptions {
  /** Warns once the model's context window is this full, in percent; above 0 and at most 100. Default 80. */
  readonly atPercent?: number | undefined;
  /** Called with the warning's text, in addition to the `warning` event. Default: none. */
  readonly warn?: ((message: string, run: HookContext) => void | Promise<void>) | undefined;
}

const percentRule = ruleOf(
  "a number above 0 and at most 100",
  (value) => typeof value === "number" && value > 0 && value <= 100,
);

/**
 * Emits a `warning` event with code `context_percent`, once per turn, when the model's context window is filling up. The model
 * must have a `contextWindow`.
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

export interface ToolLoggingOptions {
  /** Called with one line at a time, without a trailing line break. An error that it throws fails the call or the turn. */
  readonly write: (line: string) => void;
}

/** Maximum number of characters of arguments and error messages per line. */
const shownCharacters = 200;

/** Writes a line when a tool call starts, fails and ends, with its duration. Results are not logged. */
export function toolLogging(options: ToolLoggingOptions): Plugin {
  const { write } = optionsOf<ToolLoggingOptions>(options, "toolLogging()", {
    rules: { write: functionRule },
    needed: ["write"],
  });
  return {
    name: "tool-logging",
    hooks: {
      beforeEachTool({ call }) {
        write(`START ${call.name} ${oneLine(JSON.stringify(call.arguments), shownCharacters)} [${call.callId}]`);
      },
      onError({ call, result }) {
        const why = result.error?.message ?? result.text;
        write(`ERROR ${oneLine(call.name, shownCharacters)} ${oneLine(why, shownCharacters)} [${call.callId}]`);
      },
      afterEachTool({ call, result: { outcome, durationMs } }) {
        write(`END ${oneLine(call.name, shownCharacters)} ${outcome} in ${durationMs} ms [${call.callId}]`);
      },
    },
  };
}

/**
 * A text for use within one line: without line breaks or other control characters, cut at `maximum` characters (UTF-16 units).
 */
export function oneLine(text: string, maximum: number): string {
  // Cut first, so that a text of many megabytes costs no more than a short one.
  const start = text
    .slice(0, maximum)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ");
  return text.length > maximum ? `${start}…` : start;
}
