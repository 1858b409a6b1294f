import { createHash } from "node:crypto";
import { createId, faultPoint, shortHash, wordsOfThrown } from "../../base/index.ts";
import { type Budget, limitsOf } from "../../budget/index.ts";
import {
  AgentBusyError,
  AlreadyOwnedError,
  InvalidInputError,
  NotFoundError,
  TransientError,
  TroupeError,
} from "../../errors/index.ts";
import type { AgentRecord, Schedule, ScheduledRun } from "../../state/index.ts";
import { knownDefinition, rootIdentity } from "../core/root-agents.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";
import { AgentHandle } from "../handles/agent-handle.ts";
import { startElsewhere } from "../handles/agent-lifecycle.ts";

/** From this number of queued turns or inputs on, the agent counts as busy even if its schedule queues turns. */
const MOST_QUEUED = 100;

/** A time in a form that ids may contain: `20270301T090000Z`. */
export function compactTime(at: number): string {
  return new Date(at)
    .toISOString()
    .replaceAll(/[-:]|\.000/g, "")
    .replace(".", "");
}

/** A time of a schedule, or with `key` a run besides its times. */
export type RunTime = Pick<ScheduledRun, "at" | "key">;

/** The id of the agent of that run. */
export function agentOfRun({ key, agentId }: Pick<Schedule, "key" | "agentId">, run: RunTime): string {
  return agentId ?? `${key}-${run.key === undefined ? compactTime(run.at) : shortHash(run.key)}`;
}

/** The key of the turn of that run. Whichever process opens it, and however often, the agent has one turn with this key. */
export function turnKeyOfRun({ key }: Pick<Schedule, "key">, run: RunTime): string {
  return `schedule:${key}@${run.key === undefined ? new Date(run.at).toISOString() : shortHash(run.key)}`;
}

/** What came of one run, and whether this call opened the turn. */
export interface OpenedRun {
  readonly run: ScheduledRun;
  readonly isNew: boolean;
  /** Whether an open turn was given the input. */
  readonly isSteered?: boolean | undefined;
}

/** The schedule after a run: it counts the inputs that it has given to the same open turn. */
export function withSteered(schedule: Schedule, { run, isNew, isSteered = false }: OpenedRun): Schedule {
  const { turnId } = run;
  if (!isSteered || !isNew || turnId === null) return schedule;
  const count = schedule.steered?.turnId === turnId ? schedule.steered.count : 0;
  return { ...schedule, steered: { turnId, count: count + 1 } };
}

/**
 * Opens the turn of one run, or finds it opened. A process that is killed anywhere in between leaves the same call to another one. Rejects
 * with errors after which the same call may succeed later; all others make the run `failed`.
 */
export async function openRun(core: RuntimeCore, schedule: Schedule, time: RunTime): Promise<OpenedRun> {
  const agentId = agentOfRun(schedule, time);
  const of = { ...time, agentId } as const;
  const handled = (): number => core.clock.now();
  try {
    const opened = await openScheduledTurn(core, schedule, time);
    if (opened === "busy") return { run: { ...of, handledAt: handled(), outcome: "busy", turnId: null }, isNew: false };
    const { turnId, isNew, isSteered } = opened;
    return { run: { ...of, handledAt: handled(), outcome: "opened", turnId }, isNew, isSteered };
  } catch (error) {
    if (mayStillSucceed(error)) throw error;
    const message = wordsOfThrown(error);
    return { run: { ...of, handledAt: handled(), outcome: "failed", turnId: null, message }, isNew: false };
  }
}

/** `AlreadyOwnedError`: another process starts the agent at this moment, or died while it did. */
function mayStillSucceed(error: unknown): boolean {
  return error instanceof TransientError || error instanceof AlreadyOwnedError || !(error instanceof TroupeError);
}

