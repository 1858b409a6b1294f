import { AgentBusyError, RequestConflictError, TurnConflictError } from "../../errors/index.ts";
import type { Agent, Runtime, Turn, TurnOptions } from "../../runtime/index.ts";
import { type AgentRequest, type Content, textOf } from "../../state/index.ts";
import { keyReused } from "./failures.ts";
import { type RequestKey, turnKeyOf } from "./names.ts";

export interface StartTurnOptions
  extends Pick<TurnOptions, "budget" | "ifBusy" | "trace" | "clientTools" | "settings"> {
  /**
   * Idempotency key: the same key on an agent is the same turn, or the same answer to a waiting turn. Default: none.
   */
  readonly key?: RequestKey | undefined;
}

/** The outcome of a message. */
export interface StartedTurn {
  /** The agent that received the message. */
  readonly agent: Agent;
  /** The new turn, or the turn that waited. */
  readonly turn: Turn;
  /** Id of the turn. */
  readonly turnId: string;
  /** An earlier request with the same key already started the turn or gave the answer. */
  readonly isReplayed: boolean;
  /**
   * Outcome. `answer`: the message answered the open question of a waiting turn. `rejection`: it rejected the turn's
   * approvals.
   */
  readonly became: "turn" | "answer" | "rejection";
}

/** The caller's operations that messages use. */
interface Sender {
  readonly ownerId: string;
  readonly runtime: Pick<Runtime, "decide">;
  startTurn(agent: Agent, input: Content, options: StartTurnOptions): Promise<StartedTurn>;
  request(requestId: string): Promise<AgentRequest>;
  decidedRequests(rootAgentId: string): Promise<readonly AgentRequest[]>;
}

interface PlainMessage {
  readonly agent: Agent;
  readonly content: Content;
  readonly options: StartTurnOptions;
}

/** A turn that waits for decisions. */
interface WaitingTurn {
  readonly turn: Turn;
  readonly turnId: string;
  readonly requests: readonly AgentRequest[];
}

/**
 * Starts a turn, or answers the waiting one, with a message without a request id.
 *
 * A key belongs to one turn or one decision of its agent. The transaction that starts the turn or stores the decision
 * also stores the key, and refuses a key that is used differently. So of several equal messages, at any time and in any
 * process, one takes effect, and the others return its outcome.
 */
export async function sendPlainMessage(sender: Sender, message: PlainMessage): Promise<StartedTurn> {
  const { agent, options } = message;
  const waiting = await waitingTurnOf(agent);
  if (waiting === undefined) return await startOrRepeat(sender, message);
  try {
    return await answer(sender, message, waiting);
  } catch (error) {
    if (options.key === undefined || !mayBeRepeated(error)) throw error;
    try {
      return await startOrRepeat(sender, { ...message, options: { ...options, ifBusy: "refuse" } });
    } catch (refusal) {
      throw refusal instanceof AgentBusyError ? error : refusal;
    }
  }
}

/**
 * Answers a given turn with a message, and never starts another: for protocols whose messages can name their turn. With
 * a key it can be sent again, also after the turn has ended. Rejects with `AgentBusyError` unless the turn waits.
 */
export async function answerTurn(sender: Sender, message: PlainMessage, turnId: string): Promise<StartedTurn> {
  // The decision is read after the turn, because an equal message may be answered in between.
  const waiting = await waitingTurnOf(message.agent);
  const earlier = await decidedWith(sender, message);
  if (earlier !== undefined) return await repeatIn(sender, message, { turnId, requestId: earlier });
  if (waiting?.turnId !== turnId) throw new AgentBusyError("the turn is not waiting for an answer");
  try {
    return await answer(sender, message, waiting);
  } catch (error) {
    const meanwhile = mayBeRepeated(error) ? await decidedWith(sender, message) : undefined;
    if (meanwhile === undefined) throw error;
    return await repeatIn(sender, message, { turnId, requestId: meanwhile });
  }
}

/** The id of the request that was decided with the message's key. */
async function decidedWith(sender: Sender, { agent, options }: PlainMessage): Promise<string | undefined> {
  if (options.key === undefined) return undefined;
  const key = turnKeyOf(options.key);
  const decided = await sender.decidedRequests(agent.rootAgentId);
  return decided.find((request) => request.decidedWith?.key === key)?.requestId;
}

async function repeatIn(
  sender: Sender,
  message: PlainMessage,
  { turnId, requestId }: { readonly turnId: string; readonly requestId: string },
): Promise<StartedTurn> {
  const repeated = await repeat(sender, message, requestId);
  if (repeated.turnId !== turnId) throw keyReused();
  return repeated;
}

