import type { AgentTool } from "../agents/index.ts";
import { faultPoint } from "../base/index.ts";
import { asLastCall, promptHashOf } from "../context/index.ts";
import type { Reservation } from "../budget/index.ts";
import { AgentStopError, ModelError, TurnInterruptedError } from "../errors/index.ts";
import { createDraft, type HookDrafts } from "../hooks/index.ts";
import { callModel, compositionOf, type LanguageModel, type ModelAnswer, type ModelDelta } from "../model/index.ts";
import {
  type AssistantMessage,
  callIdOf,
  type EntryOf,
  innerName,
  type Message,
  type ModelRequest,
  type OpenRequest,
  settingsIn,
  stepMetadata,
  takeText,
  type TurnState,
  type Usage,
} from "../state/index.ts";
import { callIdentity } from "./call-identity.ts";
import type { WatchedCall } from "./cache-watch.ts";
import {
  type AfterFailure,
  type CalledModel,
  chooseModel,
  chosenFields,
  continuationOf,
  modelOfRequest,
  stepSoFar,
  throughBreaker,
} from "./choose-model.ts";
import { compactIfDue, COMPACTIONS_WITHOUT_PROGRESS, tooLong } from "./compact.ts";
import { turnEffect, until } from "./effect.ts";
import { type HookSet, runHooks } from "./hook-run.ts";
import { settleAbandonedRun } from "./generate.ts";
import { guardedAnswer, guardWarnings, holdsAnswers } from "./guards.ts";
import { appendModelWarnings, appendWarnings, type Host } from "./host.ts";
import {
  billOf,
  boundedRequest,
  costIfKnown,
  emptySettlement,
  lent,
  type Billing,
  billingOfAnswer,
  reservationAskOf,
  settlementOf,
  unconfirmedSettlement,
} from "./model-cost.ts";
import {
  assembleRequest,
  editsOf,
  finalAnswerOf,
  lastCallSignal,
  nextStep,
  settingsOfNext,
  toolsOfNext,
  withNote,
  writerOf,
} from "./prompt.ts";
import { withArtifacts } from "./prompt-files.ts";
import { isInputDue, takeInInputs } from "./take-inputs.ts";
import { stopSignalOf, storedErrorOf } from "./stored-error.ts";
import { debugError, userCode } from "./user-errors.ts";

/**
 * One model call of a step, from its prompt to its committed answer: instructions, `beforeLlm` hooks and compactions that are not
 * journalled yet, the intent, the call, its retries. After a restart it continues from the fold; a call that was in flight is
 * settled in full, because its outcome is unknown, and made again.
 */
export const think = turnEffect("think", async (host, { turnId }, signal) => {
  const started = turnOf(host, turnId);
  if (started.openRequest && (await resume(host, started, started.openRequest, signal))) return;
  if (!(await takeInInputs(host, turnId, signal))) return;
  await resolveInstructions(host, turnId, signal);
  if (signal.aborted || !(await applyBeforeHooks(host, turnId, signal))) return;
  for (;;) {
    await host.delivered();
    if (signal.aborted) return;
    const turn = turnOf(host, turnId);
    if (turn.retryAt !== null) await until(host, turn.retryAt, signal);
    if (limitsLength(host.definition) && !(await compacts(host, turnId, signal))) return;
    // Messages that have arrived meanwhile are part of this call.
    if (!(await takeInInputs(host, turnId, signal))) return;
    const called = await chooseForStep(host, turnId, signal);
    if (signal.aborted) return;
    const call = { called, request: await requestFor(host, turnOf(host, turnId), called.model) };
    if (signal.aborted) return;
    const granted = await requestCall(host, turnOf(host, turnId), call, signal);
    if (granted === "outdated") continue;
    if (!granted || signal.aborted) return;
    if (await attempt(host, granted, call, signal)) return;
  }
});

/** A model, and the request that it gets. */
interface Call {
  readonly called: CalledModel;
  readonly request: ModelRequest;
}

