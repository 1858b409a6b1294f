import { createHash, randomUUID } from "node:crypto";
import { type Clock, stableStringify } from "../../base/index.ts";
import { AgentBusyError, InvalidInputError, NotFoundError, RequestConflictError } from "../../errors/index.ts";
import type { Agent, Decide } from "../../runtime/index.ts";
import { type AgentRequest, numberOfTurn, textOf, turnIdOf, type TurnRecord } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { type RequestKey, turnKeyOf } from "../core/names.ts";
import { ServerError } from "../core/failures.ts";
import type { StartedTurn, StartTurnOptions } from "../core/plain-message.ts";
import type { OpenAiPlace } from "./place.ts";
import { badRequest } from "./protocol-errors.ts";
import {
  CREATE,
  decisionKey,
  decidedIn,
  itemId,
  partBegunBy,
  partName,
  type TurnPart,
  turnPartOf,
} from "./response-ids.ts";
import { type Answer, type CreateBody, readInput, type ReadInput, type Said } from "./response-input.ts";
import { PREVIOUS, readResponse } from "./response-reading.ts";

/** A response that a request has begun, or had begun before. */
export interface StartedResponse {
  readonly part: TurnPart;
  readonly isReplayed: boolean;
}

/** A request for a response. */
export interface Asked {
  readonly caller: Caller;
  readonly place: OpenAiPlace;
  readonly clock: Clock;
  readonly body: CreateBody;
  /** The header `Idempotency-Key`. */
  readonly idempotencyKey: string | undefined;
  /** The client sends it again, because it got no answer. */
  readonly isRepeated: boolean;
}

interface Starting extends Asked {
  readonly read: ReadInput;
  /** Of the turn, or of the decision, that this request becomes. */
  readonly key: RequestKey;
}

/**
 * Begins what a request asks for: a turn of a new agent, of the agent that goes on, or of a copy of an agent's
 * conversation as it was at an older response; or the part of a turn that follows answers. All is checked before anything
 * is decided.
 */
export async function startResponse(asked: Asked): Promise<StartedResponse> {
  const { body, caller, place } = asked;
  const read = readInput(body);
  if (typeof body.model === "string") place.definitionOf(caller, body.model);
  const { previous_response_id: previousId = null, conversation = null } = body;
  if (previousId !== null && conversation !== null) {
    throw badRequest("a response goes on from previous_response_id or in a conversation, not both", {
      param: "conversation",
    });
  }
  const name = typeof conversation === "string" ? conversation : (conversation?.id ?? null);
  const hasMore = (previousId ?? name) !== null && read.history.length > 0;
  if (hasMore) throw badRequest("input takes only what is new: the conversation is stored", { param: "input" });
  const previous = previousId === null ? null : await turnPartOf(caller, previousId, "previous_response_id");
  const named = typeof body.model === "string" && name !== null ? caller.agentIdOf(body.model, name) : undefined;
  const value = asked.idempotencyKey ?? (await ownKey(asked, previous?.agent.agentId ?? named));
  const key: RequestKey = { route: CREATE, value };
  const starting: Starting = { ...asked, read, key };
  if (read.answers.length > 0) return await answer(starting, { previous, name });
  if (previous !== null) return await goOn(starting, previous);
  return await begin(starting, name);
}

/** Milliseconds for which a client that got no answer may ask again without a key of its own. */
const REPEATED_WITHIN_MS = 600_000;

/**
 * The key of a request that has none: another one for each, so that an equal one begins another response; but one that is
 * sent again has that of the first.
 */
