import { systemClock } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import type { CliContext } from "../cli-context.ts";
import { jsonReporter, plainReporter, quietReporter } from "./line-reporters.ts";
import { liveReporter } from "./live-reporter.ts";
import type { Reporter } from "./reporter.ts";
import { paintFor } from "./styles.ts";

export interface ViewOptions {
  readonly json?: boolean | undefined;
  readonly quiet?: boolean | undefined;
}

export type ViewMode = "json" | "quiet" | "live" | "plain";

/** What was asked for; else a drawing where the output is a terminal that can be drawn on, and lines elsewhere. */
export function viewModeOf(options: ViewOptions, isTerminal: boolean, term: string | undefined): ViewMode {
  if (options.json === true) return "json";
  if (options.quiet === true) return "quiet";
  return isTerminal && term !== "dumb" ? "live" : "plain";
}

export function createReporter(
  { stdout, out, note, environment }: CliContext,
  options: ViewOptions,
  job: { readonly rootAgentId: string; readonly accounts: () => Promise<readonly Account[]> },
): Reporter {
  const mode = viewModeOf(options, stdout.isTTY, environment["TERM"]);
  if (mode === "json") return jsonReporter(out, note);
  if (mode === "quiet") return quietReporter(out, note);
  if (mode === "plain") return plainReporter(out);
  return liveReporter({ stream: stdout, clock: systemClock, paint: paintFor(environment), ...job });
}