async function requestFor(host: Host, turn: TurnState, model: LanguageModel): Promise<ModelRequest> {
  return await withArtifacts(host, assembleRequest(host, turn, model));
}

async function chooseForStep(host: Host, turnId: string, signal: AbortSignal): Promise<CalledModel> {
  const { model } = host.definition;
  if (!compositionOf(model)) return { model, route: [] };
  const turn = turnOf(host, turnId);
  const step = nextStep(turn);
  return await chooseModel(host, {
    turn,
    step,
    key: `${turnId}:${step}`,
    purpose: "step",
    soFar: stepSoFar(host, turn),
    request: () => assembleRequest(host, turn, model),
    signal,
  });
}

function turnOf(host: Host, turnId: string): TurnState {
  const turn = host.turn(turnId);
  if (!turn) throw new TurnInterruptedError(`turn ${turnId} is not open any more`);
  return turn;
}

function limitsLength({ maxMessages, autoCompact }: Host["definition"]): boolean {
  return maxMessages !== undefined || autoCompact !== null;
}

/**
 * Handles a call that was in flight when this activation started: joins it if this process made it, otherwise settles it as lost.
 * Returns true if the call has its outcome.
 */
async function resume(host: Host, turn: TurnState, open: OpenRequest, signal: AbortSignal): Promise<boolean> {
  const granted = host.memory(turn.turnId).entries.findLast((entry) => entry.type === "model.requested");
  if (granted?.type === "model.requested" && host.inFlight.has(requestKeyOf(open))) {
    const called = modelOfRequest(host, granted);
    const call = { called, request: await requestFor(host, turn, called.model) };
    return signal.aborted || (await attempt(host, granted, call, signal));
  }
  abandonRequest(host, turn, open);
  return false;
}

/** Journals the text of an instructions function, once per turn. */
export async function resolveInstructions(host: Host, turnId: string, signal: AbortSignal): Promise<void> {
  const { instructions } = host.definition;
  const turn = turnOf(host, turnId);
  if (typeof instructions === "string" || turn.hasInstructions) return;
  await host.committed();
  if (signal.aborted) return;
  const { agentId, metadata } = host.identity;
  const context = { agentId, turnId, actorId: turn.actorId, metadata };
  const what = `the result of instructions() of agent "${host.definition.name}"`;
  const text = await host.inFlight.run(`${turnId}:instructions`, signal, async () =>
    takeText(await userCode(`instructions() of agent "${host.definition.name}"`, () => instructions(context)), what),
  );
  if (!signal.aborted) host.append({ type: "instructions.resolved", turnId, text });
}

/** Runs the `beforeLlm` hooks that are not committed yet; returns false if the turn was stopped. */
async function applyBeforeHooks(host: Host, turnId: string, signal: AbortSignal): Promise<boolean> {
  const turn = turnOf(host, turnId);
  if (turn.hooks.beforeLlm === 0) return !signal.aborted;
  // Inputs that have arrived while the instructions were resolved.
  while (isInputDue(host, turnId)) {
    await host.delivered();
    if (!(await takeInInputs(host, turnId, signal))) return false;
  }
  const step = nextStep(turn);
  host.notes.noteHooksBegun(`${turnId}:${step}`);
  const place = { turnId, step, hook: "beforeLlm" } as const;
  return await runHooks(host, place, beforeLlmHooks(host, turnId), signal);
}

export function beforeLlmHooks(host: Host, turnId: string): HookSet<HookDrafts["beforeLlm"]> {
  const draft = () => {
    const now = turnOf(host, turnId);
    const tools = toolsOfNext(host, now);
    const settings = settingsOfNext(host, now, tools);
    return createDraft("beforeLlm", { messages: host.history(), settings, tools: tools.map(({ name }) => name) });
  };
  return { registered: host.definition.hooks.beforeLlm, draft };
}

