import type { CliContext } from "../cli-context.ts";

/** How wide a line may be: the terminal's columns; a pipe takes any, unless `COLUMNS` says how many. */
export function columnsOf({ stdout, environment }: Pick<CliContext, "stdout" | "environment">): number {
  if (stdout.isTTY && stdout.columns > 0) return stdout.columns;
  const given = Number(environment["COLUMNS"]);
  return Number.isSafeInteger(given) && given > 0 ? given : Number.POSITIVE_INFINITY;
}
