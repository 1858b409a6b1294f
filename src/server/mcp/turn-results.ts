import type { CallToolResult } from "@modelcontextprotocol/server";
import type { TurnResult } from "../../runtime/index.ts";
import type { AgentRequest, Json, JsonObject } from "../../state/index.ts";
import { outputOf } from "../core/turn-events.ts";
import type { ShownStatus } from "./tool-schemas.ts";
import { TURN_RESULT } from "./served-agents.ts";

/** Ids of a turn, as clients know them. */
export interface TurnIds {
  readonly turnId: string;
  /** Absent if its conversation has no name. */
  readonly conversation?: string;
}

/** The result of an ended turn. A turn that did not complete is an error that the calling model can read. */
export function endedResult(result: TurnResult, ids: TurnIds): CallToolResult {
  const { status, stopReason, spent } = result;
  const { inputTokens, outputTokens, cost } = spent.tree;
  const text = status === "completed" ? result.text : explanationOf(result);
  const output = status === "completed" ? outputOf(result) : undefined;
  return shown(
    { status, text, ids },
    { stopReason, usage: { inputTokens, outputTokens, cost }, ...(output === undefined ? {} : { output }) },
  );
}

/** Why a turn did not complete. The message of an error may contain the operator's addresses and files, so it is left out. */
function explanationOf({ status, stopReason, stop, text, error }: TurnResult): string {
  if (status === "failed") return `The agent failed (${error?.code ?? stopReason}).`;
  const why = stop === null ? stopReason.replaceAll("_", " ") : `a limit of the agent is reached: ${limitText(stop)}`;
  return text === "" ? `The turn stopped: ${why}.` : `The turn stopped: ${why}. Its text so far:\n${text}`;
}

function limitText({ limit, used, max }: NonNullable<TurnResult["stop"]>): string {
  return used === null || max === null ? limit : `${limit}, ${used} of ${max}`;
}

/** The result of a turn that has not ended within the call's time. */
export function workingResult(ids: TurnIds): CallToolResult {
  const text = `The agent is still working. Call ${TURN_RESULT} with turnId ${ids.turnId} to wait for its answer.`;
  return shown({ status: "working", text, ids });
}

/** The result of a turn that waits for a person, for a client that cannot ask one. */
export function waitingResult(requests: readonly AgentRequest[], ids: TurnIds): CallToolResult {
  const prompts = requests.map(({ kind, prompt }) => `- ${kind}: ${prompt}`);
  const text =
    requests.length === 0
      ? `The agent is paused. Call ${TURN_RESULT} with turnId ${ids.turnId} after it was resumed.`
      : `The agent waits for a person:\n${prompts.join("\n")}\nCall ${TURN_RESULT} with turnId ${ids.turnId} after the decision.`;
  const listed = requests.map(({ requestId, kind, prompt }) => ({ requestId, kind, prompt }));
  return shown({ status: "waiting", text, ids }, listed.length === 0 ? {} : { requests: listed });
}

/** An error that the calling model can read. */
export function errorResult(message: string): CallToolResult {
  return { content: [{ type: "text", text: message }], isError: true };
}

/** The same result with sentences before its text. */
export function withNotes(result: CallToolResult, notes: readonly string[]): CallToolResult {
  if (notes.length === 0) return result;
  return { ...result, content: [{ type: "text", text: notes.join("\n") }, ...result.content] };
}

interface Shown {
  readonly status: ShownStatus;
  readonly text: string;
  readonly ids: TurnIds;
}

function shown({ status, text, ids }: Shown, more: Readonly<Record<string, Json>> = {}): CallToolResult {
  const structuredContent: JsonObject = { status, ...ids, text, ...more };
  const isError = status === "failed" || status === "stopped";
  return { content: [{ type: "text", text }], structuredContent, ...(isError ? { isError } : {}) };
}