/** Whether an earlier message with the same key may be the cause of the error. */
function mayBeRepeated(error: unknown): boolean {
  return error instanceof AgentBusyError || isKeyTaken(error);
}

/** Whether a decision was refused because its key is used differently. */
export function isKeyTaken(error: unknown): error is RequestConflictError {
  return error instanceof RequestConflictError && error.details["key"] !== undefined;
}

async function waitingTurnOf(agent: Agent): Promise<WaitingTurn | undefined> {
  const turn = agent.openTurn();
  const now = await turn?.current();
  if (turn === undefined || now?.status !== "waiting" || now.reason !== "request") return undefined;
  return { turn, turnId: now.turnId, requests: now.requests };
}

async function startOrRepeat(sender: Sender, message: PlainMessage): Promise<StartedTurn> {
  try {
    return await sender.startTurn(message.agent, message.content, message.options);
  } catch (error) {
    const requestId = error instanceof TurnConflictError ? error.details["requestId"] : undefined;
    if (typeof requestId !== "string") throw error;
    return await repeat(sender, message, requestId);
  }
}

async function answer(
  sender: Sender,
  { agent, content, options }: PlainMessage,
  { turn, turnId, requests }: WaitingTurn,
): Promise<StartedTurn> {
  const approvals = requests.filter(({ kind }) => kind === "approval");
  const [question, ...others] = requests.filter(({ kind }) => kind === "question");
  const text = textOf(content);
  const key = options.key && turnKeyOf(options.key);
  if (question && others.length === 0 && approvals.length === 0) {
    const decide = { verdict: "answered", by: sender.ownerId, result: text, key } as const;
    const { isReplayed = false } = await sender.runtime.decide(question.requestId, decide);
    return { agent, turn, turnId, isReplayed, became: "answer" };
  }
  if (question || approvals.length === 0) throw unclear(turnId, requests);
  const isReplayed = await rejectAll(sender, approvals, { reason: text, key });
  return { agent, turn, turnId, isReplayed, became: "rejection" };
}

/** The outcome of a message whose key has decided a request. */
async function repeat(sender: Sender, { agent, content }: PlainMessage, requestId: string): Promise<StartedTurn> {
  const { decision, decidedAt, decidedWith } = await sender.request(requestId);
  const text = textOf(content);
  const isRejection = decision?.verdict === "rejected";
  const said = isRejection ? decision.reason : decision?.result?.text;
  if (decidedWith === undefined || said !== text) throw keyReused();
  if (isRejection) {
    // The process that rejected the first approval may have died before it rejected the others.
    const left = (await agent.requests()).filter(
      ({ kind, openedAt }) => kind === "approval" && openedAt <= (decidedAt ?? 0),
    );
    await rejectAll(sender, left, { reason: text });
  }
  const { turnId } = decidedWith;
  const became = isRejection ? "rejection" : "answer";
  return { agent, turn: agent.turn(turnId), turnId, isReplayed: true, became };
}

interface Rejection {
  readonly reason: string;
  readonly key?: string | undefined;
}

/**
 * Rejects approvals; those that another client has just rejected count too. The first rejection by this call stores the
 * key. Rejects with `RequestConflictError` if the call rejects none, because then nothing stores the key. Returns
 * whether that rejection had been made before.
 */
async function rejectAll(
  sender: Sender,
  approvals: readonly AgentRequest[],
  { reason, key }: Rejection,
): Promise<boolean> {
  let unused = key;
  let isReplayed = false;
  let conflict: RequestConflictError | undefined;
  for (const { requestId } of approvals) {
    try {
      const decide = { verdict: "rejected", by: sender.ownerId, reason, key: unused } as const;
      const decided = await sender.runtime.decide(requestId, decide);
      if (unused !== undefined) isReplayed = decided.isReplayed ?? false;
      unused = undefined;
    } catch (error) {
      if (!(error instanceof RequestConflictError) || isKeyTaken(error)) throw error;
      const { decision } = await sender.request(requestId);
      if (decision?.verdict !== "rejected" && decision !== null) throw error;
      conflict = error;
    }
  }
  if (unused !== undefined && conflict) throw conflict;
  return isReplayed;
}

function unclear(openTurnId: string, requests: readonly AgentRequest[]): Error {
  const ids = requests.map(({ requestId, kind }) => `${requestId} (${kind})`).join(", ");
  return new AgentBusyError(
    `the turn waits for decisions that a plain message cannot give; decide these requests: ${ids}`,
    {
      details: { openTurnId, requestIds: requests.map(({ requestId }) => requestId).join(" ") },
    },
  );
}
