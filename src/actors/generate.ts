import { abortable, deepFreeze, faultPoint } from "../base/index.ts";
import type { Reservation, ReservationAsk } from "../budget/index.ts";
import { promptHashOf } from "../context/index.ts";
import {
  InvalidInputError,
  InvariantError,
  LeaseLostError,
  ModelError,
  TurnInterruptedError,
} from "../errors/index.ts";
import { callModel, compositionOf, type LanguageModel, type ModelAnswer } from "../model/index.ts";
import {
  type EntryOf,
  hookKeyOf,
  type Message,
  type ModelRequest,
  type ModelResponse,
  settingsIn,
  type TurnState,
} from "../state/index.ts";
import { type GenerateInput, takeGenerateInput } from "../tools/index.ts";
import { callIdentity } from "./call-identity.ts";
import {
  type AfterFailure,
  type CalledModel,
  type CallSoFar,
  chooseModel,
  chosenFields,
  continuationOf,
  generateSoFar,
  nextModelAfterRestart,
  nextModelOf,
  soFarWith,
  throughBreaker,
} from "./choose-model.ts";
import { until } from "./effect.ts";
import { appendModelWarnings, appendWarnings, assertOpenTurn, type Host, onLive } from "./host.ts";
import {
  billOf,
  boundedRequest,
  costIfKnown,
  lent,
  billingOfAnswer,
  reservationAskOf,
  settlementOf,
  unconfirmedSettlement,
} from "./model-cost.ts";
import { withArtifacts } from "./prompt-files.ts";
import { refusedCall, storedErrorOf } from "./stored-error.ts";

interface SideCall {
  readonly turnId: string;
  readonly step: number;
  readonly run: string;
  readonly index: number;
  readonly promptHash: string;
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
  /** Another model than the agent's; `undefined` for the agent's. */
  readonly other: LanguageModel | undefined;
  /** The journalled answer to this call, by another run of the same code. */
  readonly answerOn: (host: Host) => ModelResponse | undefined;
}

/**
 * Model calls made by user code (hooks, tools, compactions), numbered within their run. Each attempt is reserved and journalled,
 * and a failed one is retried as in a step. When the run is repeated, a call with the same prompt returns the journalled answer: that
 * of the same number, else the first one that no call of the repeated run has got, because code that continues from its note makes only
 * the calls that are left. After a restart a composition continues with the journalled model; the attempts of a single model are counted anew. The
 * code may outlive its activation, so the live host is looked up again after each wait; meanwhile another process may have repeated the
 * run, so the answers are looked up again too.
 */
export function generateFor(owner: Host, turnId: string, step: number, run: string, signal: AbortSignal) {
  let count = 0;
  const before = owner.memory(turnId).entries.at(-1)?.seq ?? 0;
  const used = new Set<number>();
  return async (
    given: GenerateInput,
    options: { readonly model?: LanguageModel | undefined } = {},
  ): Promise<ModelResponse> => {
    const input = takeGenerateInput(given);
    const other = otherModel(options.model);
    const index = count;
    count += 1;
    const host = await owner.live();
    const { model } = host.definition;
    if (input.model !== undefined && input.model !== model.name) {
      throw new InvalidInputError(`generate() requested model "${input.model}"; this agent has "${model.name}"`);
    }
    const request = await withArtifacts(host, requestOf(input, `${turnId}:${run}:${index}`));
    const promptHash = promptHashOf(request.messages);
    const answerOn = (live: Host): ModelResponse | undefined => {
      const answers = live
        .memory(turnId)
        .entries.filter(
          (entry): entry is EntryOf<"generate.responded"> =>
            entry.type === "generate.responded" &&
            entry.run === run &&
            entry.promptHash === promptHash &&
            !used.has(entry.seq),
        );
      // Of the answers that came after the start of this run, one of another number may be its own.
      const known = answers.find((entry) => entry.index === index) ?? answers.find(({ seq }) => seq <= before);
      if (known) used.add(known.seq);
      return known?.response;
    };
    return (
      answerOn(host) ?? (await call(owner, { turnId, step, run, index, promptHash, request, signal, other, answerOn }))
    );
  };
}

/** A composition would need the choices that only the agent's own model has journalled. */
function otherModel(model: LanguageModel | undefined): LanguageModel | undefined {
  if (model === undefined || !compositionOf(model)) return model;
  throw new InvalidInputError(`generate() got the model "${model.name}", which chooses among models; give one of them`);
}

async function call(owner: Host, side: SideCall): Promise<ModelResponse> {
  let soFar = await onLive(owner, async (host) => {
    await host.delivered();
    return generateSoFar(host, side);
  });
  for (let number = soFar.failures.length + 1; ; number += 1) {
    const called = await chosen(owner, side, soFar);
    const outcome = await attempt(owner, side, { called, number, failures: soFar.failures });
    if (outcome.type === "answered") return outcome.response;
    const { error, after } = outcome;
    soFar = soFarWith(soFar, { called, error, next: nextModelOf(called, after) });
    await until(owner, owner.clock.now() + after.waitMs, side.signal);
  }
}

