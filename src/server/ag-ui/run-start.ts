import { createHash } from "node:crypto";
import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import type { Agent, Decide } from "../../runtime/index.ts";
import type { AgentRequest, Message } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { isAlike } from "../core/decisions.ts";
import { type RequestKey, turnKeyOf } from "../core/names.ts";
import { ClientMessages } from "./client-messages.ts";
import { decisionOf } from "./interrupts.ts";
import { inputContent, type News, newsOf, type RunInput, toldIn, turnOfMessage } from "./run-input.ts";
import type { Run } from "./run-stream.ts";
import { shownMessages, withClientNames } from "./stored-messages.ts";

/** A run, and whether it had already been started. */
export interface StartedRun {
  readonly run: Run;
  readonly isReplayed: boolean;
}

/**
 * Starts what a run asks for: a new turn for new input, or the next section of a turn for answers. A run with neither
 * shows the conversation and the open turn. Every part is checked before anything is decided.
 */
export async function startRun(caller: Caller, definition: string, input: RunInput): Promise<StartedRun> {
  const news = newsOf(input);
  const { threadId: name, resume } = input;
  // The requests are read before the agent is created: one of another conversation must not create an agent.
  const resumed = await requestsOf(caller, { agentId: caller.agentIdOf(definition, name), resume });
  const agent = await caller.openAgent({ definition, name, sessionId: name });
  const stored = await caller.runtime.stores.messages({ tenant: caller.tenant, agentId: agent.agentId });
  const starting: Starting = { caller, agent, input, news, stored };
  const said = unknownOf(starting);
  const results = await resultsOf(starting);
  const isAnswering = results.length > 0 || resumed.some(({ request }) => request.status === "open");
  if (said.length > 0) {
    // After a failed run, the client repeats the answers of that run, and sends them with its next message.
    if (!isAnswering) return await startTurn(starting, said);
    throw new InvalidInputError(
      "a run accepts answers or a new message, not both: send the message when the run with the answers has ended",
    );
  }
  const isLook = resumed.length === 0 || (!isAnswering && (await turnOfRun(starting)) !== undefined);
  return isLook && results.length === 0 ? await lookOn(starting) : await answer(starting, [...resumed, ...results]);
}

interface Starting {
  readonly caller: Caller;
  readonly agent: Agent;
  readonly input: RunInput;
  readonly news: News;
  /** The conversation before the run. */
  readonly stored: readonly Message[];
}

/** A request with the client's decision. */
interface Answer {
  readonly request: AgentRequest;
  readonly decision: Omit<Decide, "by" | "key">;
}

/** Reads the requests in `resume`. Rejects with `NotFoundError` for one of another conversation. */
async function requestsOf(
  caller: Caller,
  { agentId, resume }: { readonly agentId: string } & Pick<RunInput, "resume">,
): Promise<readonly Answer[]> {
  const found: Answer[] = [];
  for (const entry of resume) {
    const request = await caller.request(entry.interruptId);
    if (request.rootAgentId !== agentId) throw new NotFoundError("there is no such request");
    found.push({ request, decision: decisionOf(request, entry) });
  }
  // All clients decide in the same order, so of concurrent ones the first decides all requests.
  return found.toSorted((one, other) => (one.request.requestId < other.request.requestId ? -1 : 1));
}

/**
 * The user messages that are not stored yet. After an end without an answer, a snapshot has replaced their ids with
 * ours.
 */
function unknownOf({ news, stored }: Starting): News["said"] {
  const known = new Set(stored.map(({ id }) => id));
  return news.said.filter(({ id }) => !known.has(id));
}

/** The open calls of front-end tools with their new results. */
async function resultsOf({ agent, news }: Starting): Promise<readonly Answer[]> {
  if (news.results.size === 0 || agent.state.openTurnId === null) return [];
  return (await agent.requests()).flatMap((request) => {
    const result = request.kind === "client" ? news.results.get(request.callId) : undefined;
    if (result === undefined) return [];
    return [{ request, decision: { verdict: "answered", result: result.text, isError: result.isError } as const }];
  });
}

async function startTurn(starting: Starting, said: News["said"]): Promise<StartedRun> {
  const { caller, agent, input } = starting;
  const { cursor } = await caller.head(agent.rootAgentId);
  const started = await caller.startTurn(agent, inputContent(said, input.context), {
    key: turnKey(input.runId),
    ...(input.tools.length === 0 ? {} : { clientTools: input.tools.map(toolOf) }),
  });
  const { isReplayed } = started;
  return { run: runOf(starting, { followed: started, from: isReplayed ? null : cursor }), isReplayed };
}

function toolOf({ name, description, parameters = { type: "object", properties: {} } }: RunInput["tools"][number]) {
  return { name, description, parameters };
}

/** Follows the turn of this run id or the open turn; without either shows the stored messages. */
async function lookOn(starting: Starting): Promise<StartedRun> {
  const { agent } = starting;
  const known = await turnOfRun(starting);
  const turnId = known ?? (await openTurnIdOf(starting));
  const followed = turnId === null ? null : { agent, turn: agent.turn(turnId), turnId };
  return { run: runOf(starting, { followed, from: null }), isReplayed: known !== undefined };
}

