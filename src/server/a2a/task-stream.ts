import type { TurnRest } from "../../runtime/index.ts";
import type { TroupeEvent } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { AnswerPieces } from "./answer-pieces.ts";
import { recordOf, statusOf, type TaskParts, taskOf, type TaskTurn, wireArtifact } from "./task.ts";
import { endMetadata, statusFingerprint, stateOf, type TurnNow } from "./task-status.ts";
import { isEndState, type StreamItem } from "./wire.ts";

export interface StreamOptions extends Pick<TaskParts, "historyLength"> {
  /** When the stream ends. `rest`: when the task has ended or waits for a decision. `end`: only when it has ended. */
  readonly until: "rest" | "end";
  readonly signal: AbortSignal;
}

/**
 * The task as it is now, then its changes, up to its rest or its end. Nothing is kept for it anywhere: it is read from the
 * stored tree and its journal, so any process can begin it at any time, also after the one that began the task has died.
 */
export async function* taskStream(
  caller: Caller,
  task: TaskTurn,
  { until, signal, historyLength }: StreamOptions,
): AsyncGenerator<StreamItem, void, undefined> {
  const left = new AbortController();
  const leaving = AbortSignal.any([signal, left.signal]);
  try {
    // Before the task is read, so that no change falls between.
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

/** Events of the tree, and the turn each time that it comes to rest. Ends when the reader has left. */
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

/** The same promise, which may then reject before a caller awaits it. */
function heard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** Events after which the turn may stand elsewhere than before. */
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

/** What a client has of a task, and what it has to be told next. */
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

  /** Whether the turn does nothing until a decision or a resume, of which an event tells. */
  get isAtRest(): boolean {
    return this.#now.status === "waiting";
  }

  async *take(news: News): AsyncGenerator<StreamItem, void, undefined> {
    if ("rest" in news) {
      // A rest that was noted before the last event may be over.
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
