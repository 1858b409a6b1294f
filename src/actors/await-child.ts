import { describeValue } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { CallState, Entry, EntryOf } from "../state/index.ts";
import { AwaitedChild, type AwaitOptions } from "../tools/index.ts";
import type { Host } from "./host.ts";
import { type CallResult, errorResult } from "./settle-call.ts";
import { resultOfChild } from "./settle-child.ts";

/** What `run.await(child)` gives: only a child that the code of this turn has spawned can be waited for. */
export function awaitedChildOf(
  host: Host,
  turnId: string,
  child: { readonly agentId: string },
  { prefix }: AwaitOptions = {},
): AwaitedChild {
  const spawned = entriesOf(host, turnId).some(
    (entry) => entry.type === "child.spawned" && entry.callId === undefined && entry.childId === child?.agentId,
  );
  if (spawned) return new AwaitedChild(child.agentId, prefix);
  throw new InvalidInputError(
    `run.await() takes a child that this turn has started with run.spawn(); ${JSON.stringify(child?.agentId)} is none`,
  );
}

/** The result of the child that the tool has left its own to; undefined when the call now waits for it. */
export function awaitChild(
  host: Host,
  { turnId, step, callId }: CallState,
  { childId, prefix }: AwaitedChild,
): CallResult | undefined {
  const entries = entriesOf(host, turnId);
  // The class is public: nobody would ever tell of a child that is none.
  if (!entries.some((entry) => entry.type === "child.spawned" && entry.childId === childId)) {
    const text = `Error: the tool left its result to ${describeValue(childId)}, which is no subagent of this turn.`;
    return errorResult(text, "child_unknown");
  }
  const ended = entries.find(
    (entry): entry is EntryOf<"child.ended"> => entry.type === "child.ended" && entry.childId === childId,
  );
  if (ended) return resultOfChild(ended, prefix);
  host.append({
    type: "child.awaited",
    turnId,
    step,
    callId,
    childId,
    ...(prefix === undefined ? {} : { prefix }),
  });
  return undefined;
}

/** Also what has not entered the machines yet. */
function entriesOf(host: Host, turnId: string): Entry[] {
  return [...host.memory(turnId).entries, ...host.undelivered()];
}
