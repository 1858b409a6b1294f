import { abortable, backoffDelay, describeValue, wordsOfThrown } from "../base/index.ts";
import { InvariantError, type ModelError } from "../errors/index.ts";
import {
  type BreakerLimits,
  breakersOf,
  budgetLeftOf,
  type Composition,
  compositionOf,
  isFallbackError,
  type LanguageModel,
  type ModelChoice,
  pickedIndex,
} from "../model/index.ts";
import type { EntryOf, ModelRequest, NextModel, StoredError, TurnState } from "../state/index.ts";
import { appendWarnings, type Host } from "./host.ts";
import { storedErrorOf } from "./stored-error.ts";
import { userCode } from "./user-errors.ts";

/**
 * Chooses the model of each attempt, for a definition whose model is made of others.
 *
 * A route has the index of the chosen model at each level of the composition, outermost first; it is empty if the definition's
 * model is called itself.
 *
 * Invariants
 * 1. The route of a call is journalled with its intent, and the model after a failure with the failure. So after a restart the
 *    same model is called, in steps and in `generate()`.
 * 2. Within a step `pick` runs again only where the route has none of its choices: for the first attempt, and below a fallback. A prompt that
 *    is made again for a further input is a first attempt too.
 * 3. A model that has failed for good is not called again in its step, while another one is left.
 */

/** The model of one attempt, and its route. */
export interface CalledModel {
  readonly model: LanguageModel;
  readonly route: readonly number[];
}

/** The model named by an entry of the journal. `route` may end above a composition, which then chooses. */
type KnownModel = Omit<NextModel, "isFallback">;

/** A failed attempt of the same call. */
export interface FailedAttempt {
  readonly route: readonly number[];
  /** Whether a repetition may help. */
  readonly isTransient: boolean;
  /** Whether the next model of the same round was called after it. */
  readonly isFallback: boolean;
  readonly isTooLong: boolean;
}

/** A call with its attempts so far. */
export interface CallSoFar {
  readonly failures: readonly FailedAttempt[];
  /** The model that the next attempt continues with. */
  readonly known: KnownModel | undefined;
}

const nothing: CallSoFar = Object.freeze({ failures: [], known: undefined });

/** The attempts of a step, from the journal. */
export function stepSoFar(host: Host, { turnId, step, attempt }: TurnState): CallSoFar {
  if (attempt === 0 || !compositionOf(host.definition.model)) return nothing;
  const failures: FailedAttempt[] = [];
  let known: KnownModel | undefined;
  for (const entry of host.memory(turnId).entries) {
    if (entry.type === "model.requested" && entry.step === step && entry.reservation) known = modelIn(entry);
    if (entry.type === "context.compacted" && entry.step === step) forgetTooLong(failures);
    if (entry.type !== "model.failed" || entry.step !== step) continue;
    const { next, error } = entry;
    failures.push(failedAttempt(error, known?.route ?? [], next));
    known = next ?? known;
  }
  return { failures, known };
}

/**
 * The attempts of a call of `generate()` before a restart, from the journal; none for a model that is called itself, whose attempts are
 * counted anew.
 */
export function generateSoFar(
  host: Host,
  { turnId, run, index, promptHash }: Pick<EntryOf<"generate.requested">, "turnId" | "run" | "index" | "promptHash">,
): CallSoFar {
  if (!compositionOf(host.definition.model)) return nothing;
  let failures: FailedAttempt[] = [];
  let known: KnownModel | undefined;
  for (const entry of host.memory(turnId).entries) {
    if (entry.type !== "generate.requested" && entry.type !== "generate.failed") continue;
    if (entry.run !== run || entry.index !== index) continue;
    if (entry.type === "generate.requested") {
      const isSame = entry.promptHash === promptHash;
      if (!isSame) failures = [];
      known = isSame && entry.reservation ? modelIn(entry) : undefined;
      continue;
    }
    const { next, error } = entry;
    // Without a next attempt the call has failed; code that makes it again begins anew.
    if (next && known) failures.push(failedAttempt(error, known.route, next));
    else failures = [];
    known = known && next;
  }
  return { failures, known };
}

function failedAttempt(
  { code, retryable }: StoredError,
  route: readonly number[],
  next: Pick<NextModel, "isFallback"> | undefined,
): FailedAttempt {
  return { route, isTransient: retryable, isFallback: next?.isFallback === true, isTooLong: code === "context_length" };
}

