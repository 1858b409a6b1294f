import { RequestConflictError } from "../../errors/index.ts";
import type { TurnRest } from "../../runtime/index.ts";
import { type AgentRequest, type Json, type JsonObject, textOf, type TroupeEvent } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import type { SseFrame } from "../core/sse.ts";
import { eventsUntilRest, messageOfEvent } from "../core/turn-events.ts";
import { answerOf, type ChatAnswer, type ChatUsage, troupeFields, storedText } from "./chat-answer.ts";
import { type Answering, answersWhole, type Asking } from "./chat-start.ts";
import { type ProtocolError, streamError } from "./protocol-errors.ts";
import { NO_CONVERSATION, refusalOf } from "./shown-history.ts";
import { TextShown } from "./text-shown.ts";

/** The common fields of all chunks of an answer. */
export interface CompletionHead {
  readonly id: string;
  /** Seconds since the epoch. */
  readonly created: number;
  readonly model: string;
}

export interface ChatStreamOptions {
  readonly signal: AbortSignal;
  readonly head: CompletionHead;
  readonly withUsage: boolean;
  /** Called before the last chunks. */
  readonly onRest: (rest: TurnRest) => Promise<void>;
  /** Called once. `isWhole`: the client received the whole stream. */
  readonly onEnd: (isWhole: boolean) => void;
}

/** The content of one chunk. */
type News = { readonly text: string } | { readonly reasoning: string } | { readonly progress: JsonObject };

/** The chunks of an answer, then `[DONE]`; or an error as the last chunk. */
export async function* chatFrames(
  asking: Asking,
  answering: Answering,
  { signal, head, withUsage, onRest, onEnd }: ChatStreamOptions,
): AsyncGenerator<SseFrame, void, undefined> {
  const frame = (choices: readonly object[], more: object = {}): SseFrame => {
    const usage = withUsage ? { usage: null } : {};
    return { data: JSON.stringify({ ...head, object: "chat.completion.chunk", choices, ...usage, ...more }) };
  };
  const chunk = (delta: object, finish: ChatAnswer["finishReason"] | null = null, more: object = {}): SseFrame =>
    frame([{ index: 0, delta, logprobs: null, finish_reason: finish }], more);
  let isWhole = false;
  try {
    yield chunk({ role: "assistant", content: "" }, null, { troupe: troupeFields(asking, answering) });
    const news = newsOf(asking, answering, { signal, onRest });
    let next = await news.next();
    for (; next.done !== true; next = await news.next()) yield chunkOf(next.value, chunk);
    const answer = next.value;
    if (answer === undefined) return;
    isWhole = true;
    if ("type" in answer) {
      yield { data: JSON.stringify({ error: answer }) };
      return;
    }
    for (const [index, call] of answer.toolCalls.entries()) yield chunk({ tool_calls: [{ index, ...call }] });
    yield chunk({}, answer.finishReason, { troupe: answer.more });
    if (withUsage) yield usageFrame(head, answer.usage);
    yield { data: "[DONE]" };
  } catch (error) {
    if (signal.aborted) return;
    isWhole = true;
    yield { data: JSON.stringify({ error: streamError(error) }) };
  } finally {
    onEnd(isWhole);
  }
}

function usageFrame(head: CompletionHead, usage: ChatUsage): SseFrame {
  return { data: JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [], usage }) };
}

function chunkOf(news: News, chunk: (delta: object, finish: null, more?: object) => SseFrame): SseFrame {
  if ("text" in news) return chunk({ content: news.text }, null);
  if ("reasoning" in news) return chunk({ reasoning_content: news.reasoning }, null);
  return chunk({}, null, { troupe: news.progress });
}

/**
 * Yields text and progress until the turn has ended or waits. Returns the answer, or `undefined` when the reader has
 * left.
 */