/** The turn that was started with this run id. */
async function turnOfRun({ caller, agent: { agentId }, input }: Starting): Promise<string | undefined> {
  const key = turnKeyOf(turnKey(input.runId));
  const { items } = await caller.turns({ agentId, limit: 100 });
  return items.find((turn) => turn.key === key)?.turnId;
}

/** Reads the stored record, because the client is shown the stored conversation: a live agent may be ahead of it. */
async function openTurnIdOf({ caller: { runtime, tenant }, agent: { agentId } }: Starting): Promise<string | null> {
  return (await runtime.stores.readAgent({ tenant, agentId }))?.openTurnId ?? null;
}

/** Decides all requests that the turn waits for, or none. */
async function answer(starting: Starting, answers: readonly Answer[]): Promise<StartedRun> {
  const { caller, agent, input } = starting;
  const { cursor } = await caller.head(agent.rootAgentId);
  const left = answers.some(({ request }) => request.status === "open") ? await unanswered(agent, answers) : [];
  if (left.length > 0) {
    const message = `resume must answer all open interrupts; these are missing: ${left.join(", ")}`;
    const run = runOf(starting, { followed: null, from: cursor });
    return { run: { ...run, refusal: { message, code: "interrupts_open" } }, isReplayed: false };
  }
  let isNew = false;
  let turnId = await openTurnIdOf(starting);
  for (const one of answers) {
    const { requestId } = one.request;
    const decide = { ...one.decision, key: turnKey(input.runId, requestId) };
    const decided = await caller.decideOnce(requestId, decide, (request) => isAlike(request, one.decision));
    isNew ||= decided.isNew;
    turnId = decided.request.decidedWith?.turnId ?? turnId;
  }
  const followed = turnId === null ? null : { agent, turn: agent.turn(turnId), turnId };
  const { results } = starting.news;
  const hasOwnResults = answers.some(({ request: { kind, callId } }) => kind === "approval" && results.has(callId));
  const run = { ...runOf(starting, { followed, from: isNew ? cursor : null }), hasOwnResults };
  return { run, isReplayed: !isNew };
}

/** The open requests without an answer. Tools of the front end may be answered later. */
async function unanswered(agent: Agent, answers: readonly Answer[]): Promise<readonly string[]> {
  const now = await agent.openTurn()?.current();
  if (now?.status !== "waiting" || now.reason !== "request") return [];
  const given = new Set(answers.map(({ request }) => request.requestId));
  return now.requests
    .filter(({ kind, requestId }) => kind !== "client" && !given.has(requestId))
    .map(({ requestId }) => requestId);
}

/** Stops the open turn of a conversation; with a run id only if that run is open. Returns whether it stopped one. */
export async function cancelRun(
  caller: Caller,
  definition: string,
  {
    threadId,
    runId,
    reason,
  }: { readonly threadId: string; readonly runId?: string | undefined; readonly reason?: string | undefined },
): Promise<boolean> {
  const agent = await caller.root(caller.agentIdOf(definition, threadId));
  const turn = agent.openTurn();
  const turnId = agent.state.openTurnId;
  if (turn === undefined || turnId === null) return false;
  if (runId !== undefined && !(await belongsTo(caller, { agent, turnId, runId }))) return false;
  await turn.abort(reason);
  return true;
}

/** Whether a run started the open turn or answered one of its requests. */
async function belongsTo(
  caller: Caller,
  { agent, turnId, runId }: { readonly agent: Agent; readonly turnId: string; readonly runId: string },
): Promise<boolean> {
  const { items } = await caller.turns({ agentId: agent.agentId, status: "open" });
  if (items.some((turn) => turn.turnId === turnId && turn.key === turnKeyOf(turnKey(runId)))) return true;
  return (await caller.decidedRequests(agent.agentId)).some(
    ({ requestId, decidedWith }) =>
      decidedWith?.turnId === turnId && decidedWith.key === turnKeyOf(turnKey(runId, requestId)),
  );
}

function runOf(starting: Starting, part: Pick<Run, "followed" | "from">): Run {
  const { agent, input, news } = starting;
  const said = unknownOf(starting);
  return {
    input,
    agent,
    answered: news.answered,
    told: toldIn(input),
    said: said.length === 0 ? null : inputContent(said, []),
    isBehind: isBehind(starting, part),
    ...part,
  };
}

/** Whether the client's messages before the run differ from the stored ones. */
function isBehind({ input, stored }: Starting, { followed, from }: Pick<Run, "followed" | "from">): boolean {
  const told = toldIn(input);
  const turnId = followed?.turnId ?? null;
  const shown = withClientNames(shownMessages(stored), { told, turnId, said: null, keepsSaid: true, isOver: false });
  const said = new Set(told.last.map(({ id }) => id));
  // The client may have some messages of a turn that it follows again.
  const isSettled = ({ id }: { readonly id: string }): boolean =>
    !said.has(id) && (from !== null || turnOfMessage(id) !== turnId);
  return !new ClientMessages(input.messages.filter(isSettled)).hasJust(shown.filter(isSettled), new Set([undefined]));
}

/** The idempotency key of a run, or of one of its decisions. Ids that do not fit into a key are hashed. */
function turnKey(runId: string, requestId?: string): RequestKey {
  const id = /^[!-~]{1,64}$/.test(runId) ? runId : `sha256:${createHash("sha256").update(runId).digest("hex")}`;
  return { route: "ag-ui.run", value: requestId === undefined ? id : `${id}/${requestId}` };
}