/** The model of a call that is made again because its process has ended before the answer: the same one. */
export function nextModelAfterRestart(requested: EntryOf<"generate.requested"> | undefined): NextModel | undefined {
  const known = requested && modelIn(requested);
  return known && { ...known, route: [...known.route], isFallback: false };
}

/** After a compaction the prompt may fit into the windows of models that have refused it. */
function forgetTooLong(failures: FailedAttempt[]): void {
  for (const [index, one] of failures.entries()) if (one.isTooLong) failures[index] = { ...one, isTransient: true };
}

/** The attempts of a call after another failed one. */
export function soFarWith(
  { failures }: CallSoFar,
  { called, error, next }: Pick<Failure, "called" | "error"> & { readonly next: NextModel | undefined },
): CallSoFar {
  return { failures: [...failures, failedAttempt(storedErrorOf(error), called.route, next)], known: next };
}

/** The model of the next attempt, also if it is the same one; `undefined` if there is none, or the definition's model is called itself. */
export function nextModelOf({ model, route }: CalledModel, after: AfterFailure): NextModel | undefined {
  if (!after.retries || route.length === 0) return undefined;
  return after.next ?? { model: model.name, provider: model.provider, route: [...route], isFallback: false };
}

/** The fields of an intent that name the chosen model; none if the definition's model is called itself. */
export function chosenFields(
  { provider }: LanguageModel,
  route: readonly number[],
): Pick<EntryOf<"model.requested">, "provider" | "route"> {
  return route.length === 0 ? {} : { provider, route: [...route] };
}

function modelIn({
  model,
  provider,
  route,
}: Pick<EntryOf<"model.requested">, "model" | "provider" | "route">): KnownModel | undefined {
  return provider === undefined || route === undefined ? undefined : { model, provider, route };
}

/** The model of a granted call, if the definition still has it. */
export function modelOfRequest(host: Host, granted: EntryOf<"model.requested">): CalledModel {
  const { model } = host.definition;
  const known = modelIn(granted);
  const called = known && modelAt(model, known);
  return called ? { model: called, route: known.route } : { model, route: [] };
}

interface Choosing {
  readonly turn: TurnState;
  readonly step: number;
  /** Identifies the call. */
  readonly key: string;
  readonly purpose: ModelChoice["purpose"];
  readonly soFar: CallSoFar;
  /** The request for a model that has written none of the answers. */
  readonly request: () => ModelRequest;
  readonly signal: AbortSignal;
}

/** The model of the next attempt. Rejects with an error of `pick`, which fails the turn. */
export async function chooseModel(host: Host, choosing: Choosing): Promise<CalledModel> {
  const { failures, known } = choosing.soFar;
  let { model } = host.definition;
  const given = known && modelAt(model, known) ? known.route : [];
  const route: number[] = [];
  for (let composition = compositionOf(model); composition; composition = compositionOf(model)) {
    const above = [...route];
    const index =
      given[route.length] ?? (await chosenIndex(host, composition, { ...choosing, route: above, failures }));
    if (composition.kind === "fallback")
      warnOfSkipped(host, composition, { turnId: choosing.turn.turnId, before: index });
    route.push(index);
    model = memberAt(composition, index);
  }
  return { model, route };
}

async function chosenIndex(host: Host, composition: Composition, choosing: Choosing & RouteSoFar): Promise<number> {
  if (composition.kind === "fallback") return firstOf(host, composition, choosing).index;
  const { turn, step, key, purpose, request, signal } = choosing;
  await host.committed();
  signal.throwIfAborted();
  const { agentId, rootAgentId, definition } = host.identity;
  const choice: ModelChoice = {
    agentId,
    rootAgentId,
    agentName: definition.name,
    turnId: turn.turnId,
    turn: turn.number,
    step,
    purpose,
    get messages() {
      return [...request().messages];
    },
    get tools() {
      return [...(request().tools ?? [])];
    },
    budgetLeft: async () => budgetLeftOf(agentId, await host.accounts(turn.accountId)),
  };
  const picking = host.inFlight.run(`${key}:pick:${keyOf(choosing.route)}`, signal, async () =>
    userCode("pick() of routedModel", async () => pickedIndex(composition.models, await composition.pick(choice))),
  );
  return await abortable(picking, signal);
}

