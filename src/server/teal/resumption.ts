import { NotFoundError, RequestConflictError } from "../../errors/index.ts";
import type { Agent, Decide, Turn } from "../../runtime/index.ts";
import type { AgentRequest } from "../../state/index.ts";
import type { Call } from "../core/route.ts";
import { idOfUrl } from "../core/url-ids.ts";
import { type Address, idsOf, pausedContent } from "./answers.ts";
import { conflict } from "./invocation.ts";
import { turnOfRequestId } from "./task-ids.ts";
import type { ResumeBody } from "./user-message.ts";
import { unprocessable, valueError } from "./validation-errors.ts";

export type Action = "approve" | "reject" | "answer";

/** A client's decision on a waiting request. */
export interface Resumption extends ResumeBody {
  readonly action: Action;
  /** Ids of the calls in `approval_url`, which the approving person saw; `undefined` without them. */
  readonly calls: readonly string[] | undefined;
}

export type ResumeCall = Call<
  { readonly request_id: string },
  { readonly action?: string | undefined; readonly calls?: string | undefined },
  unknown,
  ResumeBody | null | undefined
>;

/** The action of body or query. Returns a response if it is missing, unknown or ambiguous. */
export function resumptionOf({ body, query }: ResumeCall): Resumption | Response {
  const given = body?.action ?? query.action;
  const loc = body?.action === undefined && query.action !== undefined ? ["query", "action"] : ["body", "action"];
  if (given === undefined) {
    return unprocessable([{ type: "missing", loc, msg: "Field required", input: body ?? null }]);
  }
  if (query.action !== undefined && query.action !== given) {
    return unprocessable([valueError(["query", "action"], "it differs from the body's action", query.action)]);
  }
  if (given !== "approve" && given !== "reject" && given !== "answer") {
    return unprocessable([valueError(loc, "it should be 'approve', 'reject' or 'answer'", given)]);
  }
  if (given === "answer" && body?.result === undefined) {
    return unprocessable([{ type: "missing", loc: ["body", "result"], msg: "Field required", input: body ?? null }]);
  }
  return { ...body, action: given, calls: query.calls?.split(",").map(idOfUrl) };
}

/** A request of this caller that a client resumes. */
export interface Resumed {
  readonly agent: Agent;
  readonly turn: Turn;
  readonly turnId: string;
  readonly address: Address;
}

/** Finds the request to resume at one of these URLs. Rejects with `NotFoundError`. */
export async function resumedOf(call: ResumeCall, addresses: readonly Address[]): Promise<Resumed> {
  const turnId = turnOfRequestId(call.params.request_id);
  if (turnId === undefined) throw new NotFoundError("there is no such request");
  const { agent, turn } = await call.caller.turn(turnId);
  const address = addresses.find(({ name }) => name === agent.definition.name);
  if (address === undefined) throw new NotFoundError("there is no such request");
  return { agent, turn, turnId, address };
}

/**
 * Decides the calls of a request. All resumptions decide them in the same order, so the first of several concurrent
 * ones decides all. The others get its verdict: an equal resumption gets the same answer, a different one is refused
 * with the name of the first user. Calls that came after a decision need a resumption that names them, so that a late
 * resumption decides nothing that its sender has not seen. Returns the refusal, or `undefined` if the request was
 * decided as wanted.
 */
export async function decideAll(
  call: Pick<Call, "caller">,
  resumed: Resumed,
  resumption: Resumption,
): Promise<Response | undefined> {
  const { agent, turn, turnId } = resumed;
  const open = agent.state.openTurnId === turnId ? await agent.requests() : [];
  const wanted = open.filter(({ kind }) => decides(resumption.action, kind));
  const before = await decidedOf(call, resumed, wanted);
  const seen = wanted.filter((request) => isSeen(request, resumption, before));
  if (wanted.length > 0 && seen.length === 0 && resumption.calls === undefined) return pausedAgain(resumed, open);
  const chosen = chosenOf(seen, resumption);
  if (chosen instanceof Response) return chosen;
  let decided = seen.length === 0 ? lastOf(before, resumption) : undefined;
  for (const request of chosen) {
    try {
      await call.caller.decide(request.requestId, decideOf(request, resumption));
    } catch (error) {
      if (!(error instanceof RequestConflictError)) throw error;
      decided = await call.caller.request(request.requestId);
      if (!isAlike(decided, resumption)) break;
    }
  }
  if (decided === undefined && seen.length === 0) return nothingToDecide(resumed, open);
  if (decided !== undefined && !isAlike(decided, resumption)) return lost(decided, resumed);
  if (resumption.action === "reject") await turn.abort("Tool execution rejected.");
  return undefined;
}

/**
 * Whether the sender has seen this request: the resumption names it, or no decision came before it. A rejection applies
 * to all requests.
 */
function isSeen(request: AgentRequest, { action, calls, tool_call_id }: Resumption, before: readonly AgentRequest[]) {
  if (action === "reject" || tool_call_id !== undefined) return true;
  if (calls !== undefined) return calls.includes(request.requestId);
  return !before.some((decided) => isLater(request, decided));
}