/** Compacts the conversation if that is due; returns false if the turn was stopped, by the compaction or meanwhile. */
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

/** Asks for the call. Returns `outdated` if an input has arrived that the prompt lacks, and `undefined` if the call is refused. */
async function requestCall(
  host: Host,
  turn: TurnState,
  { called: { model, route }, request }: Call,
  signal: AbortSignal,
): Promise<EntryOf<"model.requested"> | "outdated" | undefined> {
  const retries = turn.attempt > 0;
  const step = nextStep(turn);
  const messageId = `${turn.turnId}:${step}`;
  const asking = { turn, model, key: messageId, opensStep: !retries, signal };
  const ask = await reservationAskOf(host, request, { ...asking, ...finalAnswerOf(turn) });
  // The turn ended while tokens were counted, so that a reservation granted now would never be settled.
  if (signal.aborted) return undefined;
  // From here on to the intent nothing is awaited.
  if (isInputDue(host, turn.turnId)) return "outdated";
  const { providerOptions: _ofProvider, ...settings } = settingsIn(request);
  const outcome = await host.propose({
    type: "model.requested",
    turnId: turn.turnId,
    step,
    attempt: turn.attempt + 1,
    model: model.name,
    ...chosenFields(model, route),
    promptHash: promptHashOf(request.messages),
    messageId,
    ask: withNote(ask),
    price: ask.price,
    reservation: null,
    ...(Object.keys(settings).length > 0 ? { settings } : {}),
  });
  return outcome.granted ? outcome.entry : undefined;
}

/** Returns true if the call has its outcome; false if another attempt follows. */
async function attempt(
  host: Host,
  granted: EntryOf<"model.requested">,
  { called, request }: Call,
  signal: AbortSignal,
): Promise<boolean> {
  const { reservation } = granted;
  if (!reservation) return true;
  const { definition } = host;
  if (host.isShuttingDown) {
    dropUnsent(host, granted, reservation);
    return false;
  }
  faultPoint("model.intent");
  const startedAt = host.clock.now();
  const key = requestKeyOf(granted);
  const listening = host.viewers.isStreaming();
  let received = 0;
  const noteCut = (): void => (listening ? host.notes.noteCut(key, received) : undefined);
  signal.addEventListener("abort", noteCut, { once: true });
  try {
    const sent = granted.last ? asLastCall(request) : request;
    const bounded = boundedRequest(called.model, sent, {
      asked: sent.maxOutputTokens,
      ask: granted.ask,
      granted: reservation,
    });
    const { answer, blocked, noted } = await host.inFlight.run(key, signal, async (callSignal) => {
      host.notes.noteAsked(key);
      const { output } = definition;
      const partial = host.turn(granted.turnId)?.checksOutput === true && output ? output.partial : undefined;
      const shown = listening ? host.viewers.showAnswer(granted, partial) : undefined;
      const isHeld = holdsAnswers(host);
      const isUnnamed = unnamedCalls(host);
      const onDelta = (delta: ModelDelta): void => {
        received += Buffer.byteLength(delta.type === "tool-call" ? delta.name : delta.text);
        if (!callSignal.aborted && !isHeld && !isUnnamed(delta)) shown?.add(delta);
      };
      try {
        const identity = callIdentity(host, granted);
        const answer = await throughBreaker(host, called, {
          signal: callSignal,
          call: () =>
            callModel(called.model, lent(bounded), { signal: callSignal, onDelta: shown && onDelta, call: identity }),
        });
        const guarded = await guardedAnswer(host, granted, answer, callSignal);
        const { response } = guarded.answer;
        if (isHeld && !callSignal.aborted && response.content !== "")
          shown?.add({ type: "text", text: response.content });
        if (!callSignal.aborted && response.toolCalls.length === 0) shown?.complete();
        return guarded;
      } finally {
        shown?.end();
      }
    });
    const durationMs = host.clock.now() - startedAt;
    const paying = { asked: granted.price, turn: host.turn(granted.turnId), called: called.model };
    const billing = await billingOfAnswer(host, answer.response, paying);
    if (signal.aborted) return true;
    faultPoint("model.effect");
    // The answer ends the edits.
    const answered = host.turn(granted.turnId);
    const edits = answered === undefined ? [] : editsOf(host, answered);
    settleAbandonedRun(host, granted, (run) => run.startsWith("guardOutput:"));
    // Appended before the answer, so that nothing follows from it.
    if (noted) appendWarnings(host, granted.turnId, guardWarnings(noted));
    if (blocked) host.append({ type: "stop.signalled", turnId: granted.turnId, signal: blocked });
    respond(host, granted, answer, { called, billing, durationMs });
    const watched = { request: sent, response: answer.response, edits };
    warnOfLostCache(host, granted.turnId, { model: called.model, watched });
    faultPoint("model.result");
    return true;
  } catch (error) {
    if (signal.aborted) return true;
    // A guard that would call a model while the agent is being paused: the pause waits for this call, and the guard for its end.
    const isCut = host.notes.takeDropped(key) || (holdsAnswers(host) && error instanceof TurnInterruptedError);
    if (!isCut) return !failAttempt(host, granted, { called, error });
    dropAttempt(host, granted, listening ? received : undefined);
    return false;
  } finally {
    signal.removeEventListener("abort", noteCut);
  }
}