async function chosen(owner: Host, side: SideCall, soFar: CallSoFar): Promise<CalledModel> {
  const { model } = owner.definition;
  const { turnId, step, run, index, request, signal, other } = side;
  if (other !== undefined || !compositionOf(model)) return { model: other ?? model, route: [] };
  return await onLive(owner, async (host) => {
    const turn = assertOpenTurn(host, turnId);
    const key = `${turnId}:${run}:${index}`;
    return await chooseModel(host, { turn, step, key, purpose: "generate", soFar, request: () => request, signal });
  });
}

interface Attempt {
  readonly called: CalledModel;
  /** From 1. */
  readonly number: number;
  /** The attempts before it. */
  readonly failures: CallSoFar["failures"];
}

type AttemptOutcome =
  | { readonly type: "answered"; readonly response: ModelResponse }
  | { readonly type: "repeated"; readonly error: ModelError; readonly after: AfterFailure };

/** Rejects if the call has failed and is not made again. */
async function attempt(owner: Host, side: SideCall, { called, number, failures }: Attempt): Promise<AttemptOutcome> {
  const { turnId, step, promptHash, request, signal } = side;
  const { model } = called;
  const granted = await reserved(owner, side, called);
  if ("answer" in granted) return { type: "answered", response: granted.answer };
  const { ask, reservation } = granted;
  faultPoint("generate.intent");
  try {
    const asked = request.maxOutputTokens ?? owner.definition.maxOutputTokens;
    const bounded = boundedRequest(model, request, { asked, ask, granted: reservation });
    const identity = callIdentity(owner, { turnId, step, attempt: number });
    const asking = throughBreaker(owner, called, {
      signal,
      call: () => callModel(model, lent(bounded), { signal, call: identity }),
    });
    // An adapter that ignores its signal must not block the calling code.
    const { response, warnings } = await abortable(asking, signal);
    // The journal and the calling code share the value.
    deepFreeze<unknown>(response);
    faultPoint("generate.effect");
    const billing = await billingOfAnswer(owner, response, {
      asked: ask.price,
      turn: owner.turn(turnId),
      called: model,
    });
    const settlement = settlementOf(reservation, response.usage, billing);
    const costMicros = costIfKnown(response.usage, billing.price);
    await settle(owner, side, { type: "generate.responded", promptHash, response, costMicros, settlement }, warnings);
    faultPoint("generate.result");
    return { type: "answered", response };
  } catch (error) {
    if (error instanceof LeaseLostError || error instanceof TurnInterruptedError) throw error;
    const { usage, settlement } = billOf(error, ask, reservation);
    const failed = { type: "generate.failed", error: storedErrorOf(error), usage, settlement } as const;
    if (!(error instanceof ModelError)) {
      await settle(owner, side, failed);
      throw error;
    }
    const failure = { turnId, called, error, attempt: number, failures };
    const after = await onLive(owner, async (host) => continuationOf(host, failure));
    const next = nextModelOf(called, after);
    await settle(owner, side, next ? { ...failed, next } : failed);
    if (!after.retries) throw error;
    return { type: "repeated", error, after };
  }
}

type Reserved =
  | { readonly ask: ReservationAsk; readonly reservation: Reservation }
  | { readonly answer: ModelResponse };

/**
 * Proposes the call until it is granted. Waits for other agents' reservations and for pauses; any other refusal stops the run. If the
 * agent came back from another process, which has gone on with the turn, the call is not made: its answer is known, or its run is over.
 */
function reserved(owner: Host, side: SideCall, { model, route }: CalledModel): Promise<Reserved> {
  const { turnId, step, run, index, promptHash, request, signal } = side;
  return onLive<Reserved>(owner, async (host) => {
    if (host !== owner) {
      assertOpenTurn(host, turnId);
      const answer = side.answerOn(host);
      if (answer) return { answer };
      if (isRunOver(host, side)) throw new TurnInterruptedError("the turn continued without this call of generate()");
    }
    settleAbandoned(host, side);
    for (;;) {
      signal.throwIfAborted();
      const turn = assertOpenTurn(host, turnId);
      const key = `${turnId}:${run}:${index}`;
      const ask = await reservationAskOf(host, request, { turn, model, key, opensStep: false, signal });
      signal.throwIfAborted();
      assertOpenTurn(host, turnId);
      const { entry } = await host.propose({
        type: "generate.requested",
        turnId,
        step,
        run,
        index,
        promptHash,
        ask,
        model: model.name,
        ...chosenFields(model, route),
        reservation: null,
      });
      if (entry.type === "generate.requested") {
        if (entry.reservation) return { ask, reservation: entry.reservation };
        throw new InvariantError("a call of generate() was granted without a reservation");
      }
      // Beside the open call of the step, whose answer a guard checks, it would wait for the reservation of that call.
      const isBeside = turn.openRequest !== null;
      if (isBeside && entry.reason === "paused") throw new TurnInterruptedError("the agent is being paused");
      if (isBeside || (entry.reason !== "mustWait" && entry.reason !== "paused"))
        throw refusedCall("generate()", entry);
      await abortable(host.freed(entry, run), signal);
    }
  });
}