async function ownKey({ body, caller, clock, isRepeated }: Asked, agentId: string | undefined): Promise<string> {
  const content = createHash("sha256").update(stableStringify(body)).digest("hex");
  const prefix = `auto.${content.slice(0, 32)}.`;
  if (!isRepeated) return prefix + randomUUID();
  const since = clock.now() - REPEATED_WITHIN_MS;
  const start = turnKeyOf({ route: CREATE, value: "" });
  const isFirst = (key: string | null | undefined, at: number | null): boolean =>
    (at ?? 0) >= since && key?.startsWith(start + prefix) === true;
  const decided = agentId === undefined ? [] : await decidedIn(caller, agentId);
  const answered = decided.find(({ decidedWith, decidedAt }) => isFirst(decidedWith?.key, decidedAt))?.decidedWith?.key;
  const found = answered ?? (await turnWith(caller, since, ({ key, openedAt }) => isFirst(key, openedAt)))?.key;
  return found?.slice(start.length) ?? prefix + randomUUID();
}

/** Of the caller's turns that have changed since a time, one that fits. */
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

/** A turn of the agent that a name means, or of a new one. */
async function begin(starting: Starting, name: string | null): Promise<StartedResponse> {
  const { caller, read, key } = starting;
  const definition = modelOf(starting);
  if (name !== null) {
    const agent = await caller.openAgent({ definition, name, sessionId: name });
    return await said(starting, caller.plainMessage(agent, contentOf(read), turnOptions(starting)));
  }
  const { agent } = await caller.createAgent({ definition, key, ...messagesOf(read.history) });
  return await said(starting, caller.startTurn(agent, contentOf(read), turnOptions(starting)));
}

/** A response after another one. */
async function goOn(starting: Starting, previous: TurnPart): Promise<StartedResponse> {
  const { caller, body, read, key } = starting;
  const { agent, turnId } = previous;
  const before = await readResponse(caller, previous);
  if (before.isContinued && (await decidedWith(starting, agent)) === undefined) {
    throw badRequest("this response was answered: go on from the one that followed", {
      param: "previous_response_id",
    });
  }
  if (before.isContinued || !("stopReason" in before.now)) {
    return await said(starting, caller.answerTurn({ agent, turnId }, contentOf(read), { key }));
  }
  const definition = body.model ?? agent.definition.name;
  const next = turnIdOf(agent.agentId, numberOfTurn(turnId) + 1);
  if (definition === agent.definition.name && (await mayFollow(starting, agent, next))) {
    try {
      const started = await caller.startTurn(agent, contentOf(read), turnOptions(starting));
      if (started.turnId === next) return await said(starting, Promise.resolve(started));
      // Another request went on from the same response in this moment, and has already ended.
      await started.turn.abort("it goes on from an older response");
    } catch (error) {
      if (!(error instanceof AgentBusyError)) throw error;
    }
  }
  return await fork(starting, previous, definition);
}

/** Whether the next turn of an agent is still to come, or is the one that this request began before. */
async function mayFollow({ caller, key }: Starting, agent: Agent, next: string): Promise<boolean> {
  const { items } = await caller.turns({ agentId: agent.agentId, limit: 100 });
  const taken = items.find(({ turnId }) => turnId === next);
  if (taken !== undefined) return taken.key === turnKeyOf(key);
  return items.every(({ turnId }) => numberOfTurn(turnId) < numberOfTurn(next));
}

/** Goes on from an older response: with a new agent, whose conversation begins as that of the old one was then. */
async function fork(starting: Starting, previous: TurnPart, definition: string): Promise<StartedResponse> {
  const { caller, read, key, body } = starting;
  const { stores, tenant } = caller.runtime;
  const { agentId } = previous.agent;
  const messages = await stores.messages({ tenant, agentId });
  const last = numberOfTurn(previous.turnId);
  const end = messages.findIndex(
    ({ id }) => id.startsWith(`${agentId}#`) && Number.parseInt(id.slice(agentId.length + 1), 10) > last,
  );
  const history = (end < 0 ? messages : messages.slice(0, end)).flatMap(
    ({ role, content, metadata }): readonly Said[] => {
      const isSaid = metadata?.is_trace !== true && (role === "user" || role === "assistant") && textOf(content) !== "";
      return isSaid ? [{ role, content }] : [];
    },
  );
  const metadata = { [PREVIOUS]: body.previous_response_id ?? null };
  const { agent } = await caller.createAgent({ definition, key, metadata, ...messagesOf(history) });
  return await said(starting, caller.startTurn(agent, contentOf(read), turnOptions(starting)));
}

