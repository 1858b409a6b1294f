import { randomUUID } from "node:crypto";
import type { AgentDefinition } from "../../agents/index.ts";
import type { Clock } from "../../base/index.ts";
import { AgentBusyError } from "../../errors/index.ts";
import type { Agent } from "../../runtime/index.ts";
import {
  type AgentRequest,
  type Content,
  type Message,
  numberOfTurn,
  textOf,
  turnIdOf,
  type TurnRecord,
} from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { contentHash, type RequestKey, turnKeyOf } from "../core/names.ts";
import type { StartedTurn, StartTurnOptions } from "../core/plain-message.ts";
import { assertFormat, PREFACE, unsupported } from "./chat-request.ts";
import type { ServedModels } from "./served-models.ts";
import { badRequest } from "./protocol-errors.ts";
import { giveAnswers } from "./response-answers.ts";
import { CREATE, type TurnPart, turnPartOf } from "./response-ids.ts";
import { type CreateBody, readInput, type ReadInput, type Said } from "./response-input.ts";
import { PREVIOUS, readResponse } from "./response-reading.ts";

/** A response that this request or an earlier equal one started. */
export interface StartedResponse {
  readonly part: TurnPart;
  readonly isReplayed: boolean;
}

/** A request for a response. */
export interface Asked {
  readonly caller: Caller;
  readonly place: ServedModels;
  readonly clock: Clock;
  readonly body: CreateBody;
  /** The header `Idempotency-Key`. */
  readonly idempotencyKey: string | undefined;
  /** Whether the client retries because it got no answer. */
  readonly isRepeated: boolean;
}

interface Starting extends Asked {
  readonly read: ReadInput;
  /** Idempotency key of the turn or decision that this request becomes. */
  readonly key: RequestKey;
}

/**
 * Starts the response to a request: a turn of a new agent, of the previous response's agent, or of a copy of its
 * conversation up to an older response; or the section of a turn that follows answers. Everything is checked before
 * anything is decided.
 */
export async function startResponse(asked: Asked): Promise<StartedResponse> {
  const { body, caller, place } = asked;
  const read = readInput(body);
  if (typeof body.model === "string") place.definitionOf(caller, body.model);
  const { previous_response_id: previousId = null, conversation = null } = body;
  if (previousId !== null && conversation !== null) {
    throw badRequest("a response continues previous_response_id or a conversation, not both", {
      param: "conversation",
    });
  }
  const name = typeof conversation === "string" ? conversation : (conversation?.id ?? null);
  const hasMore = (previousId ?? name) !== null && read.history.length > 0;
  if (hasMore) throw badRequest("input must contain only new items: the conversation is stored", { param: "input" });
  const previous = previousId === null ? null : await turnPartOf(caller, previousId, "previous_response_id");
  const named = typeof body.model === "string" && name !== null ? caller.agentIdOf(body.model, name) : undefined;
  const value = asked.idempotencyKey ?? (await ownKey(asked, previous?.agent.agentId ?? named));
  const key: RequestKey = { route: CREATE, value };
  const starting: Starting = { ...asked, read, key };
  if (read.answers.length > 0) return await giveAnswers(caller, read.answers, { place, previous, name });
  if (previous !== null) return await goOn(starting, previous);
  return await begin(starting, name);
}

/** Milliseconds within which a client without its own key may retry a request that got no answer. */
const REPEATED_WITHIN_MS = 600_000;

/**
 * A key for a request without one: unique for each request, so that an equal request starts another response; a retry
 * gets the key of the first attempt.
 */
