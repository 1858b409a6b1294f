import { createHash } from "node:crypto";
import { NotFoundError } from "../../errors/index.ts";
import { agentOfTurn, type AgentRequest } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { type RequestKey, turnKeyOf } from "../core/names.ts";
import type { StartedTurn } from "../core/plain-message.ts";
import { openedId, sealedId } from "../core/url-ids.ts";

/** The part of a turn that a response is. */
export interface TurnPart extends Pick<StartedTurn, "agent" | "turn" | "turnId"> {
  /** The request whose decision it begins with; `null` if it begins with the turn. */
  readonly begin: string | null;
}

/** A response's id says which part of which turn it is, so that any process finds it in the journal. */
export function responseIdOf({ turnId, begin }: Pick<TurnPart, "turnId" | "begin">): string {
  return sealedId("resp", begin === null ? turnId : `${turnId} ${begin}`);
}

/** A response of this caller. Rejects with `NotFoundError`, alike for unknown ids and for those of others. */
export async function turnPartOf(caller: Caller, responseId: string, param: string | null = null): Promise<TurnPart> {
  const [turnId = "", begin = null, ...more] = openedId("resp", responseId)?.split(" ") ?? [];
  try {
    const found = await caller.turn(turnId);
    const { rootAgentId, agentId } = found.agent;
    if (more.length > 0 || agentId !== rootAgentId) throw noSuchResponse(param);
    const request = begin === null ? null : await caller.request(begin);
    if (request !== null && !hasBegun(request, turnId)) throw noSuchResponse(param);
    return { ...found, begin };
  } catch (error) {
    throw error instanceof NotFoundError ? noSuchResponse(param) : error;
  }
}

/** Whether a decision on a request was made in this turn. */
function hasBegun({ status, rootAgentId, decidedWith }: AgentRequest, turnId: string): boolean {
  if (status === "open" || rootAgentId !== agentOfTurn(turnId)) return false;
  return decidedWith === undefined || decidedWith.turnId === turnId;
}

/** The message holds no id: answers about unknown ids and about those of others are equal byte for byte. */
function noSuchResponse(param: string | null): NotFoundError {
  return new NotFoundError("there is no such response", { details: param === null ? {} : { param } });
}

/** Ids of the items of a response. They are made of the ids of what they show. */
export const itemId = {
  message: (step: string): string => sealedId("msg", step),
  reasoning: (step: string): string => sealedId("rs", step),
  call: (callId: string): string => sealedId("mcp", callId),
  approval: (requestId: string): string => sealedId("mcpr", requestId),
  functionCall: (requestId: string): string => sealedId("fc", requestId),
  /** By which its output names a call of a function. */
  callId: (requestId: string): string => sealedId("call", requestId),
};

/** The request that a client answers by this id; a text that is no such id stays as it is: nothing has it. */
export function requestOfItem(prefix: "mcpr" | "call", id: string): string {
  return openedId(prefix, id) ?? id;
}

/** Of the requests that start a response. Turns and plain messages have keys of it. */
export const CREATE = "openai.responses.create";
/** Of the decisions that a request makes. */
const DECIDE = "openai.responses.decide";

/**
 * The key of a decision: one for each request, so that an equal one can be sent again, and with the request that the new
 * response begins with, so that the journal tells where one response ends and the next begins.
 */
export function decisionKey(begin: string, requestId: string): RequestKey {
  return { route: DECIDE, value: `${partName(begin)}.${partName(requestId)}` };
}

/** The name of the response that began with the decision of this request; `undefined` if none did. */
export function partBegunBy({ requestId, decidedWith }: AgentRequest): string | undefined {
  const key = decidedWith?.key ?? "";
  if (key.startsWith(turnKeyOf({ route: CREATE, value: "" }))) return partName(requestId);
  const prefix = turnKeyOf({ route: DECIDE, value: "" });
  return key.startsWith(prefix) ? key.slice(prefix.length).split(".", 1)[0] : undefined;
}

/** A name for the response that begins with a decision, which is short enough for keys. */
export function partName(begin: string): string {
  return createHash("sha256").update(begin).digest("hex").slice(0, 32);
}
