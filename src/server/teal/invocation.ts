import { randomUUID } from "node:crypto";
import { AgentBusyError, NotFoundError } from "../../errors/index.ts";
import type { Agent, TurnRest } from "../../runtime/index.ts";
import type { StartedTurn } from "../core/plain-message.ts";
import type { Call } from "../core/route.ts";
import { type Address, answerOf, idsOf, type RequestIds } from "./answers.ts";
import { isTaskId, newTaskId, taskIdOfKey } from "./task-ids.ts";
import { userContent, type UserMessage } from "./user-message.ts";
import { unprocessable, valueError } from "./validation-errors.ts";

/** A started request, or the response that refuses it. */
export type Invoked = StartedTurn | Response;

/** Starts a task, or continues the task that the message names. */
export async function invoke(call: Call<unknown, unknown, unknown, UserMessage>, address: Address): Promise<Invoked> {
  const { body: message, caller } = call;
  const key = call.idempotencyKey === undefined ? undefined : { route: "teal.invoke", value: call.idempotencyKey };
  if (message.task_id !== null) return await followOn(call, address, message.task_id);
  const scope = [caller.tenant, caller.ownerId, "teal", address.name, call.idempotencyKey];
  const agent = await caller.openAgent({
    definition: address.name,
    agentId: key === undefined ? newTaskId() : taskIdOfKey(scope),
    sessionId: message.session_id ?? randomUUID(),
  });
  return wrongSession(agent, message) ?? (await caller.startTurn(agent, userContent(message), { key }));
}

async function followOn(
  call: Call<unknown, unknown, unknown, UserMessage>,
  { name }: Address,
  taskId: string,
): Promise<Invoked> {
  const { body: message, caller, idempotencyKey } = call;
  const agent = await taskOf(call, name, taskId);
  const wrong = wrongSession(agent, message);
  if (wrong) return wrong;
  const content = userContent(message);
  const key = idempotencyKey === undefined ? undefined : { route: "teal.invoke", value: idempotencyKey };
  try {
    return await caller.plainMessage(agent, content, { key });
  } catch (error) {
    const open = error instanceof AgentBusyError ? error.details["openTurnId"] : undefined;
    if (typeof open !== "string") throw error;
    return conflict("The task is busy with another request", idsOf(agent, open));
  }
}

/** A task of this caller, at the URL of its definition. Rejects with `NotFoundError`. */
export async function taskOf({ caller }: Pick<Call, "caller">, name: string, taskId: string): Promise<Agent> {
  const agent = isTaskId(taskId) ? await caller.root(taskId) : undefined;
  if (agent?.definition.name === name) return agent;
  throw new NotFoundError("there is no such task");
}

function wrongSession(agent: Agent, { session_id }: UserMessage): Response | undefined {
  if (session_id === null || session_id === agent.sessionId) return undefined;
  return unprocessable([valueError(["body", "session_id"], "the task belongs to another session", session_id)]);
}

/** The answer to a command that came too late, or while another was running. */
export function conflict(detail: string, three: RequestIds): Response {
  return Response.json({ detail: `${detail}: ${three.request_id}`, ...three }, { status: 409 });
}

/** The header that marks a replayed answer. */
export function replayHeaders({
  isReplayed = false,
}: Partial<Pick<StartedTurn, "isReplayed">>): Readonly<Record<string, string>> {
  return isReplayed ? { "idempotency-replayed": "true" } : {};
}

/** Answers once the request has ended, or waits for a decision or a resume. `isBare`: only with the content. */
export async function answerWhenSettled(
  call: Call,
  started: Pick<StartedTurn, "agent" | "turn" | "turnId"> & Partial<Pick<StartedTurn, "isReplayed">>,
  { address, isBare }: { readonly address: Address; readonly isBare: boolean },
): Promise<Response> {
  const { agent, turn, turnId } = started;
  const three = idsOf(agent, turnId);
  const settled = await call.within<TurnRest>(turn.settled);
  if (settled === undefined) {
    return Response.json({ detail: "The request is still running", ...three }, { status: 504 });
  }
  const answer = await answerOf({ agent, turnId, address }, settled.value);
  if (answer.status === "Failed") return Response.json({ detail: answer.detail, ...three }, { status: 500 });
  const { status, content } = answer;
  return Response.json(isBare ? content : { ...three, status, content }, { headers: replayHeaders(started) });
}
