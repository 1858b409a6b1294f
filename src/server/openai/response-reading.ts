import type { Agent, Turn, TurnResult } from "../../runtime/index.ts";
import { numberOfTurn, type TroupeEvent, turnIdOf, type Usage } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { messageOfEvent, storedTurnEvents } from "../core/turn-events.ts";
import { answersWhole } from "./chat-start.ts";
import { partBegunBy, partName, responseIdOf, type TurnPart } from "./response-ids.ts";
import { type ResponseBody, type ResponseHead, responseObject, type WireResponse } from "./response-object.ts";
import { ResponseTranslation, type Stored } from "./response-translation.ts";

export type TurnNow = Awaited<ReturnType<Turn["current"]>>;

/** A stored response. */
export interface ReadResponse {
  readonly response: WireResponse;
  /** Whether the turn continues in another response. */
  readonly isContinued: boolean;
  readonly now: TurnNow;
}

/** Metadata field with the id of the response that the agent's conversation was copied from. */
export const PREVIOUS = "previous_response_id";

/** Reads a response; repeats the reading if its turn changes meanwhile. */
export async function readResponse(caller: Caller, part: TurnPart): Promise<ReadResponse> {
  const { head, from, answersWhole } = await beginningOf(caller, part);
  for (let reading = 1; ; reading += 1) {
    const before = await part.turn.current();
    const translation = new ResponseTranslation({ ...part, answersWhole });
    for (const event of await storedTurnEvents(caller, part, from)) {
      translation.take(event, await storedOf(caller, event));
    }
    const now = await part.turn.current();
    if (!isSame(before, now) && reading < MOST_READINGS) continue;
    const body = bodyOf(translation, now);
    return { response: responseObject(head, body), isContinued: translation.isContinued, now };
  }
}

const MOST_READINGS = 5;

/** Whether two states of a turn are the same for a response. */
export function isSame(one: TurnNow, other: TurnNow): boolean {
  return statusFingerprint(one) === statusFingerprint(other);
}

function statusFingerprint(now: TurnNow): string {
  const requests = now.status === "waiting" && now.reason === "request" ? now.requests : [];
  return [now.status, ...requests.map(({ requestId }) => requestId)].join(" ");
}

/** The state of a response. Ends its open items if it has finished. */
export function bodyOf(translation: ResponseTranslation, now: TurnNow): ResponseBody {
  const { isContinued } = translation;
  const isWaiting = now.status === "waiting" && now.reason === "request";
  if (!isContinued && !isWaiting && !("stopReason" in now)) {
    return { status: now.status === "queued" ? "queued" : "in_progress", output: translation.output, usage: null };
  }
  const { here, before } = translation.usage;
  translation.end();
  const { output } = translation;
  if (isContinued || !("stopReason" in now)) return { status: "completed", output, usage: here };
  return { ...endOf(now), output, usage: less(now.spent.tree, before) };
}

function endOf({
  status,
  stopReason,
  error,
  stop,
  text,
}: TurnResult): Pick<ResponseBody, "status" | "isRefusal" | "error"> {
  if (stopReason === "user_requested") return { status: "cancelled" };
  if (status === "completed" || stopReason === "stop_requested") return { status: "completed" };
  if (status === "stopped") return { status: "incomplete", isRefusal: stopReason === "refusal" };
  return { status: "failed", error: { code: "server_error", message: error?.message ?? stop?.message ?? text } };
}

/** Usage of the whole tree, including failed calls, minus the usage that earlier responses of the turn reported. */
function less({ inputTokens, outputTokens, cachedInputTokens, reasoningTokens }: TreeUse, before: Usage): Usage {
  return {
    inputTokens: rest(inputTokens, before.inputTokens),
    outputTokens: rest(outputTokens, before.outputTokens),
    cachedInputTokens: rest(cachedInputTokens, before.cachedInputTokens),
    reasoningTokens: rest(reasoningTokens, before.reasoningTokens),
  };
}

function rest(all: number, part = 0): number {
  return Math.max(0, all - part);
}

type TreeUse = TurnResult["spent"]["tree"];

