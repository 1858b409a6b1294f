import { createHash } from "node:crypto";
import {
  AsyncContext,
  createId,
  describeValue,
  faultPoint,
  reading,
  stableStringify,
  wordsOfThrown,
} from "../../base/index.ts";
import { limitsOf } from "../../budget/index.ts";
import {
  AgentBusyError,
  AgentNotStartedError,
  InvalidInputError,
  InvariantError,
  NotFoundError,
  PolicyRefusedError,
  type TroupeError,
  TurnConflictError,
} from "../../errors/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  agentOfTurn,
  assertToolOf,
  type CallSettings,
  type Content,
  type Lifecycle,
  type ModelTool,
  numberOfTurn,
  settingsIn,
  turnIdOf,
} from "../../state/index.ts";
import type { Activation } from "../agent/activation.ts";
import { nameOfInput } from "../agent/turn-contexts.ts";
import type { AgentStatusView } from "../agent/actor-tree.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";
import { inputOf, keyRule, steeredInputOf, traceOfTurn, turnOptionsOf } from "../api/turn-options.ts";
import type { SteerAnswer, TurnOptions } from "../api/turn-types.ts";
import type { AcceptedTurn } from "../follow/turn-handle.ts";
import type { ProcessIdentity, SteerCommand, SteerOutcome, TurnCommand, TurnKey } from "../../stores/index.ts";
import { absentError } from "./read-agent.ts";

/** A request for a turn. */
export interface TurnAsked {
  readonly input: Content | null;
  readonly options?: TurnOptions | undefined;
  /** Returns the agent's first turn instead, if it already has one. */
  readonly isFirst?: boolean | undefined;
  /** Messages of the conversation that are the turn's input, if `input` is null. */
  readonly inputMessageIds?: readonly string[] | undefined;
  /** The turn that is to take in the input, if it is the open one. */
  readonly steersTurnId?: string | undefined;
}

/** A turn that was accepted. */
export interface OpenedTurn extends AcceptedTurn {
  /** The stored record, if this process does not run the agent. */
  readonly record?: AgentRecord | undefined;
  /** Where the input went, if it was to steer the open turn. */
  readonly answer?: SteerAnswer | undefined;
}

/** The agent in this process. */
interface LocalDependencies {
  readonly key: AgentKey;
  readonly live: Activation | undefined;
  /** Its status, if this process holds its lease. */
  readonly standing: AgentStatusView | undefined;
  readonly runsHere: boolean;
  own(): Promise<Activation | undefined>;
  tell(posted: readonly string[], here: Activation | undefined, holder?: ProcessIdentity): void;
}

export interface OpeningDependencies {
  readonly core: RuntimeCore;
  readonly local: LocalDependencies;
  readonly status: () => Lifecycle;
  readonly record: Pick<AgentRecord, "definition" | "grantedTools">;
}

/**
 * Opens a turn, or returns the existing turn of its key; all input is validated before anything is stored. Rejects with
 * `InvalidInputError`, `AgentBusyError`, `AgentNotStartedError`, `TurnConflictError` and `NotFoundError`.
 */
export async function openTurn(dependencies: OpeningDependencies, asked: TurnAsked): Promise<OpenedTurn> {
  const options = turnOptionsOf(asked.options);
  const input = options.ifBusy === "steer" ? steeredInputOf(asked.input) : inputOf(asked.input);
  const heard = options.signal && hearSignal(options.signal);
  try {
    return await accept(dependencies, { ...asked, input, options }, heard);
  } catch (error) {
    heard?.letGo();
    throw error;
  }
}

type CheckedTurn = TurnAsked & { readonly options: TurnOptions };

