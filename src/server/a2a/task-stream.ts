import type { TurnRest } from "../../runtime/index.ts";
import type { TroupeEvent } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { AnswerPieces } from "./answer-pieces.ts";
import { recordOf, statusOf, type TaskParts, taskOf, type TaskTurn, wireArtifact } from "./task.ts";
import { endMetadata, statusFingerprint, stateOf, type TurnNow } from "./task-status.ts";
import { isEndState, type StreamItem } from "./wire.ts";

export interface StreamOptions extends Pick<TaskParts, "historyLength"> {
  /** When the stream ends. `rest`: once the task has ended or waits for a decision. `end`: only once it has ended. */
  readonly until: "rest" | "end";
  readonly signal: AbortSignal;
}

/**
 * Yields the current task, then its changes, until it rests or ends. The stream keeps no state: it reads the stored
 * tree and its journal, so any process can start it at any time, also after the process that started the task has died.
 */
export async function* taskStream(
  caller: Caller,
  task: TaskTurn,
  { until, signal, historyLength }: StreamOptions,
): AsyncGenerator<StreamItem, void, undefined> {
  const left = new AbortController();
  const leaving = AbortSignal.any([signal, left.signal]);
  try {
    // The cursor is read before the task, so that no change is missed.
    const { cursor } = await caller.head(task.agent.rootAgentId);
    const now = await task.turn.current();
    yield { task: await taskOf(caller, task, { now, historyLength }) };
    if (isOver(now, until)) return;
    const following = new TaskFollower(caller, task, now);
    for await (const news of newsOf(caller, task, { cursor, signal: leaving, isAtRest: () => following.isAtRest })) {
      for await (const item of following.take(news)) yield item;
      if (isOver(following.now, until)) return;
    }
  } finally {
    left.abort();
  }
}

function isOver(now: TurnNow, until: StreamOptions["until"]): boolean {
  if (isEndState(stateOf(now))) return true;
  return until === "rest" && now.status === "waiting" && now.reason === "request";
}

type News = { readonly event: TroupeEvent } | { readonly rest: TurnRest };

/** Events of the tree, and the turn each time that it comes to rest. Ends once the reader has left. */
async function* newsOf(
  caller: Caller,
  { agent, turn }: TaskTurn,
  {
    cursor,
    signal,
    isAtRest,
  }: { readonly cursor: string; readonly signal: AbortSignal; readonly isAtRest: () => boolean },
): AsyncGenerator<News, void, undefined> {
  const events = caller.events(agent.rootAgentId, { after: cursor, signal })[Symbol.asyncIterator]();
  const gone = new Promise<undefined>((resolve) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  const nextEvent = (): Promise<News | undefined> =>
    heard(events.next().then(({ done, value }) => (done === true ? undefined : { event: value })));
  const nextRest = (): Promise<News> => heard(turn.settled.then((rest) => ({ rest })));
  let event = nextEvent();
  let rest: Promise<News> | undefined;
  for (;;) {
    if (!isAtRest()) rest ??= nextRest();
    const news = await Promise.race(rest ? [event, rest, gone] : [event, gone]);
    if (news === undefined) return;
    if ("rest" in news) rest = undefined;
    else event = nextEvent();
    yield news;
  }
}

/** Returns the promise with its rejection marked as handled, because it may reject before the caller awaits it. */
function heard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** Events after which the turn's state may have changed. */
const moves: ReadonlySet<TroupeEvent["type"]> = new Set([
  "lifecycle.changed",
  "turn.started",
  "turn.waiting",
  "turn.completed",
  "turn.stopped",
  "turn.failed",
  "step.started",
  "request.opened",
  "request.decided",
]);

/** Tracks what was sent to a client and returns the items to send next. */
class TaskFollower {
  readonly #caller: Caller;
  readonly #task: TaskTurn;
  readonly #answer: AnswerPieces;
  #now: TurnNow;
  #shown: string;

  constructor(caller: Caller, task: TaskTurn, now: TurnNow) {
    this.#caller = caller;
    this.#task = task;
    this.#answer = new AnswerPieces(task);
    this.#now = now;
    this.#shown = statusFingerprint(now);
  }

  get now(): TurnNow {
    return this.#now;
  }

  /** Whether the turn waits for a decision or a resume, which an event will report. */
  get isAtRest(): boolean {
    return this.#now.status === "waiting";
  }

  async *take(news: News): AsyncGenerator<StreamItem, void, undefined> {
    if ("rest" in news) {
      // The turn may have continued since this news was queued.
      yield* this.#changes(news.rest.status === "waiting" ? await this.#task.turn.current() : news.rest);
      return;
    }
    const { event } = news;
    const piece = this.#answer.take(event);
    if (piece !== undefined) yield piece;
    if (event.type === "artifact.saved" && event.turnId === this.#task.turnId) yield* this.#saved(event.artifactId);
    if (moves.has(event.type)) yield* this.#changes(await this.#task.turn.current());
  }

  async *#changes(now: TurnNow): AsyncGenerator<StreamItem, void, undefined> {
    this.#now = now;
    const place = statusFingerprint(now);
    if (place === this.#shown) return;
    this.#shown = place;
    const last = this.#answer.end(now);
    if (last !== undefined) yield last;
    const record = await recordOf(this.#caller, this.#task);
    const metadata = endMetadata(now);
    const status = statusOf(now, this.#task, record);
    yield { statusUpdate: { ...this.#task.ids, status, ...(metadata === undefined ? {} : { metadata }) } };
  }

  async *#saved(artifactId: string): AsyncGenerator<StreamItem, void, undefined> {
    const artifact = await this.#task.agent.getArtifact(artifactId);
    if (!artifact) return;
    const update = { ...this.#task.ids, artifact: wireArtifact(artifact), append: false, lastChunk: true };
    yield { artifactUpdate: update };
  }
}