/** The stored message or request of an event. */
export async function storedOf(caller: Caller, event: TroupeEvent): Promise<Stored> {
  if (event.type !== "request.opened" && event.type !== "request.decided") {
    return { message: await messageOfEvent(caller, event) };
  }
  const { stores, tenant } = caller.runtime;
  return { request: await stores.request({ tenant, agentId: event.agentId }, event.requestId) };
}

/** The data of a response that is known from its start. */
export interface Beginning {
  readonly head: ResponseHead;
  /** The cursor in the tree's journal before the first event of its turn. */
  readonly from: string;
  /** Whether only the validated answer is sent, because the agent answers with JSON. */
  readonly answersWhole: boolean;
  /** Ids of the turn's input messages. */
  readonly inputMessageIds: readonly string[];
}

/** Finds the start of a response in the journal. */
export async function beginningOf(caller: Caller, part: TurnPart): Promise<Beginning> {
  const { agent, turnId, begin } = part;
  const { stores, tenant } = caller.runtime;
  // The cursor is read before the journal, in case the turn has not started yet.
  const { cursor } = await caller.head(agent.rootAgentId);
  const rows = await stores.readJournal({ tenant, agentId: agent.agentId }, 1);
  const started = rows.flatMap(({ cursor: row, entries }) =>
    entries.flatMap((entry) => (entry.type === "turn.started" && entry.turnId === turnId ? [{ row, entry }] : [])),
  )[0];
  const at = begin === null ? await openedAt(caller, part) : (await caller.request(begin)).decidedAt;
  const conversation = conversationOf(caller, agent);
  const definition = caller.runtime.definitions.get(agent.definition.name);
  return {
    head: {
      id: responseIdOf(part),
      createdAt: Math.floor((at ?? started?.entry.at ?? agent.createdAt) / 1_000),
      model: agent.definition.name,
      conversation,
      previousResponseId: conversation === null ? await previousOf(caller, part) : null,
    },
    from: started === undefined ? cursor : `${started.row}.0.0`,
    answersWhole: definition !== undefined && answersWhole({ definition }),
    inputMessageIds: started?.entry.inputMessageIds ?? [],
  };
}

/** Time at which a turn was accepted; `undefined` if it is not among the last 100 turns. */
async function openedAt(caller: Caller, { agent, turnId }: TurnPart): Promise<number | undefined> {
  const { items } = await caller.turns({ agentId: agent.agentId, limit: 100 });
  return items.find((turn) => turn.turnId === turnId)?.openedAt;
}

/** The name that started a conversation; `null` without one. */
function conversationOf(caller: Caller, { agentId, sessionId, definition }: Agent): string | null {
  const isNamed = sessionId !== null && caller.agentIdOf(definition.name, sessionId) === agentId;
  return isNamed ? sessionId : null;
}

/** The response before a response. */
async function previousOf(caller: Caller, { agent, turnId, begin }: TurnPart): Promise<string | null> {
  if (begin !== null) {
    const begins = await beginsIn(caller, agent, turnId);
    const at = begins.indexOf(begin);
    return responseIdOf({ turnId, begin: (at < 0 ? begins.at(-1) : begins[at - 1]) ?? null });
  }
  const number = numberOfTurn(turnId);
  if (number > 1) {
    const before = turnIdOf(agent.agentId, number - 1);
    return responseIdOf({ turnId: before, begin: (await beginsIn(caller, agent, before)).at(-1) ?? null });
  }
  const copied = agent.state.metadata?.[PREVIOUS];
  return typeof copied === "string" ? copied : null;
}

/** The decisions that started the later responses of a turn, in order. */
async function beginsIn(caller: Caller, { rootAgentId }: Agent, turnId: string): Promise<readonly string[]> {
  return (await caller.decidedRequests(rootAgentId))
    .filter((request) => request.decidedWith?.turnId === turnId && partBegunBy(request) === partName(request.requestId))
    .toSorted((one, other) => (one.decidedAt ?? 0) - (other.decidedAt ?? 0))
    .map(({ requestId }) => requestId);
}