/** Warns once per turn if a preferred model is not called because the breaker of its provider is open. */
function warnOfSkipped(
  host: Host,
  { models, breaker }: Fallback,
  { turnId, before }: { turnId: string; before: number },
): void {
  for (const model of breaker ? models.slice(0, before) : []) {
    const openUntil = breaker && !compositionOf(model) && breakersOf(host.clock).openUntil(model, breaker);
    if (typeof openUntil !== "number") continue;
    const until = new Date(host.clock.now() + openUntil - host.clock.elapsed()).toISOString();
    const message = `the circuit breaker of provider "${model.provider}" is open: its calls have failed; "${model.name}" is not called until ${until}`;
    appendWarnings(host, turnId, [{ code: "circuit_open", message }]);
  }
}

/** A position in a composition, and the attempts that have failed. */
interface RouteSoFar {
  /** The route above the composition. */
  readonly route: readonly number[];
  readonly failures: readonly FailedAttempt[];
}

type Fallback = Extract<Composition, { kind: "fallback" }>;

/** When a model may be called, in monotonic time; never again (infinity) if it has failed for good. */
function freeAt(host: Host, model: LanguageModel, breaker: BreakerLimits | null, soFar: RouteSoFar): number {
  const composition = compositionOf(model);
  if (composition) {
    const inner = composition.kind === "fallback" ? composition.breaker : breaker;
    const times = composition.models.map((member, index) =>
      freeAt(host, member, inner, { ...soFar, route: [...soFar.route, index] }),
    );
    return Math.min(...times);
  }
  const key = keyOf(soFar.route);
  if (soFar.failures.some(({ route, isTransient }) => !isTransient && keyOf(route) === key)) return Infinity;
  return breaker ? breakersOf(host.clock).freeAt(model, breaker) : Number.NEGATIVE_INFINITY;
}

/** The first model that may be called `delayMs` from now; otherwise the one that may be called first. */
function firstOf(host: Host, composition: Fallback, soFar: RouteSoFar, delayMs = 0): { index: number; waitMs: number } {
  const now = host.clock.elapsed();
  let first = { index: 0, waitMs: Infinity };
  for (const [index, member] of composition.models.entries()) {
    const at = freeAt(host, member, composition.breaker, { ...soFar, route: [...soFar.route, index] });
    const waitMs = Math.max(delayMs, at - now);
    if (waitMs === delayMs) return { index, waitMs };
    if (waitMs < first.waitMs) first = { index, waitMs };
  }
  return { index: first.index, waitMs: Number.isFinite(first.waitMs) ? first.waitMs : delayMs };
}

export interface Failure {
  readonly turnId: string;
  readonly called: CalledModel;
  readonly error: ModelError;
  /** Number of the failed attempt, from 1. */
  readonly attempt: number;
  /** The attempts before it. */
  readonly failures: readonly FailedAttempt[];
}

/** What follows on a failed attempt. */
export interface AfterFailure {
  /** Whether a repetition may help. */
  readonly isTransient: boolean;
  /** Whether there is another attempt. */
  readonly retries: boolean;
  readonly waitMs: number;
  /** The model of the next attempt; `undefined` for the same one. */
  readonly next: NextModel | undefined;
  /** Whether the next attempt belongs to the same round: it does not count towards `maxModelAttempts`. */
  readonly isFallback: boolean;
}

/** Decides about the next attempt: the next model of a fallback, another round, or the same model again. */
export function continuationOf(host: Host, failure: Failure): AfterFailure {
  const { error, called, failures, attempt } = failure;
  const next = fallbackAfter(host, failure);
  if (next) return { isTransient: true, retries: true, waitMs: 0, next, isFallback: true };
  const rounds = attempt - failures.filter(({ isFallback }) => isFallback).length;
  const round = failures.slice(failures.findLastIndex(({ isFallback }) => !isFallback) + 1);
  const isTransient = error.retryable || round.some((one) => one.isTransient);
  const same = { isTransient, next: undefined, isFallback: false };
  if (!isTransient || rounds >= host.definition.maxModelAttempts) return { ...same, retries: false, waitMs: 0 };
  const backoffMs = backoffDelay(rounds, host.random());
  if (called.route.length === 0) return { ...same, retries: true, waitMs: error.retryAfterMs ?? backoffMs };
  return { ...same, retries: true, ...roundAfter(host, failure, backoffMs) };
}