function messagesOf(history: readonly Said[]): { readonly messages?: readonly Said[] } {
  return history.length === 0 ? {} : { messages: history };
}

function modelOf({ caller, place, body: { model } }: Starting): string {
  if (typeof model === "string") return place.definitionOf(caller, model).name;
  throw badRequest("model is missing: the name of an agent", { param: "model" });
}

function contentOf({ content }: ReadInput) {
  return content ?? "";
}

function turnOptions({ body, read, key }: Starting): StartTurnOptions {
  const { max_tool_calls: maxToolCalls } = body;
  const budget = typeof maxToolCalls === "number" ? { budget: { maxToolCalls } } : {};
  const tools = read.clientTools === undefined ? {} : { clientTools: read.clientTools };
  return { key, ...budget, ...tools };
}

/** The response that a message began: with a turn, or with the request that it answered. */
async function said(starting: Starting, started: Promise<StartedTurn>): Promise<StartedResponse> {
  const { agent, turn, turnId, isReplayed, became } = await started;
  const request = became === "turn" ? undefined : await decidedWith(starting, agent);
  return { part: { agent, turn, turnId, begin: request?.requestId ?? null }, isReplayed };
}

/** The request that this request, or an equal one before it, has decided with a message. */
async function decidedWith({ caller, key }: Starting, agent: Agent): Promise<AgentRequest | undefined> {
  const decided = await decidedIn(caller, agent.rootAgentId);
  return decided.find((request) => request.decidedWith?.key === turnKeyOf(key));
}

/** A request of an agent, with what the client says to it. */
interface Decision {
  readonly request: AgentRequest;
  readonly decide: Omit<Decide, "by" | "key">;
}

/** Decides all that a turn waits for, or nothing. */
async function answer(
  { caller, read, place }: Starting,
  { previous, name }: { readonly previous: TurnPart | null; readonly name: string | null },
): Promise<StartedResponse> {
  const decisions = await decisionsOf(caller, read.answers);
  const [
    {
      request: { rootAgentId: agentId },
    },
  ] = decisions;
  const agent = await caller.root(agentId);
  place.definitionOf(caller, agent.definition.name);
  const isOther = decisions.some(({ request }) => request.rootAgentId !== agentId);
  const isOfOther = previous !== null && previous.agent.agentId !== agentId;
  const isElsewhere = name !== null && caller.agentIdOf(agent.definition.name, name) !== agentId;
  if (isOther || isOfOther || isElsewhere) {
    throw badRequest("input answers requests of another conversation", { param: "input" });
  }
  if (decisions.some(({ request }) => request.status === "open")) await assertAnswersAll(caller, agent, decisions);
  const [first] = decisions;
  let part: { readonly name: string; readonly begin: string } | undefined;
  let isNew = false;
  let turnId = previous?.turnId ?? agent.state.openTurnId;
  for (const one of decisions) {
    const { requestId } = one.request;
    const decided = await decideOnce(caller, one, part?.begin ?? requestId);
    const name = partBegunBy(decided.request);
    if (name !== undefined) part ??= { name, begin: requestId };
    isNew ||= decided.isNew;
    turnId = decided.request.decidedWith?.turnId ?? turnId;
  }
  if (turnId === null) {
    throw new RequestConflictError("what input answers was decided elsewhere, and its turn has ended");
  }
  // Of what was decided together with others, a client may repeat only some.
  const begins = part === undefined ? [] : await decidedIn(caller, agentId);
  const begin = begins.find(({ requestId }) => partName(requestId) === part?.name) ?? first.request;
  return { part: { agent, turn: agent.turn(turnId), turnId, begin: begin.requestId }, isReplayed: !isNew };
}

