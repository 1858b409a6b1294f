import type { Limits } from "./limits.ts";

/** What a budget for an agent's whole life asks of each of its turns: to end with an answer. Null: nothing. */
export function turnFlagsOf({ finalAnswer }: Limits): Limits | null {
  return finalAnswer === true ? { finalAnswer } : null;
}