async function accept(
  dependencies: OpeningDependencies,
  turn: CheckedTurn,
  heard: HeardSignal | undefined,
): Promise<OpenedTurn> {
  const { core, local } = dependencies;
  const { key } = local;
  const { input, options, isFirst, inputMessageIds } = turn;
  const { auth, budget, ifBusy = "refuse" } = options;
  const clientTools = options.clientTools?.length ? options.clientTools : undefined;
  if (clientTools) assertTakesTools(dependencies, clientTools);
  const settings = settingsOfTurn(dependencies, options);
  const trace = traceOfTurn(options);
  core.assertOpen();
  const refusal = refusalOf(dependencies, options) ?? (await missingArtifact(dependencies, input));
  // A turn that the agent already has is returned, even if this process would refuse to open another one.
  if (refusal && options.key === undefined) throw refusal;
  const actorId = auth?.actorId ?? null;
  const limits = budget === undefined ? null : limitsOf(budget);
  const asked = { input, actorId, limits, clientTools, ...(settings && { settings }) };
  const turnKey = options.key === undefined ? undefined : turnKeyOf(options.key, asked);
  const known = turnKey && { key: turnKey, onlyKnown: refusal !== undefined };
  const steerId = newSteerId();
  const outcome = await send(dependencies, {
    ...turn,
    steerId,
    command: { ...asked, trace, isFirst, inputMessageIds, ...known },
  });
  if (outcome.type === "notFound") throw await absentError(core.stores, key);
  if (outcome.type === "refused") throw refusal ?? notStarted(dependencies);
  if (outcome.type === "conflict") throw otherMeaning(key.agentId, options.key, outcome);
  if (outcome.type === "busy") {
    const { openTurnId } = outcome;
    throw new AgentBusyError(
      `agent "${key.agentId}" is busy with turn ${openTurnId}; wait for it, or pass { ifBusy: "queue" }, { ifBusy: "steer" } or { ifBusy: "supersede" }`,
      { details: { openTurnId } },
    );
  }
  faultPoint("turn.opened");
  const steered = options.key ?? steerId;
  if (outcome.type === "posted") return await passOn(dependencies, outcome, { steered, heard });
  const { turnId, type } = outcome;
  const answerOf = async (isKnown: boolean): Promise<Pick<OpenedTurn, "turnId" | "answer">> => {
    if (ifBusy !== "steer") return { turnId };
    const answer: SteerAnswer = isKnown ? await core.steered(key.agentId, steered) : { status: "queued", turnId };
    return { turnId: answer.turnId, answer };
  };
  if (type === "given") return { turnId, isReplayed: true };
  if (type !== "known" && local.runsHere) core.contexts.keep(turnId, AsyncContext.current());
  if (type === "known" && (refusal || !isUnfinished(outcome.record, turnId))) {
    heard?.letGo();
    return { ...(await answerOf(true)), isReplayed: true };
  }
  // A process that runs no turns does not need credentials.
  if (auth && local.runsHere) core.auth.keep(turnId, auth);
  if (heard) await abortWithSignal(core, turnId, heard);
  const owner = local.live ?? (await local.own());
  // Another process runs it.
  if (!owner) core.contexts.forget(turnId);
  if (owner && type === "opened") core.live.inbox.take(owner, outcome.item);
  else if (owner) await core.live.drainInbox(owner);
  // The process that opened a known turn may have ended before it could notify the agent's owner.
  if (type === "known") local.tell([key.agentId], owner);
  else local.tell(outcome.posted, owner, outcome.holder);
  const isReplayed = type === "known";
  return { ...(await answerOf(isReplayed)), isReplayed, record: owner ? undefined : outcome.record };
}

interface Sent extends CheckedTurn {
  readonly steerId: string;
  readonly command: Omit<TurnCommand, "ifBusy">;
}

/** Sends the command to the stores. Context and credentials are kept first, because the input may open a turn at once. */
async function send(
  { core, local }: OpeningDependencies,
  { options, steersTurnId, steerId, command }: Sent,
): Promise<SteerOutcome> {
  const { auth, ifBusy = "refuse" } = options;
  const { input } = command;
  const now = core.clock.now();
  if (ifBusy !== "steer") return await core.stores.openTurn(local.key, { ...command, ifBusy }, now);
  if (input === null) throw new InvariantError("an input for an open turn has no content");
  const name = nameOfInput(local.key.agentId, steerId);
  if (local.runsHere) core.contexts.keep(name, AsyncContext.current());
  if (auth && local.runsHere) core.auth.keep(name, auth);
  let isPosted = false;
  try {
    const { isFirst: _never, inputMessageIds: _none, ...turn } = { ...command, input };
    const outcome = await core.stores.steer(local.key, { steerId, turnId: steersTurnId, turn }, now);
    isPosted = outcome.type === "posted";
    return outcome;
  } finally {
    if (!isPosted) forget(core, name);
  }
}

function forget(core: RuntimeCore, name: string): void {
  core.contexts.forget(name);
  core.auth.forget(name);
}

/** Passes a posted input to the agent's owner, and waits until it is part of a turn. */
async function passOn(
  { core, local }: OpeningDependencies,
  posted: Extract<SteerOutcome, { type: "posted" }>,
  { steered, heard }: { readonly steered: string; readonly heard: HeardSignal | undefined },
): Promise<OpenedTurn> {
  const { agentId } = local.key;
  const name = nameOfInput(agentId, posted.item.steerId);
  try {
    const owner = local.live ?? (await local.own());
    // Another process runs it.
    if (!owner) core.contexts.forget(name);
    if (owner) await core.live.drainInbox(owner);
    local.tell(posted.posted, owner, posted.holder);
    const answer = await core.steered(agentId, steered);
    const { status, turnId } = answer;
    if (status === "queued") {
      core.contexts.move(name, turnId);
      core.auth.move(name, turnId);
    }
    if (heard) await abortWithSignal(core, turnId, heard);
    return { turnId, isReplayed: false, answer };
  } finally {
    forget(core, name);
  }
}