async function openScheduledTurn(
  core: RuntimeCore,
  schedule: Schedule,
  time: RunTime,
): Promise<{ readonly turnId: string; readonly isNew: boolean; readonly isSteered?: boolean } | "busy"> {
  const { input, actorId, budget } = schedule;
  const limits = budget === null ? null : limitsOf(budget as Budget);
  const key = core.keyOf(agentOfRun(schedule, time));
  const record = await startedAgent(core, schedule, key.agentId);
  const text = turnKeyOfRun(schedule, time);
  // The key is the whole meaning: a schedule that was changed after it had opened the turn does not open another one.
  const turn = {
    input,
    actorId,
    limits,
    key: { text, hash: createHash("sha256").update(text).digest("hex") },
  } as const;
  const ifBusy = whenBusy(schedule, record);
  const now = core.clock.now();
  const outcome =
    ifBusy === "steer"
      ? await core.stores.steer(key, { steerId: `input ${createId()}`, turn }, now)
      : await core.stores.openTurn(key, { ...turn, ifBusy }, now);
  faultPoint("schedule.opened");
  switch (outcome.type) {
    case "busy":
      return "busy";
    case "posted":
      // The open turn has its own credentials. If it ends without the input, the input opens the next turn, which needs some.
      resumeAuthOfInput(core, key.agentId, text, actorId);
      core.notify(outcome.posted);
      return { turnId: outcome.turnId, isNew: true, isSteered: true };
    case "opened":
    case "queued":
      await resumeAuth(core, key.agentId, outcome.turnId, actorId);
      core.notify(outcome.posted);
      return { turnId: outcome.turnId, isNew: true };
    case "known":
      // The process that opened it may have died before it could notify the agent's owner.
      core.notify([key.agentId]);
      return { turnId: outcome.turnId, isNew: false };
    case "conflict":
      throw new InvalidInputError(`turn ${outcome.turnId} of agent "${key.agentId}" already has the key "${text}"`);
    case "notFound":
      throw new NotFoundError(`agent "${key.agentId}" was deleted`);
    default:
      throw new AlreadyOwnedError(`agent "${key.agentId}" was shut down at this moment`);
  }
}

/** What happens if the agent has an open turn: beyond a number of turns or inputs, the time is left out. */
function whenBusy({ ifBusy, steered }: Schedule, record: AgentRecord): "refuse" | "queue" | "steer" | "supersede" {
  if (ifBusy === "skip" || record.queuedTurnIds.length >= MOST_QUEUED) return "refuse";
  // A turn may wait for a person for days.
  const isFull = ifBusy === "steer" && steered?.turnId === record.openTurnId && steered.count >= MOST_QUEUED;
  return isFull ? "refuse" : ifBusy;
}

/** The agent, created and started unless it is. */
async function startedAgent(core: RuntimeCore, schedule: Schedule, agentId: string): Promise<AgentRecord> {
  const definition = knownDefinition(core, schedule.definition, `schedule "${schedule.key}"`);
  const { ownerId, sessionId, metadata } = schedule;
  const identity = { ...rootIdentity(core, definition, agentId), ownerId, sessionId, metadata };
  const { record } = await core.stores.createAgent(identity, null, { definition: definition.stored });
  faultPoint("schedule.created");
  if (record.definition.name !== definition.name) {
    throw new InvalidInputError(
      `agent "${agentId}" exists with definition "${record.definition.name}", not "${definition.name}"`,
    );
  }
  // A handle of this process may have shut it down.
  if (record.status === "shutdown" && core.part.role === "all") await new AgentHandle(core, record).start();
  else if (record.status === "created" || record.status === "shutdown") await start(core, agentId);
  return record;
}

async function start(core: RuntimeCore, agentId: string): Promise<void> {
  try {
    await startElsewhere(core, core.keyOf(agentId));
  } catch (error) {
    // Another process has started it meanwhile, and opened its turn.
    if (!(error instanceof AgentBusyError)) throw error;
  }
}

/** Gets the credentials of a turn that this process is going to run. Without them, tools that need them ask again. */
async function resumeAuth(core: RuntimeCore, agentId: string, turnId: string, actorId: string | null): Promise<void> {
  if (actorId === null || core.part.role !== "all") return;
  const holder = await core.stores.holder(core.keyOf(agentId));
  if (holder && holder.process.processId !== core.processId) return;
  try {
    await core.auth.resume({ agentId }, { actorId, turnId });
  } catch (error) {
    process.emitWarning(`resolveAuth failed for the scheduled turn ${turnId}: ${wordsOfThrown(error)}`);
  }
}

/** Gets the credentials of the turn that an input opens, should the open turn end without it. */
function resumeAuthOfInput(core: RuntimeCore, agentId: string, key: string, actorId: string | null): void {
  if (actorId === null) return;
  core
    .steered(agentId, key)
    .then(({ status, turnId }) => (status === "queued" ? resumeAuth(core, agentId, turnId, actorId) : undefined))
    // This process shuts down, or the stores have lost the input.
    .catch(() => undefined);
}
