import { describeValue, reading, wordsOfThrown } from "../../base/index.ts";
import { limitsOf } from "../../budget/index.ts";
import { AgentBusyError, AgentNotStartedError, InvalidInputError, NotFoundError } from "../../errors/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  agentOfTurn,
  type Content,
  type Lifecycle,
  numberOfTurn,
  turnIdOf,
} from "../../state/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";
import { inputOf, traceOfTurn, turnOptionsOf } from "../doors/turn-door.ts";
import type { TurnOptions } from "../doors/turn-types.ts";

/** A request for a turn. */
export interface TurnAsked {
  readonly input: Content | null;
  readonly options?: TurnOptions | undefined;
  /** Gives the agent's first turn instead, if it has one already. */
  readonly isFirst?: boolean | undefined;
  /** Messages of the conversation that are its input, if `input` is null. */
  readonly inputMessageIds?: readonly string[] | undefined;
}

/** A turn that was accepted. */
export interface OpenedTurn {
  readonly turnId: string;
  /** The stored record, if the agent does not live here. */
  readonly record?: AgentRecord | undefined;
}

/** The agent in this process. */
interface LocalPlace {
  readonly key: AgentKey;
  readonly live: Activation | undefined;
  readonly runsHere: boolean;
  own(): Promise<Activation | undefined>;
  tell(posted: readonly string[], here: Activation | undefined): void;
}

export interface OpeningPlace {
  readonly core: RuntimeCore;
  readonly local: LocalPlace;
  readonly status: () => Lifecycle;
}

/**
 * Opens a turn; all input is checked before anything is stored. Rejects with `InvalidInputError`, `AgentBusyError`,
 * `AgentNotStartedError` and `NotFoundError`.
 */
export async function openTurn(place: OpeningPlace, asked: TurnAsked): Promise<OpenedTurn> {
  const input = inputOf(asked.input);
  const options = turnOptionsOf(asked.options);
  const heard = options.signal && hearSignal(options.signal);
  try {
    return await accept(place, { ...asked, input, options }, heard);
  } catch (error) {
    heard?.letGo();
    throw error;
  }
}

type CheckedTurn = TurnAsked & { readonly options: TurnOptions };

async function accept(place: OpeningPlace, turn: CheckedTurn, heard: HeardSignal | undefined): Promise<OpenedTurn> {
  const { core, local } = place;
  const { key } = local;
  const { input, options, isFirst, inputMessageIds } = turn;
  const { auth, budget, ifBusy = "refuse" } = options;
  const trace = traceOfTurn(options);
  const limits = budget === undefined ? null : limitsOf(budget, core.clock.now());
  core.assertOpen();
  if (local.live?.lifecycle === "created" || core.live.isShutDown(key)) throw notStarted(place);
  const actorId = auth?.actorId ?? null;
  const command = { input, actorId, limits, ifBusy, trace, isFirst, inputMessageIds } as const;
  const outcome = await core.stores.openTurn(key, command, core.clock.now());
  if (outcome.type === "notFound") throw new NotFoundError(`there is no agent "${key.agentId}"`);
  if (outcome.type === "refused") throw notStarted(place);
  if (outcome.type === "given") return { turnId: outcome.turnId };
  if (outcome.type === "busy") {
    const { openTurnId } = outcome;
    throw new AgentBusyError(busyText(key.agentId, openTurnId), { details: { openTurnId } });
  }
  // A process that runs no turns has no use for credentials.
  if (auth && local.runsHere) core.auth.keep(outcome.turnId, auth);
  if (heard) await abortWithSignal(core, outcome.turnId, heard);
  const owner = local.live ?? (await local.own());
  if (owner && outcome.type === "opened") core.live.take(owner, outcome.item);
  else if (owner) await core.live.drainInbox(owner);
  local.tell(outcome.posted, owner);
  return { turnId: outcome.turnId, record: owner ? undefined : outcome.record };
}

function notStarted({ local, status }: OpeningPlace): AgentNotStartedError {
  return new AgentNotStartedError(notStartedText(local.key.agentId, status()));
}

/** The turns that a signal may end. */
interface AbortableTurns {
  abort(turnId: string, reason: string): Promise<void>;
  end(turnId: string): Promise<unknown>;
}

/** A caller's signal, as this process hears it. */
export interface HeardSignal {
  /** A signal of this process, aborted with the reason as text. */
  readonly signal: AbortSignal;
  readonly letGo: () => void;
}

