import type { BackgroundChild } from "./host.ts";
import { type CallResult, errorResult } from "./settle-call.ts";

/** What the model is told of an id that is none of its own subagents'. */
export function unknownChild(
  children: readonly BackgroundChild[],
  ...asked: readonly (string | undefined)[]
): CallResult | undefined {
  const unknown = asked.filter((id) => id !== undefined && !children.some(({ childId }) => childId === id));
  if (unknown.length === 0) return undefined;
  const known =
    children.length === 0
      ? "You have started none in the background."
      : `Those that you have started in the background are: ${children.map(({ childId, name }) => `${childId} (${name})`).join(", ")}.`;
  return errorResult(`You have no subagent ${unknown.join(", ")}. ${known}`, "not_found");
}