/**
 * Whether a request was opened after another had been decided. Within an agent, steps are compared instead of clocks.
 */
function isLater(request: AgentRequest, decided: AgentRequest): boolean {
  // A concurrent resumption has just decided it.
  if (request.requestId === decided.requestId) return false;
  if (request.agentId !== decided.agentId) return (decided.decidedAt ?? 0) <= request.openedAt;
  return request.turnId === decided.turnId && (request.step > decided.step || request.callId === decided.callId);
}

/** A rejection applies to all kinds of requests. */
function decides(action: Action, kind: AgentRequest["kind"]): boolean {
  if (action === "reject") return true;
  return action === "approve" ? kind === "approval" : kind === "question" || kind === "client";
}

/** The requests to decide. An answer or edited arguments apply to one call, which must be named if several are open. */
function chosenOf(wanted: readonly AgentRequest[], resumption: Resumption): readonly AgentRequest[] | Response {
  const { action, tool_call_id: id, arguments: args } = resumption;
  if (id !== undefined && wanted.length > 0 && !wanted.some(({ requestId }) => requestId === id)) {
    return unprocessable([valueError(["body", "tool_call_id"], "no open call has this id", id)]);
  }
  const isForOne = action === "answer" || args !== undefined;
  if (isForOne && id === undefined && wanted.length > 1) {
    const known = wanted.map(({ requestId }) => requestId).join(", ");
    return unprocessable([valueError(["body", "tool_call_id"], `name one of the open calls: ${known}`, null)]);
  }
  return action === "answer" && id !== undefined ? wanted.filter(({ requestId }) => requestId === id) : wanted;
}

function decideOf(request: AgentRequest, resumption: Resumption): Omit<Decide, "by" | "key"> {
  const { action, reason, arguments: args, result, tool_call_id: id } = resumption;
  if (action === "answer") return { verdict: "answered", result };
  if (action === "reject") return { verdict: "rejected", reason: reason ?? "Tool execution rejected." };
  const isEdited = args !== undefined && (id === undefined || id === request.requestId);
  return { ...(isEdited ? { verdict: "edited", arguments: args } : { verdict: "approved" }), reason };
}

/** Whether a decision equals that of this resumption. */
function isAlike({ decision }: AgentRequest, { action, result, arguments: args }: Resumption): boolean {
  if (decision === null) return false;
  if (action === "reject") return decision.verdict === "rejected";
  if (action === "answer") {
    const text = typeof result === "string" ? result : JSON.stringify(result);
    return decision.verdict === "answered" && decision.result?.text === text;
  }
  if (args === undefined) return decision.verdict === "approved" || decision.verdict === "edited";
  return decision.verdict === "edited" && JSON.stringify(decision.arguments) === JSON.stringify(args);
}

/** The decided requests of this request's calls, including those of its subagents. */
async function decidedOf(
  { caller }: Pick<Call, "caller">,
  { agent, turnId }: Resumed,
  wanted: readonly AgentRequest[],
): Promise<readonly AgentRequest[]> {
  const [opened] = wanted.length === 0 ? [] : (await caller.turns({ agentId: agent.agentId, status: "open" })).items;
  const found = await caller.decidedRequests(agent.rootAgentId);
  // The tree also contains subagents of earlier turns.
  return found.filter((request) =>
    request.agentId === agent.agentId ? request.turnId === turnId : request.openedAt >= (opened?.openedAt ?? 0),
  );
}

/** The newest of these decisions, or of those on the calls that the resumption names. */
function lastOf(decided: readonly AgentRequest[], { calls }: Resumption): AgentRequest | undefined {
  const meant = decided.filter(({ requestId }) => calls?.includes(requestId) ?? true);
  return meant.toSorted((one, other) => (one.decidedAt ?? 0) - (other.decidedAt ?? 0)).at(-1);
}

function lost({ decision }: AgentRequest, { agent, turnId }: Resumed): Response {
  const by = decision?.by ?? null;
  const how = decision === null ? "closed without a decision" : decision.verdict;
  return conflict(`The request was already ${how}${by === null ? "" : ` by ${by}`}`, idsOf(agent, turnId));
}

function nothingToDecide({ agent, turnId }: Resumed, open: readonly AgentRequest[]): Response {
  const kinds = [...new Set(open.map(({ kind }) => kind))].join(", ");
  const why =
    open.length === 0
      ? "The request is not waiting for a decision"
      : `The request waits for another decision (${kinds})`;
  return conflict(why, idsOf(agent, turnId));
}

/** Answers with the open requests and the URL that approves them. */
function pausedAgain({ agent, turnId, address }: Resumed, open: readonly AgentRequest[]): Response {
  const three = idsOf(agent, turnId);
  const detail = `The request has paused again: use the new approval_url, or name the tool_call_id: ${three.request_id}`;
  return Response.json({ detail, ...pausedContent(three, address, open) }, { status: 409 });
}