/** Settles a call of a previous owner: this process cannot know whether it was answered (docs/budgets.md). */
function abandonRequest(host: Host, turn: TurnState, open: OpenRequest): void {
  const settlement = unconfirmedSettlement(open.reservation);
  host.append(
    {
      type: "model.failed",
      turnId: turn.turnId,
      step: open.step,
      attempt: open.attempt,
      model: open.model,
      error: { code: "interrupted", message: "the process ended while the call was in flight", retryable: true },
      retryAt: host.clock.now(),
      usage: null,
      settlement,
    },
    { moves: [{ type: "settle", settlement }] },
  );
}

interface Answered {
  readonly called: CalledModel;
  readonly billing: Billing;
  readonly durationMs: number;
}

/** Appends the answer, its message and its settlement. */
function respond(
  host: Host,
  granted: EntryOf<"model.requested">,
  { response, warnings }: ModelAnswer,
  { called, billing, durationMs }: Answered,
): void {
  const { turnId, step, attempt, messageId, reservation } = granted;
  if (!reservation) return;
  const toolCalls: NonNullable<AssistantMessage["toolCalls"]>[number][] = [];
  const calls: EntryOf<"model.responded">["calls"][number][] = [];
  for (const [index, { id, name, arguments: text }] of response.toolCalls.entries()) {
    const callId = callIdOf(turnId, step, index);
    const called = host.definition.tools.get(name);
    const tool = forwardedTool(called, text);
    toolCalls.push({ callId, providerId: id, name, arguments: text, ...(tool === undefined ? {} : { tool }) });
    calls.push(called?.kind === "internal" ? { callId, name, internal: true } : { callId, name: tool ?? name });
  }
  const settlement = settlementOf(reservation, response.usage, billing);
  const isFinal = calls.length === 0;
  const costMicros = costIfKnown(response.usage, billing.price);
  // Appended before the answer, so that the answer's calls never start.
  if (granted.last && !isFinal) {
    const signal = lastCallSignal(granted.last, response.usage, costMicros);
    host.append({ type: "stop.signalled", turnId, signal });
  }
  host.append(
    {
      type: "model.responded",
      turnId,
      step,
      attempt,
      model: response.model,
      messageId,
      hasText: response.content !== "",
      calls,
      usage: response.usage,
      costMicros,
      finishReason: response.finishReason,
      durationMs: Math.max(0, Math.round(durationMs)),
      settlement,
    },
    {
      messages: [
        {
          id: messageId,
          role: "assistant",
          createdAt: granted.at,
          content: response.content,
          origin: "model",
          metadata: stepMetadata(host.identity.agentId, { turnId, step, isTrace: !isFinal }),
          ...(isFinal ? {} : { toolCalls }),
          ...(response.reasoning ? { reasoning: response.reasoning } : {}),
          ...(response.sources ? { sources: response.sources } : {}),
          ...(response.reasoning || !isFinal ? { reasoningBy: writerOf(called.model, response) } : {}),
        },
      ],
      moves: [{ type: "settle", settlement }],
    },
  );
  noteUsage(host, granted, { model: called.model, usage: response.usage });
  if (warnings.length > 0) appendWarnings(host, turnId, warnings);
  appendModelWarnings(host, turnId, response);
}

