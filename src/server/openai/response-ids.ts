import { createHash } from "node:crypto";
import { NotFoundError } from "../../errors/index.ts";
import { agentOfTurn, type AgentRequest } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { type RequestKey, turnKeyOf } from "../core/names.ts";
import type { StartedTurn } from "../core/plain-message.ts";
import { openedId, sealedId } from "../core/url-ids.ts";

/** The section of a turn that forms a response. */
export interface TurnPart extends Pick<StartedTurn, "agent" | "turn" | "turnId"> {
  /** The request whose decision starts the section; `null` if it starts with the turn. */
  readonly begin: string | null;
}

/** A response's id identifies the section of a turn, so that any process finds it in the journal. */
export function responseIdOf({ turnId, begin }: Pick<TurnPart, "turnId" | "begin">): string {
  return sealedId("resp", begin === null ? turnId : `${turnId} ${begin}`);
}

/** A response of this caller. Rejects with the same `NotFoundError` for unknown ids and for those of other callers. */
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

/** The message contains no id, so answers for unknown ids and for those of other callers are equal byte for byte. */
function noSuchResponse(param: string | null): NotFoundError {
  return new NotFoundError("there is no such response", { details: param === null ? {} : { param } });
}

/** Ids of a response's items, derived from the ids of the turns, steps, calls and requests. */
export const itemId = {
  message: (step: string): string => sealedId("msg", step),
  reasoning: (step: string): string => sealedId("rs", step),
  call: (callId: string): string => sealedId("mcp", callId),
  approval: (requestId: string): string => sealedId("mcpr", requestId),
  functionCall: (requestId: string): string => sealedId("fc", requestId),
  /** The id that the output of a function call refers to. */
  callId: (requestId: string): string => sealedId("call", requestId),
};

/** The request id in an item id. Other text is returned unchanged; no request has that id. */
export function requestOfItem(prefix: "mcpr" | "call", id: string): string {
  return openedId(prefix, id) ?? id;
}

/** Route of keys of the requests that start a response: of their turns and plain messages. */
export const CREATE = "openai.responses.create";
/** Route of keys of decisions. */
const DECIDE = "openai.responses.decide";

/**
 * The key of a decision: unique for the request, so that an equal decision can be repeated. It contains the first
 * request that the new response answers, so that the journal shows where a response ends and the next starts.
 */
export function decisionKey(begin: string, requestId: string): RequestKey {
  return { route: DECIDE, value: `${partName(begin)}.${partName(requestId)}` };
}

/** The name of the response that started with the decision of this request; `undefined` if none did. */
export function partBegunBy({ requestId, decidedWith }: AgentRequest): string | undefined {
  const key = decidedWith?.key ?? "";
  if (key.startsWith(turnKeyOf({ route: CREATE, value: "" }))) return partName(requestId);
  const prefix = turnKeyOf({ route: DECIDE, value: "" });
  return key.startsWith(prefix) ? key.slice(prefix.length).split(".", 1)[0] : undefined;
}

/** A name of the response that starts with a decision, short enough for keys. */
export function partName(begin: string): string {
  return createHash("sha256").update(begin).digest("hex").slice(0, 32);
}
