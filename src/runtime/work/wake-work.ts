import { createDeferred } from "../../base/index.ts";
import {
  AlreadyOwnedError,
  type CorruptRecordError,
  LeaseLostError,
  NotFoundError,
  StoreUnavailableError,
} from "../../errors/index.ts";
import type { DeadCause, JobOutcome, JobRun, WakeJob } from "../../queues/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { Rest } from "../residence/residence.ts";

/** How often an agent that is lost here for a fault is taken up again by the same job. */
const MOST_LOSSES = 3;

export interface WakePlace {
  readonly stores: Stores;
  readonly tenant: string;
  readonly processId: string;
  readonly clock: { now(): number; elapsed(): number };
  readonly definitions: ReadonlyMap<string, unknown>;
  readonly live: {
    readonly isLeaving: boolean;
    readonly isClosing: boolean;
    present(key: AgentKey): Promise<Activation | undefined>;
    activateUnlessShutDown(key: AgentKey): Promise<Activation | undefined>;
    drainInbox(activation: Activation): Promise<number>;
    leaveAtSafePoint(activation: Activation, cut: AbortSignal): Promise<boolean>;
    readonly passivation: { isPinned(key: AgentKey): boolean; rest(activation: Activation): Promise<Rest> };
  };
  readonly damage: {
    found(agentId: string, error: unknown): void;
    of(agentId: string): CorruptRecordError | undefined;
  };
  notify(agentIds: readonly string[]): void;
}

/**
 * Takes an agent up for which something came, and sees it through until it has nothing to do or only waits.
 *
 * Invariants
 * 1. Another living process that has the agent hears of the post itself; what came is in the inbox, whoever looks.
 * 2. One that nobody here can run is left to another worker: the job is tried again.
 * 3. A worker that leaves hands the agent on as it stands between two steps; one that has nothing to do is not woken for it.
 * 4. One of which a stored record cannot be read is given back as it is: it goes on when the record was mended.
 */
export async function runWake(place: WakePlace, { tenant, agentId }: WakeJob, run: JobRun): Promise<JobOutcome> {
  if (tenant !== place.tenant) {
    throw new StoreUnavailableError(`agent "${agentId}" is of tenant "${tenant}"; this worker is of "${place.tenant}"`);
  }
  const key = { tenant, agentId };
  for (let losses = 0; ; losses += 1) {
    if (place.live.isClosing || place.live.isLeaving || run.leaving.aborted) return "again";
    const activation = await takenUp(place, key);
    if (!activation) return "done";
    if (place.live.passivation.isPinned(key)) return "done";
    const rest = await untilRest(place, activation, run);
    if (rest === "left") return (await hasMore(place.stores, key).catch(() => true)) ? "again" : "done";
    if (rest === "waits") return "done";
    const holder = await place.stores.holder(key);
    if (holder?.process.processId !== place.processId) return "done";
    // It is nobody else's and does not live here: it was given up for a fault.
    const damage = place.damage.of(agentId);
    if (damage) {
      await place.stores.release(key, holder.epoch, { as: "leaving", steady: place.clock.elapsed() });
      throw damage;
    }
    if (losses >= MOST_LOSSES) {
      throw new LeaseLostError(`agent "${agentId}" could not be carried on: it was given up ${losses + 1} times`);
    }
  }
}

/** Whether an agent that was given back has an open turn, or something lies in its inbox. */
export async function hasMore(stores: Pick<Stores, "readAgent" | "inbox">, key: AgentKey): Promise<boolean> {
  const record = await stores.readAgent(key);
  return record !== undefined && (record.openTurnId !== null || (await stores.inbox(key)).length > 0);
}

/** The agent as it lives here from now on; undefined where another process has it, or nobody can have it. */
async function takenUp({ stores, live, damage }: WakePlace, key: AgentKey): Promise<Activation | undefined> {
  const present = await live.present(key);
  if (present) {
    await live.drainInbox(present);
    return present;
  }
  try {
    return await live.activateUnlessShutDown(key);
  } catch (error) {
    damage.found(key.agentId, error);
    if (error instanceof AlreadyOwnedError) return undefined;
    // One that is not there at all is nobody's; one whose definition is not known here is another worker's.
    if (error instanceof NotFoundError && !(await stores.readAgent(key))) return undefined;
    if (!(error instanceof NotFoundError || error instanceof LeaseLostError)) throw error;
    throw new StoreUnavailableError(error.message, { cause: error });
  }
}

async function untilRest({ live }: WakePlace, activation: Activation, run: JobRun): Promise<Rest | "left"> {
  const { leaving, signal } = run;
  const left = createDeferred<"left">();
  const onLeaving = (): void => {
    live.leaveAtSafePoint(activation, signal).then(
      () => left.resolve("left"),
      (error: unknown) => left.reject(error),
    );
  };
  leaving.addEventListener("abort", onLeaving, { once: true });
  if (leaving.aborted) onLeaving();
  try {
    const rest = await Promise.race([live.passivation.rest(activation), left.promise]);
    return leaving.aborted ? await left.promise : rest;
  } finally {
    leaving.removeEventListener("abort", onLeaving);
  }
}

/**
 * Tells an agent that it ended its workers too often, or could not be carried on: its turn is stopped, and nothing of it is
 * tried again. One whose definition is not known here keeps its turn: a worker that knows it may yet be started.
 */
export async function onDeadWake(place: WakePlace, job: WakeJob, cause: DeadCause): Promise<void> {
  const { stores, clock, tenant, definitions } = place;
  const { agentId } = job;
  // Its record is left as it is.
  if (place.damage.of(agentId)) return;
  if (job.tenant !== tenant || (cause.code !== "worker_died" && cause.code !== "failed")) return;
  const key = { tenant, agentId };
  const record = await stores.readAgent(key);
  if (!record || record.openTurnId === null) return;
  if (cause.code === "failed" && !definitions.has(record.definition.name)) return;
  const reason = `the turn was given up: ${cause.message}`;
  const command = { turnId: record.openTurnId, by: "runtime", reason, stopReason: "error" } as const;
  const outcome = await stores.abort(key, command, clock.now());
  if (outcome.type !== "notFound") place.notify(outcome.posted);
}
