import type { Agent, TurnRest } from "../../runtime/index.ts";
import type { Content, TroupeEvent } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import type { StartedTurn } from "../core/plain-message.ts";
import type { SseFrame } from "../core/sse.ts";
import { eventsUntilRest, messageOfEvent } from "../core/turn-events.ts";
import { ClientMessages } from "./client-messages.ts";
import type { AgUiEvent, AgUiMessage } from "./events.ts";
import type { RunInput, Told } from "./run-input.ts";
import { RunTranslation, type SteeredMessage } from "./run-translation.ts";
import { storedMessages } from "./stored-messages.ts";

type FollowedTurn = Pick<StartedTurn, "agent" | "turn" | "turnId">;

/** An accepted run. */
export interface Run {
  readonly input: RunInput;
  readonly agent: Agent;
  /** `null` if there is no turn to follow; the client then gets only a snapshot. */
  readonly followed: FollowedTurn | null;
  /**
   * The cursor in the tree after which the run's events are sent. `null` if the client may already have some of them;
   * the run then starts with a snapshot and continues after it.
   */
  readonly from: string | null;
  readonly answered: ReadonlySet<string>;
  readonly told: Told;
  /** The new input. */
  readonly said: Content | null;
  /** What became of messages that were given to the running turn, by the client's ids. Default: none. */
  readonly steers?: readonly SteeredMessage[] | undefined;
  /** The client lacks messages from before the run: they came over another surface, or while it did not read. */
  readonly isBehind: boolean;
  /**
   * The client has results of its own for approved calls, as CopilotKit adds the decision as one; a snapshot at the end of the run
   * replaces them. Default: false.
   */
  readonly hasOwnResults?: boolean | undefined;
  /** Why the run was refused. */
  readonly refusal?: { readonly message: string; readonly code: string } | undefined;
}

/**
 * The events of a run until its turn ends, or waits for a decision or a resume. If the reader leaves, the stream ends
 * without a last event.
 */
export async function* runFrames(caller: Caller, run: Run, signal: AbortSignal): AsyncGenerator<SseFrame> {
  const client = new ClientMessages(run.input.messages);
  for await (const event of runEvents(caller, run, { client, signal })) {
    client.take(event);
    yield { data: JSON.stringify(event) };
  }
}

interface Client {
  /** The client's messages after the events so far. */
  readonly client: ClientMessages;
  readonly signal: AbortSignal;
}

async function* runEvents(caller: Caller, run: Run, { client, signal }: Client): AsyncGenerator<AgUiEvent> {
  const { agent, followed, input, answered, refusal, from, isBehind } = run;
  const { threadId, runId } = input;
  const { rootAgentId } = agent;
  const head = await caller.head(rootAgentId);
  const agents = head.agents.map(({ definition, ...record }) => ({ ...record, name: definition.name }));
  const translation = new RunTranslation({ threadId, runId, rootAgentId, agents, answered });
  yield* translation.begin();
  // The snapshot is read after the cursor, so it already contains messages whose events follow; those events send
  // nothing.
  if (from === null || isBehind) yield* translation.snapshot(await messagesFor(caller, run));
  yield* translation.steered(run.steers ?? []);
  if (refusal !== undefined) {
    yield* translation.finishAtOnce(refusal);
    return;
  }
  if (followed === null) {
    yield* translation.finishAtOnce("success");
    return;
  }
  const rest = yield* meaningUntilRest(caller, run, { followed, translation, from: from ?? head.cursor, signal });
  if (rest === undefined) return;
  yield* translation.close(rest);
  const isOver = rest.status !== "waiting";
  const speakers = translation.speakers;
  const isShown =
    rest.status === "completed" &&
    run.hasOwnResults !== true &&
    client.hasJust(await messagesFor(caller, run, { isOver, of: speakers }), new Set([undefined, ...speakers]));
  if (!isShown) yield* translation.snapshot(await messagesFor(caller, run, { isOver }));
  yield* translation.finish(rest);
}

function messagesFor(
  caller: Caller,
  { agent, followed, isBehind, said, told }: Run,
  { isOver = false, of }: { readonly isOver?: boolean; readonly of?: ReadonlySet<string> } = {},
): Promise<readonly AgUiMessage[]> {
  const names = { told, turnId: followed?.turnId ?? null, said, keepsSaid: !isBehind, isOver };
  return storedMessages(caller, agent, names, of);
}

interface Reading {
  readonly followed: FollowedTurn;
  readonly translation: RunTranslation;
  readonly from: string;
  readonly signal: AbortSignal;
}

/** Yields the AG-UI events of a turn and returns the turn at rest, or `undefined` when the reader has left. */
async function* meaningUntilRest(
  caller: Caller,
  run: Run,
  { followed, translation, ...reading }: Reading,
): AsyncGenerator<AgUiEvent, TurnRest | undefined> {
  const events = eventsUntilRest(caller, followed, reading);
  try {
    for (;;) {
      const { done, value } = await events.next();
      if (done === true) return value;
      yield* meaningOf(caller, run, { event: value, translation });
    }
  } finally {
    await events.return(undefined);
  }
}

async function* meaningOf(
  caller: Caller,
  run: Run,
  { event, translation }: { readonly event: TroupeEvent; readonly translation: RunTranslation },
): AsyncGenerator<AgUiEvent> {
  const { agent, said, told } = run;
  const isBeginning = event.type === "turn.started" && event.agentId === agent.rootAgentId;
  // Another client's message started the turn and was not stored when the snapshot was read.
  const isUntold = said === null && !told.before.has(event.turnId ?? "") && !translation.hasShown(`${event.turnId}:in`);
  // The same for another client's input, which is stored with the model call that sees it.
  if (isBeginning ? isUntold : translation.isStepAfterForeignInput(event, told.steered)) {
    yield* translation.snapshot(await messagesFor(caller, run));
  }
  yield* translation.take(event, await messageOfEvent(caller, event));
}
