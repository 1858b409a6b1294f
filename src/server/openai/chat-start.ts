import { randomUUID } from "node:crypto";
import { setImmediate as nextEventLoopTurn } from "node:timers/promises";
import { NotFoundError } from "../../errors/index.ts";
import type { Agent } from "../../runtime/index.ts";
import { agentOfTurn, type AgentRequest, type TurnRecord } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { contentHash, type RequestKey, turnKeyOf } from "../core/names.ts";
import type { StartedTurn } from "../core/plain-message.ts";
import { openedId } from "../core/url-ids.ts";
import type { ChatBody, ChatRequest, ToolResult } from "./chat-request.ts";
import { badRequest } from "./protocol-errors.ts";
import { isShown, KEY_ROUTE, shownItems } from "./shown-history.ts";

/** A conversation named by the client. */
export interface Conversation {
  readonly name: string;
  /**
   * Whether the client may keep no history: a request without an answer in it then continues the conversation;
   * otherwise it starts anew.
   */
  readonly mayLackHistory: boolean;
}

/** A request for a completion and its caller. */
export interface Asking {
  readonly caller: Caller;
  readonly chat: ChatRequest;
  /** Hash prefix of the body; equal for equal bodies. */
  readonly bodyMark: string;
  readonly conversation: Conversation | undefined;
  readonly idempotencyKey: string | undefined;
  /** Number of earlier attempts by the official client; `undefined` for other clients. */
  readonly retries: number | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The turn that answers a request. */
export interface Answering extends Pick<StartedTurn, "agent" | "turn" | "turnId" | "isReplayed"> {
  /** Id of the stored item that the answer belongs to: the turn's input, or a decided request. */
  readonly saidId: string;
  /**
   * The cursor in the tree after which its events are sent. `null` if the turn had already started: the stored text is
   * then sent first.
   */
  readonly from: string | null;
  /** Later requests cannot reach the agent, except with results of tools. */
  readonly isStateless: boolean;
}

/** Metadata field of an agent that serves only one request. */
const STATELESS = "openai:stateless";
/** Maximum time between a request and its retry by the official client. */
const RETRY_MS = 600_000;

/**
 * Starts the turn that answers a request, or finds the existing one: continues a turn that waits for results of tools,
 * continues a conversation, or creates an agent for this request alone.
 */
export async function startChat(asking: Asking): Promise<Answering> {
  const { chat } = asking;
  if (chat.said === null) return await takeResults(asking, chat.results);
  const earlier = await sentBefore(asking);
  if (earlier !== undefined) return earlier;
  const known = await agentOf(asking);
  // While the histories were compared, an equal request may have continued one of the conversations.
  const meanwhile = known === undefined ? await sentBefore(asking) : undefined;
  if (meanwhile !== undefined) return meanwhile;
  const agent = known ?? (await forkOf(asking));
  const { cursor } = await asking.caller.head(agent.agentId);
  const { clientTools } = chat;
  const key = turnKey(asking);
  const options = { key, ...(clientTools.length === 0 ? {} : { clientTools }) };
  const started =
    asking.conversation === undefined
      ? await asking.caller.startTurn(agent, chat.said, options)
      : await asking.caller.plainMessage(agent, chat.said, options);
  const { turn, turnId, isReplayed, became } = started;
  const decided =
    became === "turn" ? undefined : await decidedWith(asking.caller, agent, (text) => text === turnKeyOf(key));
  return {
    agent,
    turn,
    turnId,
    isReplayed,
    saidId: decided?.requestId ?? `${turnId}:in`,
    from: isReplayed ? null : cursor,
    isStateless: isStateless(agent),
  };
}

/** The conversation's agent whose history equals the client's; `undefined` if there is none. */
async function agentOf(asking: Asking): Promise<Agent | undefined> {
  const { caller, chat, conversation, retries } = asking;
  const { definition, history, seeds } = chat;
  const shape = { definition: definition.name, messages: seeds };
  if (conversation === undefined) {
    const sessionId = retries === undefined ? undefined : sessionOf(asking);
    return await caller.openAgent({ ...shape, ...creationOf(asking), sessionId, metadata: { [STATELESS]: true } });
  }
  const { name, mayLackHistory } = conversation;
  const ownId = caller.agentIdOf(definition.name, name);
  const hasBegun = (await ifThere(caller.root(ownId))) !== undefined;
  if (!hasBegun) return await caller.openAgent({ ...shape, name, sessionId: name });
  const known = history.length > 0 ? await agentShown(asking, conversation, ownId) : mayLackHistory ? ownId : undefined;
  return known === undefined ? undefined : await caller.openAgent({ definition: definition.name, agentId: known });
}

/** A new agent of the conversation, with the client's history as its initial messages. */
async function forkOf(asking: Asking): Promise<Agent> {
  const { definition, seeds: messages } = asking.chat;
  const sessionId = asking.conversation?.name;
  return await asking.caller.openAgent({ definition: definition.name, messages, sessionId, ...creationOf(asking) });
}

/** With a client's key, equal requests create only one agent. */
function creationOf(asking: Asking): { readonly key?: RequestKey } {
  return asking.idempotencyKey === undefined ? {} : { key: turnKey(asking) };
}

/**
 * The agent of a conversation whose history equals the client's: the agent of the conversation's name, or one of those
 * created for another history, newest first.
 */
async function agentShown(
  { caller, chat }: Asking,
  { name }: Conversation,
  ownId: string,
): Promise<string | undefined> {
  const { definition, history } = chat;
  const { items } = await caller.agents({ sessionId: name, limit: 100 });
  const others = items.filter((record) => record.agentId !== ownId && record.definition.name === definition.name);
  for (const agentId of [ownId, ...others.map((record) => record.agentId)]) {
    // Yields the event loop, because each of up to 100 conversations may be long.
    await nextEventLoopTurn();
    if (isShown(await shownItems(caller, { agentId }, { wholeAnswers: answersWhole(chat) }), history)) return agentId;
  }
  return undefined;
}

/** Whether the agent answers with JSON; deltas of invalid JSON are then not sent. */
export function answersWhole({ definition: { output, responseFormat } }: Pick<ChatRequest, "definition">): boolean {
  return output !== null || (responseFormat !== undefined && responseFormat.type !== "text");
}

async function ifThere<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

/** The client's key, or a key that starts with the hash of the body, so that a retry finds it. */
function turnKey(asking: Asking): RequestKey {
  const { idempotencyKey } = asking;
  const value = idempotencyKey === undefined ? `${asking.bodyMark}${randomUUID()}` : `key:${idempotencyKey}`;
  return { route: KEY_ROUTE, value };
}

export function bodyMarkOf(body: ChatBody): string {
  return `body:${contentHash(body)}:`;
}

/** Requests without a conversation and with the same body share a session, which is searched for retries. */
function sessionOf(asking: Asking): string {
  return asking.conversation?.name ?? `chat ${asking.bodyMark.slice(5, 37)}`;
}

/** The turn of an earlier attempt of the same request. */
async function sentBefore(asking: Asking): Promise<Answering | undefined> {
  const { caller, idempotencyKey, conversation, retries, now } = asking;
  const isKeyed = idempotencyKey !== undefined;
  if (isKeyed ? conversation === undefined : (retries ?? 0) < 1) return undefined;
  const isOurs = isKeyed
    ? (key: string): boolean => key === turnKeyOf(turnKey(asking))
    : (key: string): boolean => key.startsWith(`${KEY_ROUTE}/${asking.bodyMark}`);
  const since = isKeyed ? 0 : now - RETRY_MS;
  const sessionId = sessionOf(asking);
  const { items } = await caller.turns({ sessionId, limit: 100 });
  const turns = items.filter(({ key, openedAt }) => key !== null && isOurs(key) && openedAt >= since);
  const [turn] = turns
    .filter((one) => isKeyed || !wasLeft(one))
    .toSorted((one, other) => other.openedAt - one.openedAt);
  if (turn !== undefined) return await answeringOf(asking, { turnId: turn.turnId, saidId: `${turn.turnId}:in` });
  if (conversation === undefined) return undefined;
  for (const { agentId } of (await caller.agents({ sessionId, limit: 100 })).items) {
    const request = await decidedWith(caller, { agentId }, isOurs);
    if (request?.decidedWith === undefined || (request.decidedAt ?? 0) < since) continue;
    return await answeringOf(asking, { turnId: request.decidedWith.turnId, saidId: request.requestId });
  }
  return undefined;
}

/** Whether the turn was ended because its client had left: a returning client needs a new answer. */
function wasLeft({ stopReason }: TurnRecord): boolean {
  return stopReason === "user_requested";
}

/** With a client's key, the store checks that the request is the same. */
async function answeringOf(
  asking: Asking,
  { turnId, saidId }: { readonly turnId: string; readonly saidId: string },
): Promise<Answering> {
  const { caller, chat, idempotencyKey } = asking;
  const { agent, turn } = await caller.turn(turnId);
  if (idempotencyKey !== undefined && chat.said !== null) {
    const { clientTools } = chat;
    const options = { key: turnKey(asking), ...(clientTools.length === 0 ? {} : { clientTools }) };
    await caller.plainMessage(
      await caller.openAgent({ definition: agent.definition.name, agentId: agent.agentId }),
      chat.said,
      options,
    );
  }
  return { agent, turn, turnId, saidId, from: null, isReplayed: true, isStateless: isStateless(agent) };
}

/** The last request of an agent's tree that was decided with a matching key. */
async function decidedWith(
  caller: Caller,
  { agentId }: Pick<Agent, "agentId">,
  isMeant: (key: string) => boolean,
): Promise<AgentRequest | undefined> {
  const decided = await caller.decidedRequests(agentId);
  return decided.findLast((request) => request.decidedWith !== undefined && isMeant(request.decidedWith.key));
}

function isStateless({ state }: Agent): boolean {
  return state.metadata?.[STATELESS] === true;
}

/** Passes results of the client's tools to the turn that waits for them: all of them, or none. */
async function takeResults(asking: Asking, results: readonly ToolResult[]): Promise<Answering> {
  const { caller, chat } = asking;
  const found: { readonly request: AgentRequest; readonly text: string }[] = [];
  for (const { toolCallId, text } of results) found.push({ request: await clientCall(caller, toolCallId), text });
  const [first] = found;
  const agent = await caller.root(first?.request.rootAgentId ?? "");
  if (first === undefined || agent.definition.name !== chat.definition.name) throw noSuchCall();
  const others = found.filter(({ request }) => request.rootAgentId !== agent.agentId);
  if (others.length > 0)
    throw badRequest("the results belong to calls of several conversations", { param: "messages" });
  const open = (await agent.requests()).filter(({ kind }) => kind === "client");
  const isOpen = found.some(({ request }) => open.some(({ requestId }) => requestId === request.requestId));
  const missing = open.filter(({ requestId }) => !found.some(({ request }) => request.requestId === requestId));
  if (isOpen && missing.length > 0) {
    const ids = missing.map(({ requestId }) => toolCallIdOf(requestId)).join(", ");
    throw badRequest(`every tool_call_id must be answered; these have no result: ${ids}`, { param: "messages" });
  }
  const { cursor } = await caller.head(agent.agentId);
  const key = turnKey(asking);
  let isNew = false;
  let turnId = agent.state.openTurnId;
  for (const { request, text } of found) {
    const value = `${key.value}#${request.requestId}`;
    const decided = await caller.decideOnce(
      request.requestId,
      { verdict: "answered", result: text, key: { ...key, value } },
      ({ decision }) => decision?.verdict === "answered" && decision.result?.text === text,
    );
    isNew ||= decided.isNew;
    turnId = decided.request.decidedWith?.turnId ?? turnId;
  }
  if (turnId === null || agentOfTurn(turnId) !== agent.agentId) throw noSuchCall();
  return {
    agent,
    turn: agent.turn(turnId),
    turnId,
    saidId: found.at(-1)?.request.requestId ?? "",
    from: isNew ? cursor : null,
    isReplayed: !isNew,
    isStateless: isStateless(agent),
  };
}

const CALL = "call";

/** Encodes the call and its turn, for the client that sends the result. */
export function toolCallIdOf(requestId: string): string {
  return `${CALL}_${Buffer.from(requestId).toString("base64url")}`;
}

function noSuchCall(): NotFoundError {
  return new NotFoundError("there is no such tool call", { details: { param: "messages" } });
}

/** The tool call of this caller. Rejects with `NotFoundError`. */
async function clientCall(caller: Caller, toolCallId: string): Promise<AgentRequest> {
  const requestId = openedId(CALL, toolCallId);
  const request = requestId === undefined ? undefined : await ifThere(caller.request(requestId));
  if (request?.kind !== "client") throw noSuchCall();
  return request;
}