async function* newsOf(
  asking: Asking,
  answering: Answering,
  { signal, onRest }: Pick<ChatStreamOptions, "signal" | "onRest">,
): AsyncGenerator<News, ChatAnswer | ProtocolError | undefined, undefined> {
  const { caller, chat } = asking;
  const { agent, turnId, isStateless } = answering;
  // The cursor is read before the stored text; text that is in both is sent only once.
  let from = answering.from ?? (await caller.head(agent.rootAgentId)).cursor;
  const isWhole = answersWhole(chat);
  const hasBegun = answering.from === null && !isWhole;
  const stored = hasBegun ? await storedText(asking, answering) : { text: "", step: 0 };
  const shown = new TextShown(turnId, stored.step, stored.text);
  if (stored.text !== "") yield { text: stored.text };
  for (;;) {
    const events = eventsUntilRest(caller, answering, { from, signal });
    let next = await events.next();
    for (; next.done !== true; next = await events.next()) {
      from = next.value.cursor ?? from;
      yield* newsIn(next.value, isWhole ? "" : await textIn(caller, next.value, shown));
    }
    const rest = next.value;
    if (rest === undefined) return undefined;
    const refused = isStateless ? await refuseApprovals(caller, rest) : [];
    if (refused.length > 0) {
      if (!isWhole) yield { text: shown.note(refused.map(refusalOf).join("\n\n")) };
      continue;
    }
    const answer = await answerOf(asking, answering, rest);
    await onRest(rest);
    if ("type" in answer) return answer;
    const missing = shown.end(answer.text);
    if (missing !== "") yield { text: missing };
    return answer;
  }
}

/** The new text and reasoning of an event. */
async function textIn(
  caller: Caller,
  event: TroupeEvent,
  shown: TextShown,
): Promise<string | { readonly text: string; readonly reasoning: string }> {
  if (event.type !== "model.responded") return shown.take(event);
  const message = await messageOfEvent(caller, event);
  return shown.responded(event, message === undefined ? "" : textOf(message.content));
}

function* newsIn(event: TroupeEvent, said: Awaited<ReturnType<typeof textIn>>): Generator<News> {
  const { text, reasoning } = typeof said === "string" ? { text: said, reasoning: "" } : said;
  if (reasoning !== "") yield { reasoning };
  if (text !== "") yield { text };
  if (progressTypes.has(event.type)) yield { progress: progressOf(event) };
}

/** Events that are sent to clients as progress. */
const progressTypes: ReadonlySet<TroupeEvent["type"]> = new Set([
  "tool.started",
  "tool.progress",
  "tool.completed",
  "tool.failed",
  "subagent.spawned",
  "subagent.ended",
  "artifact.saved",
  "budget.changed",
  "budget.forecast",
  "budget.warning",
  "budget.exhausted",
  "context.compacted",
  "request.opened",
  "request.decided",
  "step.restarted",
  "warning",
]);

/** The event fields that are irrelevant to a client of one turn. */
const unshown: ReadonlySet<string> = new Set("parentAgentId rootAgentId sessionId turnId cursor after".split(" "));

function progressOf(event: TroupeEvent): JsonObject {
  const fields = Object.entries(event).filter((entry): entry is [string, Json] => !unshown.has(entry[0]));
  return Object.fromEntries(fields);
}

/**
 * Rejects requests that a client without a conversation cannot decide: approvals and credentials. Returns them,
 * including those that another client has decided meanwhile.
 */
export async function refuseApprovals(caller: Caller, rest: TurnRest): Promise<readonly AgentRequest[]> {
  if (rest.status !== "waiting" || rest.reason !== "request") return [];
  const refused = rest.requests.filter(({ kind }) => kind === "approval" || kind === "auth" || kind === "budget");
  for (const { requestId } of refused) {
    try {
      await caller.decide(requestId, { verdict: "rejected", reason: NO_CONVERSATION });
    } catch (error) {
      if (!(error instanceof RequestConflictError)) throw error;
    }
  }
  return refused;
}

/** Ends a turn that asks a question: the client gets the question as the answer, and cannot answer it in this turn. */
export async function endOfQuestion({ turn }: Answering): Promise<void> {
  await turn.abort("the agent asked a question, and this request has no conversation in which a person could answer");
}
