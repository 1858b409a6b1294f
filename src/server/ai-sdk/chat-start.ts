import { createHash } from "node:crypto";
import { InvalidInputError, NotFoundError, UnsupportedError } from "../../errors/index.ts";
import { type Agent, type Decide, noCursor, type Turn } from "../../runtime/index.ts";
import { agentOfTurn, type AgentRequest } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { isAlike } from "../core/decisions.ts";
import { type RequestKey, turnKeyOf } from "../core/names.ts";
import { type ChatBody, type GivenApproval, type NewAnswers, type NewInput, newsOf } from "./chat-request.ts";
import { type ClientPart, newClient } from "./message-translation.ts";

/** A turn whose message is streamed to a client. */
export interface FollowedTurn {
  readonly agent: Agent;
  readonly turn: Turn;
  readonly turnId: string;
  /** The cursor in the tree after which the events of the turn are read. */
  readonly from: string;
  /** What the client's message has of the turn. */
  readonly client: ClientPart;
  readonly isReplayed: boolean;
}

/**
 * Starts what a chat request asks for: a turn for a new message, or the next section of a turn for answers. Every answer is checked
 * before anything is decided.
 */
export async function startChat(caller: Caller, definition: string, body: ChatBody): Promise<FollowedTurn> {
  const news = newsOf(body);
  if (news.kind === "answers") return await answer(caller, caller.agentIdOf(definition, body.id), { body, news });
  if (body.trigger === "regenerate-message") {
    const earlier = await turnOfMessage(caller, caller.agentIdOf(definition, body.id), news.messageId);
    if (earlier !== undefined) return await repeatOpen(earlier);
  } else if (body.messageId === news.messageId) throw refusal("a sent message cannot be edited");
  return await startTurn(caller, definition, { body, news });
}

/** The stream of a chat's turn from its beginning: of the named one, or of the one that runs; `undefined` if none runs. */
export async function resumedChat(caller: Caller, agent: Agent, messageId?: string): Promise<FollowedTurn | undefined> {
  if (messageId !== undefined) return replay(await ownTurn(caller, agent, messageId));
  const turnId = (await caller.runtime.stores.readAgent({ tenant: caller.tenant, agentId: agent.agentId }))?.openTurnId;
  if (turnId === null || turnId === undefined) return undefined;
  const turn = agent.turn(turnId);
  const { status } = await turn.current();
  return status === "running" || status === "queued" ? replay({ agent, turn, turnId }) : undefined;
}

interface Given<News> {
  readonly body: ChatBody;
  readonly news: News;
}

async function startTurn(
  caller: Caller,
  definition: string,
  { body: { id, tools }, news }: Given<NewInput>,
): Promise<FollowedTurn> {
  const agent = await caller.openAgent({ definition, name: id, sessionId: id });
  const { cursor } = await caller.head(agent.rootAgentId);
  const started = await caller.startTurn(agent, news.content, {
    key: keyOf(news.messageId),
    ...(tools.length === 0 ? {} : { clientTools: tools.map(toolOf) }),
  });
  return { ...started, from: started.isReplayed ? noCursor : cursor, client: newClient };
}

function toolOf({ name, description, parameters = { type: "object", properties: {} } }: ChatBody["tools"][number]) {
  return { name, description, parameters };
}

type OwnTurn = Pick<FollowedTurn, "agent" | "turn" | "turnId">;

