import { functionRule, optionsOf } from "../../base/index.ts";
import type { Plugin } from "../hooks.ts";
import { oneLine } from "./one-line.ts";

export interface ToolLoggingOptions {
  /** Gets one line at a time, without a line break at its end. What it throws fails the call or the turn. */
  readonly write: (line: string) => void;
}

/** Characters of arguments and error messages that a line shows. */
const shownCharacters = 200;

/** A line when a tool call begins, when it fails, and when it has ended, with its duration. Results are not shown. */
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
