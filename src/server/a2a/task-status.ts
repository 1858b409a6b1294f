import type { Turn } from "../../runtime/index.ts";
import type { AgentRequest, JsonObject, TurnRecord } from "../../state/index.ts";
import { urlIdOf } from "../core/url-ids.ts";
import type { TaskState, WireMessage, WirePart } from "./wire.ts";

/** Ids of a task and of its context, as clients know them. */
export interface TaskIds {
  readonly taskId: string;
  readonly contextId: string;
}

/** The state of a turn at one moment. */
export type TurnNow = Awaited<ReturnType<Turn["current"]>>;

/** The state of a turn's task. */
export function stateOf(now: TurnNow): TaskState {
  if ("stopReason" in now) return endState(now);
  if (now.status === "queued") return "TASK_STATE_SUBMITTED";
  const isWaiting = now.status === "waiting" && now.reason === "request";
  return isWaiting ? waitingState(now.requests) : "TASK_STATE_WORKING";
}

/** The specification lists the approval by a person as a case of `AUTH_REQUIRED`. */
function waitingState(requests: readonly AgentRequest[]): TaskState {
  const wantsAuthority = requests.some(({ kind }) => kind === "approval" || kind === "auth" || kind === "budget");
  return wantsAuthority ? "TASK_STATE_AUTH_REQUIRED" : "TASK_STATE_INPUT_REQUIRED";
}

function endState({ status, stopReason, steps }: Ended): TaskState {
  if (status === "completed" || stopReason === "steps_limit") return "TASK_STATE_COMPLETED";
  if (stopReason === "user_requested") return "TASK_STATE_CANCELED";
  if (stopReason === "refusal") return "TASK_STATE_REJECTED";
  return stopReason === "stop_requested" && steps === 0 ? "TASK_STATE_REJECTED" : "TASK_STATE_FAILED";
}

type Ended = Pick<Extract<TurnNow, { stopReason: unknown }>, "status" | "stopReason" | "steps">;

/** Equal for two states of a turn that are the same for clients. */
export function statusFingerprint(now: TurnNow): string {
  const requests = now.status === "waiting" && now.reason === "request" ? now.requests : [];
  return [stateOf(now), ...requests.map(({ requestId }) => requestId)].join(" ");
}

/** The state by the record alone; `undefined` if the turn itself must be read. */
export function stateOfRecord({ status, stopReason }: TurnRecord): TaskState | undefined {
  if (status === "queued") return "TASK_STATE_SUBMITTED";
  if (status === "open" || stopReason === null || stopReason === "stop_requested") return undefined;
  return endState({ status, stopReason, steps: 1 });
}

/** The message of a status: the request that the task waits for, or the reason of its failure. */
export function statusMessage(now: TurnNow, ids: TaskIds): WireMessage | undefined {
  const state = stateOf(now);
  if (now.status === "waiting" && now.reason === "request") {
    const [first] = now.requests;
    return first && agentMessage(`${urlIdOf(first.requestId)}.prompt`, now.requests.map(promptPart), ids);
  }
  if (!("stopReason" in now) || state === "TASK_STATE_COMPLETED") return undefined;
  const text = state === "TASK_STATE_FAILED" ? (now.error?.message ?? now.stop?.message ?? now.text) : now.text;
  return agentMessage(`${ids.taskId}.end`, [{ text }], ids);
}

/** The prompt as text; its metadata contains what a program needs to decide it. */
export function promptPart(request: AgentRequest): WirePart {
  const { requestId, kind, name, prompt, arguments: args, argumentsHash, expiresAt } = request;
  const metadata: JsonObject = { requestId: urlIdOf(requestId), kind, name, arguments: args, argumentsHash };
  return { text: prompt, metadata: expiresAt === null ? metadata : { ...metadata, expiresAt: timeOf(expiresAt) } };
}

export function agentMessage(messageId: string, parts: readonly WirePart[], ids: TaskIds): WireMessage {
  return { messageId, ...ids, role: "ROLE_AGENT", parts };
}

/** ISO 8601 with milliseconds, the protocol's format of times. */
export function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

/** Metadata of an ended turn: stop reason and usage. */
export function endMetadata(now: TurnNow): JsonObject | undefined {
  if (!("stopReason" in now)) return undefined;
  const { stopReason, spent } = now;
  const { inputTokens, outputTokens, cost } = spent.tree;
  const reason = stopReason === "steps_limit" ? { reason: "max_iterations" } : {};
  return { stopReason, ...reason, usage: { inputTokens, outputTokens, cost } };
}
