import { type AttemptEnd, type CallResult, errorResult } from "../../actors/index.ts";
import type { DeadCause } from "../../queues/index.ts";
import type { CallEnd, QueuedCall } from "../../state/index.ts";
import type { LeftByRun } from "./queued-run.ts";

/** The end of an attempt, with what the code has left to be written by the owner. */
export function callEndOf(name: string, end: AttemptEnd, left: LeftByRun): CallEnd {
  if (end.type === "retrying") return end;
  const { spawns, artifacts } = left;
  if (end.type === "awaiting") {
    const { childId, prefix } = end.child;
    return { type: "ordered", spawns, awaits: childId, artifacts, ...(prefix === undefined ? {} : { prefix }) };
  }
  const [spawn] = spawns;
  if (spawn && end.result.outcome === "success" && !end.stop) {
    const text = `Error: the queued tool "${name}" asked for the subagent "${spawn.key}" and did not return run.await(child), so that it was not started. What the tool did itself may have taken effect.`;
    return endOfResult(errorResult(text, "not_awaited"), left);
  }
  const settled = endOfResult(end.result, left);
  return end.stop ? { ...settled, stop: end.stop } : settled;
}

export function endOfResult({ outcome, text, error, artifact }: CallResult, left?: LeftByRun) {
  const artifacts = [...(left?.artifacts ?? []), ...(artifact ? [artifact] : [])];
  return {
    type: "settled" as const,
    outcome,
    text,
    error: error ?? null,
    ...(artifacts.length > 0 ? { artifacts } : {}),
    ...(artifact ? { artifactId: artifact.artifactId } : {}),
  };
}

/** The agent goes on without a tool that is gone (design, The journal). */
export function endOfGone(queued: QueuedCall, name: string | undefined): CallEnd {
  const text = `The tool ${name === undefined ? "of this call" : `"${name}"`} is not available any more.`;
  const isOpen = queued.claimedBy !== null && !queued.isRepeatable;
  return endOfResult(errorResult(text, "tool_unavailable", isOpen ? "outcome_unknown" : "error"));
}

/** Why a job was given up, for the model. */
export function wordsOf({ code, message, deaths }: DeadCause): string {
  switch (code) {
    case "worker_died":
      return deaths > 1
        ? `${deaths} workers died, or were not heard of for too long, while they ran it`
        : "its worker died, or was not heard of for too long, while it ran it";
    case "timed_out":
      return "its job did not end in time";
    case "stopped":
      return "its worker was stopped while it ran it";
    default:
      return message.replace(/\.$/, "");
  }
}