/** The next model of the innermost composition that permits one. */
function fallbackAfter(host: Host, failure: Failure): NextModel | undefined {
  const { called, error, failures } = failure;
  const levels = levelsOf(host.definition.model, called.route);
  const own = failedAttempt(storedErrorOf(error), called.route, { isFallback: true });
  for (const { composition, route, index } of levels.toReversed()) {
    if (composition.kind !== "fallback" || !permits(host, composition, failure)) continue;
    for (let at = index + 1; at < composition.models.length; at += 1) {
      const place = { route: [...route, at], failures: [...failures, own] };
      const member = memberAt(composition, at);
      if (error.details["kind"] === "context_length" && !isLarger(member, called.model)) continue;
      if (freeAt(host, member, composition.breaker, place) > host.clock.elapsed()) continue;
      return { model: member.name, provider: member.provider, route: place.route, isFallback: true };
    }
  }
  return undefined;
}

function permits(host: Host, { when }: Fallback, { turnId, error }: Failure): boolean {
  if (error.details["kind"] === "circuit_open") return true;
  let why: string;
  try {
    const answer: unknown = when(error, isFallbackError(error));
    if (typeof answer === "boolean") return answer;
    why = `returned ${describeValue(answer)}; it must return true or false`;
  } catch (thrown) {
    why = `threw: ${wordsOfThrown(thrown)}`;
  }
  const message = host.redactorOf(turnId)(`when() of fallbackModel ${why}; the next model is not called`);
  appendWarnings(host, turnId, [{ code: "fallback_failed", message }]);
  return false;
}

function isLarger(model: LanguageModel, than: LanguageModel): boolean {
  const { contextWindow } = model;
  return contextWindow !== undefined && (than.contextWindow === undefined || contextWindow > than.contextWindow);
}

/** The model with which the next round of the outermost fallback begins, and the wait before it. */
function roundAfter(
  host: Host,
  { called, failures, error }: Failure,
  backoffMs: number,
): Pick<AfterFailure, "next" | "waitMs"> {
  const ownMs = error.retryAfterMs ?? backoffMs;
  const level = levelsOf(host.definition.model, called.route).find(
    ({ composition }) => composition.kind === "fallback",
  );
  if (level?.composition.kind !== "fallback") return { next: undefined, waitMs: ownMs };
  const { composition } = level;
  const own = failedAttempt(storedErrorOf(error), called.route, undefined);
  const { index, waitMs } = firstOf(host, composition, { route: level.route, failures: [...failures, own] }, backoffMs);
  const route = [...level.route, index];
  if (keyOf(route) === keyOf(called.route)) {
    return { next: undefined, waitMs: waitMs === backoffMs ? ownMs : Math.max(ownMs, waitMs) };
  }
  const { name, provider } = memberAt(composition, index);
  return { next: { model: name, provider, route, isFallback: false }, waitMs };
}

function keyOf(route: readonly number[]): string {
  return route.join(".");
}

interface Level {
  readonly composition: Composition;
  /** The route above it. */
  readonly route: readonly number[];
  /** The chosen model. */
  readonly index: number;
}

/** The compositions along a route, outermost first. */
function levelsOf(model: LanguageModel, route: readonly number[]): readonly Level[] {
  const levels: Level[] = [];
  let current = model;
  for (const [depth, index] of route.entries()) {
    const composition = compositionOf(current);
    if (!composition) break;
    levels.push({ composition, route: route.slice(0, depth), index });
    current = memberAt(composition, index);
  }
  return levels;
}

/** The model at the end of a route; `undefined` if the definition has another one there by now. */
function modelAt(model: LanguageModel, { route, model: name, provider }: KnownModel): LanguageModel | undefined {
  let current: LanguageModel | undefined = model;
  for (const index of route) current = current && compositionOf(current)?.models[index];
  return current?.name === name && current.provider === provider ? current : undefined;
}

function memberAt({ models }: Composition, index: number): LanguageModel {
  const member = models[index];
  if (!member) throw new InvariantError(`a composition of ${models.length} models has no model ${index}`);
  return member;
}

/** The breaker of the innermost fallback along the route; `null` if it has none. */
function breakerOf(host: Host, { route }: CalledModel): BreakerLimits | null {
  const level = levelsOf(host.definition.model, route).findLast(({ composition }) => composition.kind === "fallback");
  return level?.composition.kind === "fallback" ? level.composition.breaker : null;
}

/**
 * Makes the call through the circuit breaker of its provider, if it has one.
 * @throws ModelError of kind `circuit_open` if the breaker permits no call now: nothing is sent.
 */
export async function throughBreaker<T>(
  host: Host,
  called: CalledModel,
  { signal, call }: { readonly signal: AbortSignal; readonly call: () => Promise<T> },
): Promise<T> {
  const limits = breakerOf(host, called);
  if (!limits) return await call();
  return await breakersOf(host.clock).run({ model: called.model, limits, signal }, call);
}
