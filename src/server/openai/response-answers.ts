import { AgentBusyError, InvalidInputError, NotFoundError, RequestConflictError } from "../../errors/index.ts";
import type { Agent, Decide } from "../../runtime/index.ts";
import type { AgentRequest } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { isKeyReused } from "../core/failures.ts";
import type { ServedModels } from "./served-models.ts";
import { badRequest } from "./protocol-errors.ts";
import { decisionKey, itemId, partBegunBy, partName, type TurnPart } from "./response-ids.ts";
import type { Answer } from "./response-input.ts";

/** An agent's request, with the client's answer. */
interface Decision {
  readonly request: AgentRequest;
  readonly decide: Omit<Decide, "by" | "key">;
}

/** The conversation in which a client answers. */
interface AnswerContext {
  readonly place: ServedModels;
  readonly previous: TurnPart | null;
  /** Name of the conversation. */
  readonly name: string | null;
}

/** Decides all requests that a turn waits for, or none. */
export async function giveAnswers(
  caller: Caller,
  answers: readonly Answer[],
  { place, previous, name }: AnswerContext,
): Promise<{ readonly part: TurnPart; readonly isReplayed: boolean }> {
  const decisions = await decisionsOf(caller, answers);
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
    throw new RequestConflictError("the requests in input were decided elsewhere, and their turn has ended");
  }
  // A client may repeat only some of the decisions that were made together.
  const begins = part === undefined ? [] : await caller.decidedRequests(agentId);
  const begin = begins.find(({ requestId }) => partName(requestId) === part?.name) ?? first.request;
  return { part: { agent, turn: agent.turn(turnId), turnId, begin: begin.requestId }, isReplayed: !isNew };
}

/** Sorts the decisions, so that of concurrent clients the first decides all. */
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
    throw badRequest(`${one.where} must be answered by ${right}`, { param: one.where });
  }
  if (one.kind === "output") return { verdict: "answered", result: one.output };
  const reason = one.reason === undefined ? {} : { reason: one.reason };
  if (!one.isApproved) return { verdict: "rejected", ...reason };
  return { verdict: kind === "auth" ? "provided" : "approved", ...reason };
}

/** Refuses partial answers: otherwise it is unclear with which decision the new response starts. */
async function assertAnswersAll(caller: Caller, agent: Agent, decisions: readonly Decision[]): Promise<void> {
  const now = await agent.openTurn()?.current();
  if (now?.status !== "waiting" || now.reason !== "request") {
    // A concurrent equal request may have decided meanwhile.
    const requests = await Promise.all(decisions.map(({ request }) => caller.request(request.requestId)));
    if (requests.every(({ status }) => status !== "open")) return;
    throw new AgentBusyError("the response is still in progress: send the answers when it has ended");
  }
  const given = new Set(decisions.map(({ request }) => request.requestId));
  const missing = now.requests.filter(({ requestId }) => !given.has(requestId)).map(wireIdOf);
  if (missing.length === 0) return;
  throw badRequest(`input must answer all requests of the response; missing: ${missing.join(", ")}`, {
    param: "input",
  });
}

function wireIdOf({ kind, requestId }: AgentRequest): string {
  return kind === "client" || kind === "question" ? itemId.callId(requestId) : itemId.approval(requestId);
}

/** Rejects with the earlier verdict if the request was decided differently. */
async function decideOnce(
  caller: Caller,
  { request: { requestId }, decide }: Decision,
  begin: string,
): Promise<{ readonly request: AgentRequest; readonly isNew: boolean }> {
  try {
    const key = decisionKey(begin, requestId);
    return await caller.decideOnce(requestId, { ...decide, key }, ({ decision }) => isAlike(decision, decide));
  } catch (error) {
    if (!(error instanceof RequestConflictError) && !isKeyReused(error)) throw error;
    const { decision } = await caller.request(requestId);
    if (decision === null) throw error;
    throw new RequestConflictError(`the request was already decided: ${decision.verdict}`);
  }
}

function isAlike(decision: AgentRequest["decision"], { verdict, result, reason }: Decision["decide"]): boolean {
  if (decision?.verdict !== verdict) return false;
  if (verdict === "answered") return decision.result?.text === result;
  return verdict !== "rejected" || decision.reason === (reason ?? null);
}