/** The turn that a message of the user started; `undefined` if the message has not arrived before. */
async function turnOfMessage(caller: Caller, agentId: string, messageId: string): Promise<OwnTurn | undefined> {
  const [, stored] = /^(.+#\d+):in$/.exec(messageId) ?? [];
  if (stored !== undefined && agentOfTurn(stored) === agentId) return await caller.turn(stored);
  const key = turnKeyOf(keyOf(messageId));
  const { items } = await caller.turns({ agentId, limit: 100 });
  const known = items.find((turn) => turn.key === key);
  return known === undefined ? undefined : await caller.turn(known.turnId);
}

/** Follows an open turn again. Throws `UnsupportedError` for one that has ended: its tools have had their effects. */
async function repeatOpen(known: OwnTurn): Promise<FollowedTurn> {
  const now = await known.turn.current();
  if ("stopReason" in now)
    throw refusal("an answer cannot be generated again, because its tools have had their effects");
  return replay(known);
}

function refusal(what: string): UnsupportedError {
  return new UnsupportedError(`${what}; send a new message, or fork the agent and continue in another chat`);
}

function replay(known: OwnTurn): FollowedTurn {
  return { ...known, from: noCursor, client: newClient, isReplayed: true };
}

async function ownTurn(caller: Caller, agent: Agent, turnId: string): Promise<OwnTurn> {
  if (agentOfTurn(turnId) !== agent.agentId) throw new NotFoundError("there is no such turn");
  return await caller.turn(turnId);
}

/** A request with the client's decision. */
interface Answer {
  readonly request: AgentRequest;
  readonly decision: Omit<Decide, "by" | "key">;
}

async function answer(caller: Caller, agentId: string, { news }: Given<NewAnswers>): Promise<FollowedTurn> {
  // The requests are read before the agent: one of another conversation gets the same answer as a missing one.
  const approvals = await Promise.all(news.approvals.map((given) => approvalOf(caller, agentId, given)));
  const agent = await caller.root(agentId);
  const answers = [...approvals, ...(await outputsOf(agent, news))];
  // All clients decide in the same order, so of concurrent ones the first decides all requests.
  answers.sort((one, other) => (one.request.requestId < other.request.requestId ? -1 : 1));
  let isNew = false;
  let decidedTurn: string | undefined;
  for (const { request, decision } of answers) {
    const { requestId } = request;
    const key = keyOf(`${requestId}/${hashOf(JSON.stringify(decision))}`);
    const decided = await caller.decideOnce(requestId, { ...decision, key }, (one) => isAlike(one, decision));
    isNew ||= decided.isNew;
    decidedTurn = decided.request.decidedWith?.turnId ?? decidedTurn;
  }
  const turnId = decidedTurn ?? agent.state.openTurnId ?? news.messageId;
  const known = await ownTurn(caller, agent, turnId);
  return {
    ...known,
    from: noCursor,
    client: turnId === news.messageId ? news.client : newClient,
    isReplayed: !isNew,
  };
}

async function approvalOf(caller: Caller, agentId: string, given: GivenApproval): Promise<Answer> {
  const { requestId, isApproved, reason, argumentsHash } = given;
  const request = await caller.request(requestId);
  if (request.rootAgentId !== agentId) throw new NotFoundError("there is no such request");
  if (request.kind !== "approval") {
    throw new InvalidInputError(`request ${requestId} needs an answer, not an approval: use addToolOutput`);
  }
  const decision = {
    verdict: isApproved ? "approved" : "rejected",
    ...(reason === undefined ? {} : { reason }),
    ...(argumentsHash === undefined ? {} : { argumentsHash }),
  } as const;
  return { request, decision };
}

/** The open requests whose calls have a result in the message. */
async function outputsOf(agent: Agent, { outputs }: NewAnswers): Promise<readonly Answer[]> {
  if (outputs.size === 0 || agent.state.openTurnId === null) return [];
  return (await agent.requests()).flatMap((request): Answer[] => {
    const given = request.kind === "approval" ? undefined : outputs.get(request.callId);
    if (given === undefined) return [];
    if (request.kind === "auth") return [{ request, decision: { verdict: "provided" } }];
    if (request.kind === "client") return [{ request, decision: { verdict: "answered", ...given } }];
    if (given.isError) return [{ request, decision: { verdict: "rejected", reason: String(given.result) } }];
    return [{ request, decision: { verdict: "answered", result: given.result } }];
  });
}

function keyOf(value: string): RequestKey {
  return { route: "ai-sdk.chat", value: /^[!-~]{1,200}$/.test(value) ? value : `sha256:${hashOf(value)}` };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
