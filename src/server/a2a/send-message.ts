import type { SendMessageRequest } from "@a2a-js/sdk";
import { randomUUID } from "node:crypto";
import { AgentBusyError, NotFoundError } from "../../errors/index.ts";
import type { Agent } from "../../runtime/index.ts";
import type { Content } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { idOfUrl } from "../core/url-ids.ts";
import { keyOfMessage } from "./message-keys.ts";
import { NO_TASK } from "./protocol-errors.ts";
import { type ReadMessage, readMessage, type WireDecision } from "./read-message.ts";
import type { Sdk } from "./sdk.ts";
import { isEndState } from "./wire.ts";
import { type TaskTurn, taskTurnOf } from "./task.ts";
import { stateOf } from "./task-status.ts";

/** The caller of a request and the agent that it addresses. */
export interface Sending {
  readonly sdk: Sdk;
  readonly caller: Caller;
  /** Name of the agent's definition. */
  readonly definition: string;
}

/** A task that a message started, continued, or found unchanged. */
export interface SentTask extends TaskTurn {
  readonly isReplayed: boolean;
}

/**
 * Applies a message: starts a task, answers the task that it names, or decides its requests. A message without task and
 * context starts a context.
 *
 * The message id is an idempotency key only with a context or task, because clients use the same ids again in other
 * conversations.
 */
export async function sendMessage(sending: Sending, request: SendMessageRequest): Promise<SentTask> {
  const { sdk, caller, definition } = sending;
  const { historyLength } = request.configuration ?? {};
  assertCount(sdk, "configuration.historyLength", historyLength);
  const message = readMessage(sdk, request);
  if (message.taskId !== null) return await continueTask(sending, message, message.taskId);
  const content = "content" in message.said ? message.said.content : "";
  const { contextId } = message;
  if (contextId === null) {
    const name = randomUUID();
    const agent = await caller.openAgent({ definition, name, sessionId: name });
    return sentOf(caller, await caller.plainMessage(agent, content), name);
  }
  const known = await agentOfContext(sending, contextId);
  // A known agent is opened too: the process that created it may have died before it started it.
  const place = known ? { agentId: known.agentId } : { name: contextId, sessionId: contextId };
  const agent = await caller.openAgent({ definition, ...place });
  const started = await caller.plainMessage(agent, content, { key: keyOfMessage(message.messageId), ifBusy: "queue" });
  return sentOf(caller, started, contextId);
}

function sentOf(caller: Caller, { isReplayed, ...found }: Omit<SentTask, "ids">, contextId: string): SentTask {
  const { ids, ...rest } = taskTurnOf(caller, found);
  // The client gets its own name of the context back, also if the context was created with another.
  return { ...rest, ids: { ...ids, contextId }, isReplayed };
}

async function continueTask(sending: Sending, message: ReadMessage, taskId: string): Promise<SentTask> {
  const { sdk, caller } = sending;
  const task = await taskOfId(sending, taskId);
  const { contextId, messageId, said } = message;
  if (contextId !== null && (await agentOfContext(sending, contextId))?.agentId !== task.agent.agentId) {
    throw new sdk.errors.RequestMalformedError("message.contextId is not the task's context");
  }
  const shown = contextId ?? task.ids.contextId;
  if ("decisions" in said) {
    const isReplayed = await decideAll(sending, task, { messageId, decisions: said.decisions });
    return sentOf(caller, { ...task, isReplayed }, shown);
  }
  return sentOf(caller, await answered(sending, task, { messageId, content: said.content }), shown);
}

/**
 * An ended task accepts no message; a repeated one returns the task unchanged. A working task gets the message as another input; if it
 * ends without a further model call, the message starts the next task of the context.
 */
async function answered(
  { sdk, caller }: Sending,
  task: TaskTurn,
  { messageId, content }: { readonly messageId: string; readonly content: Content },
): Promise<Omit<SentTask, "ids">> {
  try {
    return await caller.answerTurn(task, content, { key: keyOfMessage(messageId) });
  } catch (error) {
    if (!(error instanceof AgentBusyError)) throw error;
    const now = await task.turn.current();
    if (now.status === "running") return await steered(caller, task, { messageId, content });
    if (!isEndState(stateOf(now))) throw error;
    throw new sdk.errors.UnsupportedOperationError({
      message: "the task has ended: send the message without its taskId, in its context",
      cause: error,
    });
  }
}

async function steered(
  caller: Caller,
  { agent, turnId }: TaskTurn,
  { messageId, content }: { readonly messageId: string; readonly content: Content },
): Promise<Omit<SentTask, "ids">> {
  const answer = await caller.steer(agent, content, { key: keyOfMessage(messageId), turnId });
  return { agent, turn: agent.turn(answer.turnId), turnId: answer.turnId, isReplayed: false };
}

/** Returns whether the same message had already made all these decisions. */
async function decideAll(
  { sdk, caller }: Sending,
  { agent }: TaskTurn,
  { messageId, decisions }: { readonly messageId: string; readonly decisions: readonly WireDecision[] },
): Promise<boolean> {
  for (const { requestId, argumentsHash } of decisions) {
    const request = await caller.request(requestId);
    if (request.rootAgentId !== agent.rootAgentId) throw new NotFoundError("there is no such request");
    if (request.kind === "approval" && argumentsHash === undefined) {
      throw new sdk.errors.RequestMalformedError(
        "the decision on an approval requires argumentsHash: the hash of the arguments that the deciding person saw",
      );
    }
  }
  let isReplayed = true;
  for (const { requestId, ...decide } of decisions) {
    const decided = await caller.decide(requestId, { ...decide, key: keyOfMessage(messageId, requestId) });
    isReplayed &&= decided.isReplayed ?? false;
  }
  return isReplayed;
}

/** Returns the task if it belongs to this agent and caller. Throws `TaskNotFoundError`. */
export async function taskOfId({ sdk, caller, definition }: Sending, taskId: string): Promise<TaskTurn> {
  const found = await foundTurn(caller, taskId);
  const isOwn = found?.agent.definition.name === definition && found.agent.rootAgentId === found.agent.agentId;
  if (found && isOwn) return taskTurnOf(caller, found);
  throw new sdk.errors.TaskNotFoundError(NO_TASK);
}

async function foundTurn(caller: Caller, taskId: string): Promise<Omit<TaskTurn, "ids"> | undefined> {
  try {
    return await caller.turn(idOfUrl(taskId));
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

/**
 * The caller's agent for a context: by the name that started it, or by its id for agents without a name. `undefined` if
 * no agent exists yet.
 */
export async function agentOfContext({ caller, definition }: Sending, contextId: string): Promise<Agent | undefined> {
  return (
    (await ownAgent(caller, caller.agentIdOf(definition, contextId), definition)) ??
    (await ownAgent(caller, contextId, definition))
  );
}

async function ownAgent(caller: Caller, agentId: string, definition: string): Promise<Agent | undefined> {
  try {
    const agent = await caller.root(agentId);
    return agent.definition.name === definition ? agent : undefined;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

/** Throws `RequestMalformedError` unless the value is absent or a whole number ≥ 0. */
export function assertCount({ errors }: Sdk, name: string, value: number | undefined): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) return;
  throw new errors.RequestMalformedError(`${name} must be a whole number, 0 or more`);
}