async function ownKey({ body, caller, clock, isRepeated }: Asked, agentId: string | undefined): Promise<string> {
  const prefix = `auto.${contentHash(body).slice(0, 32)}.`;
  if (!isRepeated) return prefix + randomUUID();
  const since = clock.now() - REPEATED_WITHIN_MS;
  const start = turnKeyOf({ route: CREATE, value: "" });
  const isFirst = (key: string | null | undefined, at: number | null): boolean =>
    (at ?? 0) >= since && key?.startsWith(start + prefix) === true;
  const decided = agentId === undefined ? [] : await caller.decidedRequests(agentId);
  const answered = decided.find(({ decidedWith, decidedAt }) => isFirst(decidedWith?.key, decidedAt))?.decidedWith?.key;
  const found = answered ?? (await turnWith(caller, since, ({ key, openedAt }) => isFirst(key, openedAt)))?.key;
  return found?.slice(start.length) ?? prefix + randomUUID();
}

/** The first match among the caller's turns that changed since a time. */
async function turnWith(
  caller: Caller,
  since: number,
  fits: (turn: TurnRecord) => boolean,
): Promise<TurnRecord | undefined> {
  let after: string | undefined;
  do {
    const page = await caller.turns({ limit: 100, after });
    const found = page.items.find(fits);
    if (found) return found;
    after = page.items.every(({ changedAt }) => changedAt >= since) ? (page.next ?? undefined) : undefined;
  } while (after !== undefined);
  return undefined;
}

/** Starts a turn of the named agent, or of a new agent. */
async function begin(starting: Starting, name: string | null): Promise<StartedResponse> {
  const { caller, read, key } = starting;
  const definition = servedBy(starting, undefined);
  const shape = { definition: definition.name, ...messagesOf([...prefaceOf(starting), ...read.history]) };
  if (name === null) {
    const { agent } = await caller.createAgent({ ...shape, key });
    return await said(starting, caller.startTurn(agent, inputContent(read), turnOptions(starting)));
  }
  const agent = await caller.openAgent({ ...shape, name, sessionId: name });
  if (!(await hasInstructions(starting, agent))) {
    throw badRequest("the conversation was started without these instructions; send the original ones or none", {
      param: "instructions",
    });
  }
  return await said(starting, caller.plainMessage(agent, inputContent(read), turnOptions(starting)));
}

/** Starts a response that follows another. */
async function goOn(starting: Starting, previous: TurnPart): Promise<StartedResponse> {
  const { caller, read, key } = starting;
  const { agent, turnId } = previous;
  const before = await readResponse(caller, previous);
  if (before.isContinued && (await decidedWith(starting, agent)) === undefined) {
    throw badRequest("this response was already answered: continue from the one that followed", {
      param: "previous_response_id",
    });
  }
  if (before.isContinued || !("stopReason" in before.now)) {
    return await said(starting, caller.answerTurn({ agent, turnId }, inputContent(read), { key }));
  }
  const definition = servedBy(starting, agent);
  const next = turnIdOf(agent.agentId, numberOfTurn(turnId) + 1);
  const isSame = definition.name === agent.definition.name && (await hasInstructions(starting, agent));
  if (isSame && (await mayFollow(starting, agent, next))) {
    try {
      const started = await caller.startTurn(agent, inputContent(read), turnOptions(starting));
      if (started.turnId === next) return await said(starting, Promise.resolve(started));
      // A concurrent request continued from the same response, and its turn has already ended.
      await started.turn.abort("it continues an older response");
    } catch (error) {
      if (!(error instanceof AgentBusyError)) throw error;
    }
  }
  return await fork(starting, previous, definition.name);
}

/** Whether the agent's next turn does not exist yet, or was started by an earlier attempt of this request. */
async function mayFollow({ caller, key }: Starting, agent: Agent, next: string): Promise<boolean> {
  const { items } = await caller.turns({ agentId: agent.agentId, limit: 100 });
  const taken = items.find(({ turnId }) => turnId === next);
  if (taken !== undefined) return taken.key === turnKeyOf(key);
  return items.every(({ turnId }) => numberOfTurn(turnId) < numberOfTurn(next));
}

/**
 * Continues an older response, or continues with another model or other instructions: with a new agent, whose
 * conversation is a copy of the old one up to that response.
 */
