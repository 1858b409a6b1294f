import { faultPoint } from "../base/index.ts";
import { AgentStopError, TurnInterruptedError } from "../errors/index.ts";
import { createDraft } from "../hooks/index.ts";
import type { TurnEffectInput } from "../machines/index.ts";
import { callModel, type ModelDelta } from "../model/index.ts";
import { type EntryOf, type ModelRequest, type OpenRequest, takeText, type TurnState } from "../state/index.ts";
import { compactIfDue } from "./compact.ts";
import { effectActor, until } from "./effect.ts";
import { releaseHeld, runHooks } from "./hook-run.ts";
import type { Host } from "./host.ts";
import { boundedRequest, reservationAskOf } from "./model-cost.ts";
import { abandonRequest, dropAttempt, failAttempt, requestKeyOf, respond } from "./model-outcome.ts";
import { asLastCall, assembleRequest, finalAnswerOf, lent, promptHashOf, withNote } from "./prompt.ts";
import { stopSignalOf } from "./stored-error.ts";

/**
 * One model call of a step, from its prompt to its committed answer: instructions, `beforeLlm` hooks and compactions that are not
 * journalled yet, the intent, the call, its retries. After a restart it goes on from the fold; a call that was in flight is then
 * settled in full, since its outcome is unknown, and made again.
 */
export const think = effectActor<TurnEffectInput>("think", async (host, { turnId }, signal) => {
  const started = turnOf(host, turnId);
  if (started.openRequest && (await resume(host, started, started.openRequest, signal))) return;
  releaseHeld(host, turnId);
  await resolveInstructions(host, turnId, signal);
  if (signal.aborted || !(await applyBeforeHooks(host, turnId, signal))) return;
  for (;;) {
    await host.delivered();
    if (signal.aborted) return;
    const turn = turnOf(host, turnId);
    if (turn.retryAt !== null) await until(host, turn.retryAt, signal);
    if (!(await compacts(host, turnId, signal))) return;
    // Messages that have come meanwhile are part of this call.
    releaseHeld(host, turnId);
    const request = assembleRequest(host, turnOf(host, turnId));
    const granted = await requestCall(host, turnOf(host, turnId), request, signal);
    if (!granted || signal.aborted) return;
    if (await attempt(host, granted, request, signal)) return;
  }
});

function turnOf(host: Host, turnId: string): TurnState {
  const turn = host.turn(turnId);
  if (!turn) throw new TurnInterruptedError(`turn ${turnId} is not open any more`);
  return turn;
}

/**
 * A call that was in flight when this activation began: if this process made it, it is joined, otherwise it is settled as lost.
 * True when the call has its outcome.
 */
async function resume(host: Host, turn: TurnState, open: OpenRequest, signal: AbortSignal): Promise<boolean> {
  const granted = host.memory(turn.turnId).entries.findLast((entry) => entry.type === "model.requested");
  if (granted?.type === "model.requested" && host.inFlight.has(requestKeyOf(open))) {
    return await attempt(host, granted, assembleRequest(host, turn), signal);
  }
  abandonRequest(host, turn, open);
  return false;
}

async function resolveInstructions(host: Host, turnId: string, signal: AbortSignal): Promise<void> {
  const { instructions } = host.definition;
  const turn = turnOf(host, turnId);
  if (typeof instructions === "string" || turn.hasInstructions) return;
  await host.committed();
  if (signal.aborted) return;
  const { agentId, metadata } = host.identity;
  const context = { agentId, turnId, actorId: turn.actorId, metadata };
  const what = `what instructions() of agent "${host.definition.name}" gave`;
  const text = await host.inFlight.run(`${turnId}:instructions`, signal, async () =>
    takeText(await instructions(context), what),
  );
  if (!signal.aborted) host.append({ type: "instructions.resolved", turnId, text });
}

/** The `beforeLlm` hooks that are not committed yet; false when the turn is stopped. */
async function applyBeforeHooks(host: Host, turnId: string, signal: AbortSignal): Promise<boolean> {
  const place = { turnId, step: nextStep(turnOf(host, turnId)), hook: "beforeLlm" } as const;
  const registered = host.definition.hooks.beforeLlm;
  const draft = () => createDraft("beforeLlm", { messages: host.history() });
  return await runHooks(host, place, { registered, draft }, signal);
}

/** Compacts the conversation where that is due; false when the turn is stopped, by the compaction or meanwhile. */
async function compacts(host: Host, turnId: string, signal: AbortSignal): Promise<boolean> {
  try {
    await compactIfDue(host, turnId, signal);
    return !signal.aborted;
  } catch (error) {
    if (signal.aborted || !(error instanceof AgentStopError)) throw error;
    host.append({ type: "stop.signalled", turnId, signal: stopSignalOf(error, "compaction") });
    return false;
  }
}

/** The step of the coming call: a retry stays in its step. */
function nextStep(turn: TurnState): number {
  return turn.attempt > 0 ? turn.step : turn.step + 1;
}

async function requestCall(
  host: Host,
  turn: TurnState,
  request: ModelRequest,
  signal: AbortSignal,
): Promise<EntryOf<"model.requested"> | undefined> {
  const { definition } = host;
  const retries = turn.attempt > 0;
  const step = nextStep(turn);
  const messageId = `${turn.turnId}:${step}`;
  const asking = { turn, key: messageId, opensStep: !retries, signal };
  const ask = await reservationAskOf(host, request, { ...asking, ...finalAnswerOf(turn) });
  // The turn ended while tokens were counted: nothing would settle a reservation that is granted now.
  if (signal.aborted) return undefined;
  const outcome = await host.propose({
    type: "model.requested",
    turnId: turn.turnId,
    step,
    attempt: turn.attempt + 1,
    model: definition.model.name,
    promptHash: promptHashOf(request.messages),
    messageId,
    ask: withNote(ask),
    price: ask.price,
    reservation: null,
  });
  return outcome.granted ? outcome.entry : undefined;
}

/** True when the call has its outcome; false when another attempt follows. */
async function attempt(
  host: Host,
  granted: EntryOf<"model.requested">,
  request: ModelRequest,
  signal: AbortSignal,
): Promise<boolean> {
  const { reservation } = granted;
  if (!reservation) return true;
  const { definition } = host;
  faultPoint("model.intent");
  const startedAt = host.clock.now();
  const key = requestKeyOf(granted);
  const listening = host.viewers.isAny();
  let received = 0;
  const noteCut = (): void => (listening ? host.notes.noteCut(key, received) : undefined);
  signal.addEventListener("abort", noteCut, { once: true });
  try {
    const sent = granted.last ? asLastCall(request) : request;
    const bounded = boundedRequest(sent, definition.maxOutputTokens, reservation);
    const answer = await host.inFlight.run(key, signal, async (callSignal) => {
      const shown = listening ? host.viewers.showAnswer(granted) : undefined;
      const onDelta = (delta: ModelDelta): void => {
        received += Buffer.byteLength(delta.text);
        if (!callSignal.aborted) shown?.add(delta);
      };
      try {
        return await callModel(definition.model, lent(bounded), { signal: callSignal, onDelta: shown && onDelta });
      } finally {
        shown?.end();
      }
    });
    if (signal.aborted) return true;
    faultPoint("model.effect");
    respond(host, granted, answer, host.clock.now() - startedAt);
    faultPoint("model.result");
    return true;
  } catch (error) {
    if (signal.aborted) return true;
    if (!host.notes.takeDropped(key)) return !failAttempt(host, granted, error);
    dropAttempt(host, granted, listening ? received : undefined);
    return false;
  } finally {
    signal.removeEventListener("abort", noteCut);
  }
}
