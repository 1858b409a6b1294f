import { createHash } from "node:crypto";
import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import type { Agent, Decide } from "../../runtime/index.ts";
import type { AgentRequest, Message } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { type RequestKey, turnKeyOf } from "../core/names.ts";
import { ClientMessages } from "./client-messages.ts";
import { decisionOf, isAlike } from "./interrupts.ts";
import { inputContent, type News, newsOf, type RunInput, toldIn, turnOfMessage } from "./run-input.ts";
import type { Run } from "./run-stream.ts";
import { shownMessages, withClientNames } from "./stored-messages.ts";

/** A run, and whether it had been started before. */
export interface StartedRun {
  readonly run: Run;
  readonly isReplayed: boolean;
}

/**
 * What a client asks for with a run: a turn, for what it says for the first time; the next part of a turn, for answers; or
 * else to be shown the conversation, and the turn that is open. Nothing is decided before everything has been checked.
 */
export async function startRun(caller: Caller, definition: string, input: RunInput): Promise<StartedRun> {
  const news = newsOf(input);
  const { threadId: name, resume } = input;
  // Before the agent of this name is made: a request of another conversation must not create one.
  const resumed = await requestsOf(caller, { agentId: caller.agentIdOf(definition, name), resume });
  const agent = await caller.openAgent({ definition, name, sessionId: name });
  const stored = await caller.runtime.stores.messages({ tenant: caller.tenant, agentId: agent.agentId });
  const starting: Starting = { caller, agent, input, news, stored };
  const said = unknownOf(starting);
  const results = await resultsOf(starting);
  const isAnswering = results.length > 0 || resumed.some(({ request }) => request.status === "open");
  if (said.length > 0) {
    // A client whose run has failed has to answer once more what it was asked there, and does so with its next message.
    if (!isAnswering) return await startTurn(starting, said);
    throw new InvalidInputError(
      "a run takes answers or a new message, not both: send the message when the run with the answers has ended",
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

/** A request with the decision that a client sends. */
interface Answer {
  readonly request: AgentRequest;
  readonly decision: Omit<Decide, "by" | "key">;
}

/** The requests that `resume` names. Rejects with `NotFoundError` for one of another conversation. */
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
  // Of several clients at once all decide in the same order, so the first one gets all.
  return found.toSorted((one, other) => (one.request.requestId < other.request.requestId ? -1 : 1));
}

/** Messages of the user that are not ours already: after an end without an answer a snapshot gave them our ids. */
function unknownOf({ news, stored }: Starting): News["said"] {
  const known = new Set(stored.map(({ id }) => id));
  return news.said.filter(({ id }) => !known.has(id));
}

/** The open calls of the front end's tools that it has answered. */
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

/** Shows the run of this id, else the turn that is open, else what is stored. */
async function lookOn(starting: Starting): Promise<StartedRun> {
  const { agent } = starting;
  const known = await turnOfRun(starting);
  const turnId = known ?? (await openTurnIdOf(starting));
  const followed = turnId === null ? null : { agent, turn: agent.turn(turnId), turnId };
  return { run: runOf(starting, { followed, from: null }), isReplayed: known !== undefined };
}

/** The turn that the run of this id began. */
async function turnOfRun({ caller, agent: { agentId }, input }: Starting): Promise<string | undefined> {
  const key = turnKeyOf(turnKey(input.runId));
  const { items } = await caller.turns({ agentId, limit: 100 });
  return items.find((turn) => turn.key === key)?.turnId;
}

/** By what is stored, as the conversation is that the client is shown: a live agent may have come further. */
async function openTurnIdOf({ caller: { runtime, tenant }, agent: { agentId } }: Starting): Promise<string | null> {
  return (await runtime.stores.readAgent({ tenant, agentId }))?.openTurnId ?? null;
}

/** Decides all that the turn waits for, or nothing. */
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
  return { run: runOf(starting, { followed, from: isNew ? cursor : null }), isReplayed: !isNew };
}

/** What the open turn waits for beside these answers. Tools of the front end may be answered later. */
async function unanswered(agent: Agent, answers: readonly Answer[]): Promise<readonly string[]> {
  const now = await agent.openTurn()?.current();
  if (now?.status !== "waiting" || now.reason !== "request") return [];
  const given = new Set(answers.map(({ request }) => request.requestId));
  return now.requests
    .filter(({ kind, requestId }) => kind !== "client" && !given.has(requestId))
    .map(({ requestId }) => requestId);
}

/** Stops the open turn of a conversation; with a run, only if that is what runs. Returns whether it did. */
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

/** Whether a run started the open turn, or answered something in it. */
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

/** Whether the client lacks what was said before the run, or has what is not stored. */
function isBehind({ input, stored }: Starting, { followed, from }: Pick<Run, "followed" | "from">): boolean {
  const told = toldIn(input);
  const turnId = followed?.turnId ?? null;
  const shown = withClientNames(shownMessages(stored), { told, turnId, said: null, keepsSaid: true, isOver: false });
  const said = new Set(told.last.map(({ id }) => id));
  // Of a turn that it follows again the client may have a part.
  const isSettled = ({ id }: { readonly id: string }): boolean =>
    !said.has(id) && (from !== null || turnOfMessage(id) !== turnId);
  return !new ClientMessages(input.messages.filter(isSettled)).hasJust(shown.filter(isSettled), new Set([undefined]));
}

/** The key of a run, or of one decision of it. Ids that a key cannot hold become their hash. */
function turnKey(runId: string, requestId?: string): RequestKey {
  const id = /^[!-~]{1,64}$/.test(runId) ? runId : `sha256:${createHash("sha256").update(runId).digest("hex")}`;
  return { route: "ag-ui.run", value: requestId === undefined ? id : `${id}/${requestId}` };
}