async function fork(starting: Starting, previous: TurnPart, definition: string): Promise<StartedResponse> {
  const { caller, read, key, body } = starting;
  const { agentId } = previous.agent;
  const messages = await messagesIn(caller, agentId);
  const last = numberOfTurn(previous.turnId);
  const end = messages.findIndex(
    ({ id }) => id.startsWith(`${agentId}#`) && Number.parseInt(id.slice(agentId.length + 1), 10) > last,
  );
  const own = prefaceOf(starting);
  const history = (end < 0 ? messages : messages.slice(0, end)).flatMap(
    ({ role, content, metadata }): readonly Said[] => {
      const isSaid = metadata?.is_trace !== true && (role === "user" || role === "assistant") && content.length > 0;
      const isReplaced = own.length > 0 && textOf(content).startsWith(PREFACE);
      return isSaid && !isReplaced ? [{ role, content }] : [];
    },
  );
  const metadata = { [PREVIOUS]: body.previous_response_id ?? null };
  const { agent } = await caller.createAgent({ definition, key, metadata, ...messagesOf([...own, ...history]) });
  return await said(starting, caller.startTurn(agent, inputContent(read), turnOptions(starting)));
}

async function messagesIn({ runtime }: Caller, agentId: string): Promise<readonly Message[]> {
  return await runtime.stores.messages({ tenant: runtime.tenant, agentId });
}

function messagesOf(history: readonly Said[]): { readonly messages?: readonly Said[] } {
  return history.length === 0 ? {} : { messages: history };
}

/** The client's instructions as a new agent's first message; the agent's own instructions come from its definition. */
function prefaceOf({ place, read }: Starting): readonly Said[] {
  const { instructions } = read;
  return instructions === null || !place.takesSystem ? [] : [{ role: "user", content: PREFACE + instructions }];
}

/** Whether a conversation was started with the instructions of this request; true for a request without instructions. */
async function hasInstructions(starting: Starting, { agentId }: Agent): Promise<boolean> {
  const [preface] = prefaceOf(starting);
  if (preface === undefined) return true;
  const [first] = await messagesIn(starting.caller, agentId);
  return first !== undefined && textOf(first.content) === preface.content;
}

/** The definition of the model, or of the previous agent; must support the request's format and tools. */
function servedBy({ caller, place, body, read }: Starting, agent: Agent | undefined): AgentDefinition {
  const model = body.model ?? agent?.definition.name;
  if (model === undefined) throw badRequest("model is missing: the name of an agent", { param: "model" });
  const definition = place.definitionOf(caller, model);
  assertFormat(body.text?.format, definition, "text.format");
  if (read.clientTools !== undefined && !definition.clientTools) {
    throw unsupported("tools", `"${model}" accepts no tools from its callers; its definition needs clientTools: true`);
  }
  return definition;
}

function inputContent({ content }: ReadInput): Content {
  return content ?? "";
}

function turnOptions({ body, read, key }: Starting): StartTurnOptions {
  const { max_tool_calls: maxToolCalls } = body;
  const budget = typeof maxToolCalls === "number" ? { budget: { maxToolCalls } } : {};
  const tools = read.clientTools === undefined ? {} : { clientTools: read.clientTools };
  return { key, ...budget, ...tools };
}

/** The response that a message started, with a turn or with an answered request. */
async function said(starting: Starting, started: Promise<StartedTurn>): Promise<StartedResponse> {
  const { agent, turn, turnId, isReplayed, became } = await started;
  const request = became === "turn" ? undefined : await decidedWith(starting, agent);
  return { part: { agent, turn, turnId, begin: request?.requestId ?? null }, isReplayed };
}

/** The request that a message of this request, or of an equal earlier one, decided. */
async function decidedWith({ caller, key }: Starting, agent: Agent): Promise<AgentRequest | undefined> {
  const decided = await caller.decidedRequests(agent.rootAgentId);
  return decided.find((request) => request.decidedWith?.key === turnKeyOf(key));
}
