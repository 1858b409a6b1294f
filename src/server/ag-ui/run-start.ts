import { createHash } from "node:crypto";
import { AgentBusyError, InvalidInputError, NotFoundError } from "../../errors/index.ts";
import type { Agent, Decide } from "../../runtime/index.ts";
import type { AgentRequest, Message } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { isAlike } from "../core/decisions.ts";
import { type RequestKey, turnKeyOf } from "../core/names.ts";
import { ClientMessages } from "./client-messages.ts";
import type { AgUiMessage } from "./events.ts";
import { decisionOf } from "./interrupts.ts";
import {
  inputContent,
  isSteering,
  type News,
  newsOf,
  type RunInput,
  type Told,
  toldIn,
  turnOfMessage,
} from "./run-input.ts";
import type { Run } from "./run-stream.ts";
import type { SteeredMessage } from "./run-translation.ts";
import { shownMessages, userContent, withClientNames } from "./stored-messages.ts";

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
  const isRead = news.said.length === 0 || isSteering(input) || hasSteered(stored);
  const steered = isRead ? await steeredOf({ caller, agent, input }) : { own: new Map(), foreign: new Map() };
  const starting: Starting = { caller, agent, input, news, stored, steered };
  const said = unknownOf(starting);
  const results = await resultsOf(starting);
  const isAnswering = results.length > 0 || resumed.some(({ request }) => request.status === "open");
  if (said.length > 0) {
    // After a failed run, the client repeats the answers of that run, and sends them with its next message.
    if (!isAnswering) return await (isSteering(input) ? steerOrStart(starting, said) : startTurn(starting, said));
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
  readonly steered: Steered;
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
function unknownOf({ news, stored, steered }: Starting): News["said"] {
  const known = new Set([...stored.map(({ id }) => id), ...steered.own.keys()]);
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

/** Whether inputs were given to running turns. */
function hasSteered(stored: readonly Message[]): boolean {
  return stored.some(({ id, role }) => role === "user" && /:in:\d+$/.test(id));
}

/** The inputs that were given to running turns. */
interface Steered {
  /** The stored ids of the client's own, by the client's ids. */
  readonly own: ReadonlyMap<string, string>;
  /** Those of others, by their stored ids. */
  readonly foreign: ReadonlyMap<string, AgUiMessage>;
}

/** Reads the journal, which alone has the keys of inputs, and those that no model call has seen yet. */
async function steeredOf({
  caller: { runtime, tenant },
  agent: { agentId },
  input,
}: Pick<Starting, "caller" | "agent" | "input">): Promise<Steered> {
  const idOfKey = new Map(input.messages.flatMap(({ id, role }) => (role === "user" ? [[steerKey(id), id]] : [])));
  const own = new Map<string, string>();
  const foreign = new Map<string, AgUiMessage>();
  for (const { entries } of await runtime.stores.readJournal({ tenant, agentId }, 0)) {
    for (const entry of entries) {
      if (entry.type !== "turn.steered") continue;
      const { messageId: storedId, content } = entry;
      const id = idOfKey.get(entry.inputKey?.text ?? "");
      if (id === undefined) foreign.set(storedId, { id: storedId, role: "user", content: userContent(content) });
      else own.set(id, storedId);
    }
  }
  return { own, foreign };
}

/** Gives the messages to the open turn; without one they start a turn. */
async function steerOrStart(starting: Starting, said: News["said"]): Promise<StartedRun> {
  const { caller, agent } = starting;
  // The run itself may have started the open turn.
  if ((await turnOfRun(starting)) !== undefined) return await startTurn(starting, said);
  const key = { tenant: caller.tenant, agentId: agent.agentId };
  const known = await Promise.all(said.map(({ id }) => caller.runtime.stores.readSteer(key, steerKey(id))));
  const openTurnId = await openTurnIdOf(starting);
  if (openTurnId !== null || known.some((one) => one !== undefined)) return await steer(starting, said);
  try {
    return await startTurn(starting, said);
  } catch (error) {
    // Another client has just started a turn.
    if (error instanceof AgentBusyError) return await steer(starting, said);
    throw error;
  }
}

/** A repeated message has the same key, and so the same answer. */
async function steer(starting: Starting, said: News["said"]): Promise<StartedRun> {
  const { caller, agent } = starting;
  const fresh = said.slice(await countOfOpening(starting, said));
  if (fresh.length === 0) return await lookOn(starting);
  const steers: SteeredMessage[] = [];
  for (const message of fresh) {
    const key = { route: STEER_ROUTE, value: keyValueOf(message.id) };
    const answer = await caller.steer(agent, inputContent([message], []), { key });
    steers.push({ messageId: message.id, answer });
  }
  const { turnId = "" } = steers.at(-1)?.answer ?? {};
  const steered = await steeredOf(starting);
  const run = runOf({ ...starting, steered }, { followed: { agent, turn: agent.turn(turnId), turnId }, from: null });
  return { run: { ...run, steers }, isReplayed: false };
}

/**
 * How many of the messages have opened the turn that is open now: a client that has no answer yet cannot know how its input is stored, and
 * sends it again with the next message.
 */
async function countOfOpening(starting: Starting, said: News["said"]): Promise<number> {
  const { caller, agent, input } = starting;
  const turnId = await openTurnIdOf(starting);
  if (turnId === null) return 0;
  const key = { tenant: caller.tenant, agentId: agent.agentId };
  const [opening] = await caller.runtime.stores.messagesById(key, [`${turnId}:in`]);
  if (opening === undefined) return 0;
  const text = JSON.stringify(opening.content);
  for (let count = said.length; count > 0; count -= 1) {
    const contents = [inputContent(said.slice(0, count), input.context), inputContent(said.slice(0, count), [])];
    if (contents.some((content) => JSON.stringify(content) === text)) return count;
  }
  return 0;
}

const STEER_ROUTE = "ag-ui.steer";

/** The key of an input for a running turn, as it is stored. */
function steerKey(messageId: string): string {
  return turnKeyOf({ route: STEER_ROUTE, value: keyValueOf(messageId) });
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
    told: told(starting),
    said: said.length === 0 ? null : inputContent(said, []),
    isBehind: isBehind(starting, part),
    ...part,
  };
}

function told({ input, steered }: Starting): Told {
  const own = toldIn(input, steered.own);
  return { ...own, steered: new Map([...steered.foreign, ...own.steered]) };
}

/** Whether the client's messages before the run differ from the stored ones. */
function isBehind(starting: Starting, { followed, from }: Pick<Run, "followed" | "from">): boolean {
  const { input, stored, steered } = starting;
  const said = new Set(toldIn(input, steered.own).last.map(({ id }) => id));
  const turnId = followed?.turnId ?? null;
  const shown = withClientNames(shownMessages(stored), {
    told: told(starting),
    turnId,
    said: null,
    keepsSaid: true,
    isOver: false,
  });
  // The client may have some messages of a turn that it follows again.
  const isSettled = ({ id }: { readonly id: string }): boolean =>
    !said.has(id) && (from !== null || turnOfMessage(steered.own.get(id) ?? id) !== turnId);
  return !new ClientMessages(input.messages.filter(isSettled)).hasJust(shown.filter(isSettled), new Set([undefined]));
}

/** The idempotency key of a run, or of one of its decisions. Ids that do not fit into a key are hashed. */
function turnKey(runId: string, requestId?: string): RequestKey {
  const id = keyValueOf(runId);
  return { route: "ag-ui.run", value: requestId === undefined ? id : `${id}/${requestId}` };
}

function keyValueOf(id: string): string {
  return /^[!-~]{1,64}$/.test(id) ? id : `sha256:${createHash("sha256").update(id).digest("hex")}`;
}