/** In one order, so that of several clients at once the first one gets all. */
async function decisionsOf(caller: Caller, answers: readonly Answer[]): Promise<readonly [Decision, ...Decision[]]> {
  const found: Decision[] = [];
  for (const one of answers) {
    const request = await requestOf(caller, one);
    found.push({ request, decide: decisionOf(request, one) });
  }
  const [first, ...others] = found.toSorted((one, other) => (one.request.requestId < other.request.requestId ? -1 : 1));
  if (first === undefined) throw new InvalidInputError("there is nothing to decide");
  return [first, ...others];
}

async function requestOf(caller: Caller, { requestId, where }: Answer): Promise<AgentRequest> {
  try {
    return await caller.request(requestId);
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    throw new NotFoundError("there is no such request", { details: { param: where } });
  }
}

function decisionOf({ kind }: AgentRequest, one: Answer): Decision["decide"] {
  const wantsOutput = kind === "client" || kind === "question";
  if (wantsOutput !== (one.kind === "output")) {
    const right = wantsOutput ? "function_call_output" : "mcp_approval_response";
    throw badRequest(`${one.where} is answered by ${right}`, { param: one.where });
  }
  if (one.kind === "output") return { verdict: "answered", result: one.output };
  const reason = one.reason === undefined ? {} : { reason: one.reason };
  if (!one.isApproved) return { verdict: "rejected", ...reason };
  return { verdict: kind === "auth" ? "provided" : "approved", ...reason };
}

/** Nothing is decided while others work, or one would not know with what the new response begins. */
async function assertAnswersAll(caller: Caller, agent: Agent, decisions: readonly Decision[]): Promise<void> {
  const now = await agent.openTurn()?.current();
  if (now?.status !== "waiting" || now.reason !== "request") {
    // Of equal requests at once another one may have decided meanwhile.
    const requests = await Promise.all(decisions.map(({ request }) => caller.request(request.requestId)));
    if (requests.every(({ status }) => status !== "open")) return;
    throw new AgentBusyError("the response is still in progress: answer when it has ended");
  }
  const given = new Set(decisions.map(({ request }) => request.requestId));
  const missing = now.requests.filter(({ requestId }) => !given.has(requestId)).map(wireIdOf);
  if (missing.length === 0) return;
  throw badRequest(`input answers some of what the response asks for; missing: ${missing.join(", ")}`, {
    param: "input",
  });
}

function wireIdOf({ kind, requestId }: AgentRequest): string {
  return kind === "client" || kind === "question" ? itemId.callId(requestId) : itemId.approval(requestId);
}

/** What was decided alike, by whomever, is decided as wanted. */
async function decideOnce(
  caller: Caller,
  { request: { requestId }, decide }: Decision,
  begin: string,
): Promise<{ readonly request: AgentRequest; readonly isNew: boolean }> {
  try {
    const { isReplayed = false, ...request } = await caller.decide(requestId, {
      ...decide,
      key: decisionKey(begin, requestId),
    });
    return { request, isNew: !isReplayed };
  } catch (error) {
    const isDecided = error instanceof RequestConflictError || isKeyReused(error);
    if (!isDecided) throw error;
    const request = await caller.request(requestId);
    const { decision } = request;
    const isAlike =
      decision?.verdict === decide.verdict &&
      (decide.verdict !== "answered" || decision.result?.text === decide.result) &&
      (decide.verdict !== "rejected" || decision.reason === (decide.reason ?? null));
    if (isAlike) return { request, isNew: false };
    if (decision === null) throw error;
    throw new RequestConflictError(`the request was decided before: ${decision.verdict}`);
  }
}

/** The key of a decision means its request: with another decision it was decided otherwise. */
function isKeyReused(error: unknown): boolean {
  return error instanceof ServerError && error.code === "key_reused";
}
