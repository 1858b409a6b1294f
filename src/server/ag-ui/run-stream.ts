import type { Agent, TurnRest } from "../../runtime/index.ts";
import type { Caller } from "../core/caller.ts";
import type { StartedTurn } from "../core/plain-message.ts";
import type { SseFrame } from "../core/sse.ts";
import { eventsUntilRest, messageOfEvent } from "../core/turn-events.ts";
import type { AgUiEvent } from "./events.ts";
import type { Told } from "./run-input.ts";
import { RunTranslation } from "./run-translation.ts";
import { storedMessages } from "./stored-messages.ts";

type FollowedTurn = Pick<StartedTurn, "agent" | "turn" | "turnId">;

/** A run that was accepted. */
export interface Run {
  readonly threadId: string;
  readonly runId: string;
  readonly agent: Agent;
  /** Null: nothing is to be done; the client is shown what is stored. */
  readonly followed: FollowedTurn | null;
  /**
   * The place in the tree from which the run's events are shown. Null: the client may have had some of them, so it is
   * shown what is stored, and what comes after that.
   */
  readonly from: string | null;
  readonly answered: ReadonlySet<string>;
  readonly told: Told;
  /** Why nothing was done. */
  readonly refusal?: { readonly message: string; readonly code: string } | undefined;
}

/** The events of a run, up to where its turn ends or waits for somebody. Ends without a last event when nobody reads. */
export async function* runFrames(caller: Caller, run: Run, signal: AbortSignal): AsyncGenerator<SseFrame> {
  for await (const event of runEvents(caller, run, signal)) yield { data: JSON.stringify(event) };
}

async function* runEvents(caller: Caller, run: Run, signal: AbortSignal): AsyncGenerator<AgUiEvent> {
  const { agent, followed, threadId, runId, answered, told, refusal } = run;
  const { rootAgentId } = agent;
  const head = await caller.head(rootAgentId);
  const agents = head.agents.map(({ definition, ...record }) => ({ ...record, name: definition.name }));
  const translation = new RunTranslation({ threadId, runId, rootAgentId, agents, answered });
  yield* translation.begin();
  if (refusal !== undefined) {
    yield* translation.close(refusal);
    return;
  }
  // Read after the head: what was stored in between is in the snapshot, and comes again as events that show nothing.
  if (run.from === null) yield* translation.snapshot(await storedMessages(caller, agent, { told, isOver: false }));
  if (followed === null) {
    yield* translation.close("success");
    return;
  }
  const rest = yield* translatedUntilRest(caller, followed, { translation, from: run.from ?? head.cursor, signal });
  if (rest === undefined) return;
  const isOver = rest.status !== "waiting";
  yield* translation.end(
    rest,
    rest.status === "completed" ? null : await storedMessages(caller, agent, { told, isOver }),
  );
}

interface Reading {
  readonly translation: RunTranslation;
  readonly from: string;
  readonly signal: AbortSignal;
}

/** Gives what the events of a turn mean, and returns the turn at rest; undefined: nobody reads any more. */
async function* translatedUntilRest(
  caller: Caller,
  followed: FollowedTurn,
  { translation, ...reading }: Reading,
): AsyncGenerator<AgUiEvent, TurnRest | undefined> {
  const events = eventsUntilRest(caller, followed, reading);
  try {
    for (;;) {
      const { done, value } = await events.next();
      if (done === true) return value;
      yield* translation.take(value, await messageOfEvent(caller, value));
    }
  } finally {
    await events.return(undefined);
  }
}