/** Listens before the turn is accepted, so that an unusable signal is refused. Throws `InvalidInputError`. */
export function hearSignal(given: AbortSignal, what = "executeTurn(): signal"): HeardSignal {
  const own = new AbortController();
  const abort = (): void => own.abort(wordsOfThrown(given.reason));
  reading(what, () => {
    if (given.aborted) abort();
    else given.addEventListener("abort", abort, { once: true });
  });
  const letGo = (): void => {
    try {
      given.removeEventListener("abort", abort);
    } catch {
      // The signal is the caller's, and is not needed any more.
    }
  };
  return { signal: own.signal, letGo };
}

/** Aborts the turn with the signal; an already aborted signal ends it before its first step (row S12). */
export async function abortWithSignal(turns: AbortableTurns, turnId: string, heard: HeardSignal): Promise<void> {
  const { signal, letGo } = heard;
  const reason = (): string => String(signal.reason);
  if (signal.aborted) return await turns.abort(turnId, reason());
  const abort = (): void => {
    turns.abort(turnId, reason()).catch((error: unknown) => process.emitWarning(`turn ${turnId}: ${String(error)}`));
  };
  signal.addEventListener("abort", abort, { once: true });
  turns.end(turnId).then(letGo, letGo);
}

/** Throws `InvalidInputError` for anything but an id of one of this agent's turns. */
export function assertTurnOf(agentId: string, turnId: unknown): asserts turnId is string {
  const form = `the turns of agent "${agentId}" are ${turnIdOf(agentId, 1)}, ${turnIdOf(agentId, 2)} and so on`;
  if (typeof turnId !== "string" || !isTurnId(turnId)) {
    throw new InvalidInputError(`${describeValue(turnId)} is not the id of a turn; ${form}`);
  }
  const owner = agentOfTurn(turnId);
  if (owner === agentId) return;
  throw new InvalidInputError(`turn "${turnId}" is one of agent "${owner}", not of this one; ${form}`, {
    details: { agentId, turnId },
  });
}

/**
 * The id of a turn that was opened. Rejects with `NotFoundError` for a number that was never given, unless the agent
 * starts turns by itself: then the turn may still come, and callers wait for it.
 */
export async function givenTurn(core: RuntimeCore, agentId: string, turnId: string): Promise<string> {
  const record = await readRecord(core, agentId);
  if (!record) throw new NotFoundError(`there is no agent "${agentId}", and so no turn "${turnId}"`);
  const number = numberOfTurn(turnId);
  if (number < (record.firstTurnNumber ?? 1)) throw unknown(turnId, "its numbers begin later");
  if (number < record.nextTurnNumber || startsTurns(core, record.definition.name)) return turnId;
  if (number < (await savedTurnNumber(core, agentId))) return turnId;
  const last = record.nextTurnNumber - 1;
  throw unknown(turnId, last === 0 ? "the agent has had none yet" : `the last one is ${turnIdOf(agentId, last)}`);
}

async function readRecord(core: RuntimeCore, agentId: string) {
  core.closed.throwIfAborted();
  try {
    return await core.stores.readAgent(core.keyOf(agentId));
  } catch (error) {
    // Shutting down the runtime closes its stores.
    core.closed.throwIfAborted();
    throw error;
  }
}

/**
 * For a tree held in memory: the saved record also counts turns that other processes have opened, which will reach it.
 */
async function savedTurnNumber(core: RuntimeCore, agentId: string): Promise<number> {
  const key = core.keyOf(agentId);
  const saved = core.stores.isHeld(key) ? await core.stores.readSaved(key) : undefined;
  return saved?.nextTurnNumber ?? 0;
}

/** True for an unknown definition, because nothing here says otherwise. */
function startsTurns(core: RuntimeCore, name: string): boolean {
  const definition = core.definitions.get(name);
  if (!definition) return true;
  return definition.tools.tools.some((tool) => tool.kind === "subagent" && tool.background?.onEnd === "wake");
}

function unknown(turnId: string, why: string): NotFoundError {
  return new NotFoundError(`there is no turn "${turnId}": ${why}`, { details: { turnId } });
}

/** Whether `turnIdOf` makes this id, because a turn has only one. */
function isTurnId(turnId: string): boolean {
  const number = numberOfTurn(turnId);
  return Number.isSafeInteger(number) && number >= 1 && turnIdOf(agentOfTurn(turnId), number) === turnId;
}

/** The message for a turn that is not accepted. */
function notStartedText(agentId: string, status: Lifecycle): string {
  return `agent "${agentId}" is ${status}; call start() before its first turn, and again after shutdown()`;
}

function busyText(agentId: string, openTurnId: string): string {
  return `agent "${agentId}" is busy with turn ${openTurnId}; wait for it, or pass { ifBusy: "queue" } or { ifBusy: "supersede" }`;
}