/** The reason why no turn can be opened now. */
function refusalOf(dependencies: OpeningDependencies, { budget }: TurnOptions): TroupeError | undefined {
  const { core, local } = dependencies;
  if (local.standing?.now?.lifecycle === "created" || core.live.isShutDown(local.key)) return notStarted(dependencies);
  try {
    if (budget !== undefined) limitsOf(budget, core.clock.now());
    return undefined;
  } catch (error) {
    // The budget's deadline has passed.
    if (error instanceof InvalidInputError) return error;
    throw error;
  }
}

/** The error for a file of the input whose artifact the agent does not have. Artifacts of other agents are never read. */
async function missingArtifact(
  { core, local: { key } }: OpeningDependencies,
  input: Content | null,
): Promise<InvalidInputError | undefined> {
  const parts = typeof input === "string" ? [] : (input ?? []);
  const asked = parts.flatMap((part) => (part.type === "file" ? (part.artifactId ?? []) : []));
  if (asked.length === 0) return undefined;
  const own = new Set((await core.stores.artifacts(key)).map(({ artifactId }) => artifactId));
  const missing = asked.find((artifactId) => !own.has(artifactId));
  if (missing === undefined) return undefined;
  return new InvalidInputError(
    `agent "${key.agentId}" has no artifact "${missing}"; use an artifactId of agent.getArtifacts(), or give the file as a data: or https: URL`,
  );
}

/** `asked`: everything that identifies the turn. Options about when and how to open it are excluded. */
function turnKeyOf(
  text: string,
  asked: Pick<TurnCommand, "input" | "actorId" | "limits" | "clientTools" | "settings">,
): TurnKey {
  return { text, hash: createHash("sha256").update(stableStringify(asked)).digest("hex") };
}

/**
 * The command that gives a text to an agent's open turn, for programs that only have the stores. It equals that of `agent.steer` without
 * an actor. Throws `InvalidInputError` for an invalid key.
 */
export function storedSteerOf(input: string, key: string | undefined): SteerCommand {
  const asked = { input, actorId: null, limits: null, clientTools: undefined };
  if (key === undefined) return { steerId: newSteerId(), turn: asked };
  keyRule(key, "the key");
  return { steerId: newSteerId(), turn: { ...asked, key: turnKeyOf(key, asked) } };
}

/** Has a space, which no key has. */
function newSteerId(): string {
  return `input ${createId()}`;
}

function otherMeaning(
  agentId: string,
  key: string | undefined,
  { turnId, requestId }: { readonly turnId: string; readonly requestId?: string | undefined },
): TurnConflictError {
  if (requestId !== undefined) {
    return new TurnConflictError(
      `request "${requestId}" was decided with the key "${key}" during turn ${turnId}; use another key for a turn`,
      { details: { agentId, key, turnId, requestId } },
    );
  }
  return new TurnConflictError(
    `agent "${agentId}" has turn ${turnId} with the key "${key}", but with another input, actor, budget, settings or client tools; use another key`,
    { details: { agentId, key, turnId } },
  );
}

function isUnfinished({ openTurnId, queuedTurnIds }: AgentRecord, turnId: string): boolean {
  return openTurnId === turnId || queuedTurnIds.includes(turnId);
}

/**
 * Throws `PolicyRefusedError` for an agent that does not allow client tools, `InvalidInputError` for the name of one of its own
 * tools, `NotFoundError` if this process does not know its definition.
 */
function assertTakesTools({ core, local, record }: OpeningDependencies, tools: readonly ModelTool[]): void {
  const { agentId } = local.key;
  const { name } = record.definition;
  const definition = core.definitions.get(name);
  const details = { agentId, definition: name };
  if (!definition) {
    const what = `executeTurn({ clientTools }): this runtime does not know the definition "${name}" of agent "${agentId}"`;
    throw new NotFoundError(`${what}, which decides whether client tools are allowed`, { details });
  }
  if (!definition.clientTools) {
    const way = "set clientTools: true in its definition";
    throw new PolicyRefusedError(`agent "${agentId}" does not allow client tools: ${way}`, { details });
  }
  if (record.grantedTools !== null) {
    const why = "its parent's policy decides which tools it has";
    throw new PolicyRefusedError(`agent "${agentId}" does not allow client tools: ${why}`, { details });
  }
  const own = tools.find((tool) => definition.tools.get(tool.name) !== undefined);
  if (!own) return;
  throw new InvalidInputError(
    `executeTurn({ clientTools }): agent "${name}" already has a tool "${own.name}"; use another name`,
    { details: { ...details, tool: own.name } },
  );
}