/** Whether a piece belongs to a call through `call_tool`, whose tool is known only with the whole answer: followers see its real name. */
function unnamedCalls({ definition: { tools } }: Host): (delta: ModelDelta) => boolean {
  const unnamed = new Set<number>();
  return (delta) => {
    if (delta.type === "tool-call") {
      const tool = tools.get(delta.name);
      if (tool?.kind === "function" && tool.forwards !== undefined) unnamed.add(delta.index);
    }
    return (delta.type === "tool-call" || delta.type === "tool-arguments") && unnamed.has(delta.index);
  };
}

/** The deferred tool that a call through `call_tool` means: from here on it is a call of that tool. */
function forwardedTool(called: AgentTool | undefined, argumentsText: string): string | undefined {
  if (called?.kind !== "function" || called.forwards === undefined) return undefined;
  const name = innerName(argumentsText);
  return name !== undefined && called.forwards(name) ? name : undefined;
}

function warnOfLostCache(
  host: Host,
  turnId: string,
  { model, watched }: { readonly model: LanguageModel; readonly watched: WatchedCall },
): void {
  const { instructions, history } = host.definition;
  const warning = host.notes.cacheOf(model).noteAnswered(watched, {
    hasInstructionsFunction: typeof instructions !== "string",
    history: history.name,
    isInHistory: (messageId) => host.history().some(({ id }) => id === messageId),
  });
  if (warning) appendWarnings(host, turnId, [warning]);
}

/** The tokens of the next prompt are counted from the provider's count of this one. */
function noteUsage(
  host: Host,
  { messageId, last }: EntryOf<"model.requested">,
  { model, usage }: { readonly model: LanguageModel; readonly usage: Usage },
): void {
  // The last call of a budget carries a note, so its prompt is not the one that was counted.
  const isMeasured = usage.estimated !== true && last === undefined;
  if (isMeasured) host.notes.promptsOf(model).noteAnswered(messageId, usage.inputTokens);
}

interface Failed {
  readonly called: CalledModel;
  readonly error: unknown;
}

/** Appends the failed attempt, settled by its possible cost; returns true if another attempt follows. */
function failAttempt(host: Host, granted: EntryOf<"model.requested">, { called, error }: Failed): boolean {
  const { turnId, step, attempt, model, reservation } = granted;
  if (!reservation) return false;
  const known = error instanceof ModelError ? error : undefined;
  const stored = storedErrorOf(error);
  const after = known ? afterFailure(host, granted, { called, error: known }) : neverAgain;
  const isTooLong = stored.code === "context_length";
  const compactions = host.turn(turnId)?.compactions ?? 0;
  const compacts =
    !after.isFallback &&
    isTooLong &&
    host.definition.autoCompact !== null &&
    compactions < COMPACTIONS_WITHOUT_PROGRESS;
  const retries = compacts || after.retries;
  const repair = after.retries && !after.isFallback && known ? repairOf(host, granted, known) : undefined;
  const isSameModel = compacts || repair !== undefined;
  const { usage, settlement } = billOf(error, granted.ask, reservation);
  if (!retries) host.noteFailure(turnId, error, `model "${model}"`);
  debugError(`model "${model}"`, error, host.redactorOf(turnId));
  host.append(
    {
      type: "model.failed",
      turnId,
      step,
      attempt,
      model,
      error:
        isTooLong && !retries
          ? { ...stored, code: "context_too_long", message: `${tooLong(compactions)} (${stored.message})` }
          : stored,
      retryAt: retries ? host.clock.now() + (isSameModel ? 0 : after.waitMs) : null,
      ...(retries && after.next && !isSameModel ? { next: after.next } : {}),
      ...(repair ? { repairMessageId: repair.id } : {}),
      ...(after.isTransient && !retries ? { isExhausted: true as const } : {}),
      usage,
      settlement,
    },
    { messages: repair ? [repair] : [], moves: [{ type: "settle", settlement }] },
  );
  return retries;
}