/** Whether the journal has the end of the run, or a later step. */
function isRunOver(host: Host, { turnId, step, run }: SideCall): boolean {
  return host.memory(turnId).entries.some((entry) => {
    if (entry.type === "model.requested") return entry.step > step;
    if (entry.type === "tool.settled") return entry.callId === run;
    if (entry.type !== "hook.applied") return false;
    return `${hookKeyOf(entry.hook, entry.index, entry.callId ?? entry.inputId)}@${entry.step}` === run;
  });
}

type Outcome =
  | Pick<EntryOf<"generate.responded">, "type" | "promptHash" | "response" | "costMicros" | "settlement">
  | Pick<EntryOf<"generate.failed">, "type" | "error" | "next" | "usage" | "settlement">;

/** Appends the outcome, unless the end of the turn has already settled the call. */
function settle(owner: Host, side: SideCall, outcome: Outcome, warnings: ModelAnswer["warnings"] = []): Promise<void> {
  const { turnId, step, run, index } = side;
  return onLive(owner, async (host) => {
    await host.delivered();
    const open = host.turn(turnId)?.openGenerates.some((one) => one.run === run && one.index === index);
    if (!open) throw new TurnInterruptedError("the turn continued without waiting for this call of generate()");
    const { settlement } = outcome;
    host.append({ ...outcome, turnId, step, run, index }, { moves: [{ type: "settle", settlement }] });
    appendWarnings(host, turnId, warnings);
    if (outcome.type === "generate.responded") appendModelWarnings(host, turnId, outcome.response);
  });
}

/** A call that was in flight when its process died is settled in full before it is made again. */
function settleAbandoned(host: Host, { turnId, step, run, index }: SideCall): void {
  settleAbandonedCalls(host, { turnId, step }, (one) => one.run === run && one.index === index);
}

/**
 * Settles calls that a finished run has not made again, because a call is never repeated or the code took another branch. Until
 * then such a call counts as work, and the turn does not come to rest.
 */
export function settleAbandonedRun(
  host: Host,
  place: { readonly turnId: string; readonly step: number },
  isOfRun: (run: string) => boolean,
): void {
  settleAbandonedCalls(host, place, ({ run }) => isOfRun(run));
}

function settleAbandonedCalls(
  host: Host,
  { turnId, step }: { readonly turnId: string; readonly step: number },
  isMeant: (open: OpenGenerate) => boolean,
): void {
  for (const open of host.turn(turnId)?.openGenerates ?? []) {
    const isAbandoned = open.epoch < host.epoch && isMeant(open) && !hasEnd(host, open);
    if (isAbandoned) settleInFull(host, { turnId, step }, open);
  }
}

/**
 * Whether the call's end waits behind an undecided intent: code that kept running while its agent was recovered has used the
 * answer.
 */
function hasEnd(host: Host, { run, index }: OpenGenerate): boolean {
  return host
    .undelivered()
    .some(
      (entry) =>
        (entry.type === "generate.responded" || entry.type === "generate.failed") &&
        entry.run === run &&
        entry.index === index,
    );
}

type OpenGenerate = TurnState["openGenerates"][number];

function settleInFull(
  host: Host,
  { turnId, step }: { readonly turnId: string; readonly step: number },
  open: OpenGenerate,
): void {
  const { run, index } = open;
  const settlement = unconfirmedSettlement(open.reservation);
  const error = { code: "interrupted", message: "the process ended while the call was in flight", retryable: true };
  const requested = host
    .memory(turnId)
    .entries.findLast(
      (entry): entry is EntryOf<"generate.requested"> =>
        entry.type === "generate.requested" && entry.run === run && entry.index === index,
    );
  const next = nextModelAfterRestart(requested);
  host.append(
    { type: "generate.failed", turnId, step, run, index, error, ...(next ? { next } : {}), usage: null, settlement },
    { moves: [{ type: "settle", settlement }] },
  );
}

function requestOf(input: GenerateInput, prefix: string): ModelRequest {
  const messages = input.messages.map(
    ({ role, content }, index): Message =>
      deepFreeze({
        id: `${prefix}:${index}`,
        role,
        content,
        createdAt: 0,
        origin: "runtime",
      }),
  );
  return { messages, ...settingsIn(input) };
}