/**
 * The settings of the turn; `undefined` if there are none. Throws `InvalidInputError` for a tool that the turn does not have, as far
 * as this process knows the definition.
 */
function settingsOfTurn(
  { core, local, record }: OpeningDependencies,
  { settings: given, clientTools = [] }: TurnOptions,
): CallSettings | undefined {
  const settings = settingsIn(given ?? {});
  if (Object.keys(settings).length === 0) return undefined;
  const definition = core.definitions.get(record.definition.name);
  if (definition) {
    const names = [...definition.tools.definitions(), ...clientTools].map(({ name }) => name);
    const granted = record.grantedTools;
    const own = granted === null ? names : names.filter((name) => granted.includes(name));
    assertToolOf(settings, own, `executeTurn({ settings }) of agent "${local.key.agentId}": toolChoice`);
  }
  return settings;
}

function notStarted({ local, status }: OpeningDependencies): AgentNotStartedError {
  return new AgentNotStartedError(
    `agent "${local.key.agentId}" is ${status()}; call start() before its first turn, and again after shutdown()`,
  );
}

/** The turns that a signal may end. */
interface AbortableTurns {
  abort(turnId: string, reason: string): Promise<void>;
  end(turnId: string): Promise<unknown>;
}

/** A caller's signal, as listened to by this process. */
export interface HeardSignal {
  /** A signal of this process, aborted with the reason as text. */
  readonly signal: AbortSignal;
  readonly letGo: () => void;
}

/** Starts listening before the turn is accepted, so that an unusable signal is refused. Throws `InvalidInputError`. */
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
      // The signal belongs to the caller and is not needed any more.
    }
  };
  return { signal: own.signal, letGo };
}

/** Aborts the turn with the signal; an already aborted signal ends it before its first step. */
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

/** Throws `InvalidInputError` for anything but the id of one of this agent's turns. */
export function assertTurnOf(agentId: string, turnId: unknown): asserts turnId is string {
  const form = `the turns of agent "${agentId}" are ${turnIdOf(agentId, 1)}, ${turnIdOf(agentId, 2)} and so on`;
  if (typeof turnId !== "string" || !isTurnId(turnId)) {
    throw new InvalidInputError(`${describeValue(turnId)} is not the id of a turn; ${form}`);
  }
  const owner = agentOfTurn(turnId);
  if (owner === agentId) return;
  throw new InvalidInputError(`turn "${turnId}" belongs to agent "${owner}", not to this agent; ${form}`, {
    details: { agentId, turnId },
  });
}

/** The id of a turn that was opened. Rejects with `NotFoundError` for a number not used yet. */
export async function givenTurn(core: RuntimeCore, agentId: string, turnId: string): Promise<string> {
  const record = await readRecord(core, agentId);
  if (!record) throw new NotFoundError(`there is no agent "${agentId}", and so no turn "${turnId}"`);
  const number = numberOfTurn(turnId);
  if (number < (record.firstTurnNumber ?? 1)) throw unknown(turnId, "the agent's turn numbers begin later");
  if (number < record.nextTurnNumber || number < (await savedTurnNumber(core, agentId))) return turnId;
  const last = record.nextTurnNumber - 1;
  throw unknown(turnId, last === 0 ? "the agent has had no turn yet" : `the last one is ${turnIdOf(agentId, last)}`);
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

/** For a tree held in memory: the saved record also counts turns opened by other processes, which this tree will receive. */
async function savedTurnNumber(core: RuntimeCore, agentId: string): Promise<number> {
  const key = core.keyOf(agentId);
  const saved = core.stores.isUnsaved(key) ? await core.stores.readSaved(key) : undefined;
  return saved?.nextTurnNumber ?? 0;
}

function unknown(turnId: string, why: string): NotFoundError {
  return new NotFoundError(`there is no turn "${turnId}": ${why}`, { details: { turnId } });
}

/** Whether `turnIdOf` returns this text for its agent and number, because a turn has only one id. */
function isTurnId(turnId: string): boolean {
  const number = numberOfTurn(turnId);
  return Number.isSafeInteger(number) && number >= 1 && turnIdOf(agentOfTurn(turnId), number) === turnId;
}