const neverAgain = { isTransient: false, retries: false, isFallback: false, waitMs: 0, next: undefined } as const;

/** Whether and with which model the call is made again after this failure. */
function afterFailure(
  host: Host,
  { turnId, step, attempt }: EntryOf<"model.requested">,
  { called, error }: { readonly called: CalledModel; readonly error: ModelError },
): AfterFailure {
  const turn = host.turn(turnId);
  const failures = turn ? stepSoFar(host, { ...turn, step, attempt }).failures : [];
  return continuationOf(host, { turnId, called, error, attempt, failures });
}

/** The message to a model whose tool call its server could not parse; `undefined` for other failures. */
function repairOf(
  host: Host,
  { turnId, step, attempt }: EntryOf<"model.requested">,
  { message, details }: ModelError,
): Message | undefined {
  if (details?.["kind"] !== "tool_use_failed") return undefined;
  const { failedGeneration } = details;
  const written =
    typeof failedGeneration === "string" && failedGeneration !== "" ? ` You wrote:\n${failedGeneration}\n` : " ";
  return {
    id: `${turnId}:${step}:repair:${attempt}`,
    role: "user",
    createdAt: host.clock.now(),
    content: `Your last answer could not be read (${message}).${written}Call a tool by its name, with one JSON object as its arguments, or answer without one.`,
    origin: "runtime",
    metadata: stepMetadata(host.identity.agentId, { turnId, step, isTrace: true }),
  };
}

/** Appends the end of a call dropped by a pause with `now`; it is made again after the pause. */
function dropAttempt(host: Host, granted: EntryOf<"model.requested">, outputTokens: number | undefined): void {
  const { turnId, step, attempt, model, reservation, ask, price } = granted;
  if (!reservation) return;
  const usage =
    outputTokens === undefined ? null : { inputTokens: ask.promptTokens, outputTokens, estimated: true as const };
  const settlement = usage ? settlementOf(reservation, usage, { price }) : unconfirmedSettlement(reservation);
  const error = {
    code: "paused",
    message: "the call was dropped by a pause; it is repeated after it",
    retryable: true,
  };
  const retryAt = host.clock.now();
  host.append(
    { type: "model.failed", turnId, step, attempt, model, error, retryAt, usage, settlement },
    { moves: [{ type: "settle", settlement }] },
  );
}

/** Appends the end of a call that was granted while the agent was being shut down; it is made after the next start. */
function dropUnsent(host: Host, granted: EntryOf<"model.requested">, reservation: Reservation): void {
  const { turnId, step, attempt, model } = granted;
  const settlement = emptySettlement(reservation);
  const error = { code: "interrupted", message: "the agent was shut down before the call was sent", retryable: true };
  const retryAt = host.clock.now();
  host.append(
    { type: "model.failed", turnId, step, attempt, model, error, retryAt, usage: null, settlement },
    { moves: [{ type: "settle", settlement }] },
  );
}

/** Identifies one attempt of one model call. */
export function requestKeyOf(request: {
  readonly turnId?: string;
  readonly messageId: string;
  readonly attempt: number;
}): string {
  return `${request.messageId}:${request.attempt}`;
}
