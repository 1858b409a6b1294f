import type { AgentKey } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import {
  AlreadyOwnedError,
  type CorruptRecordError,
  LeaseLostError,
  NotFoundError,
  StoreUnavailableError,
} from "../../errors/index.ts";
import type { DeadCause, JobOutcome, JobRun, WakeJob } from "../../queues/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { Rest } from "../../machines/index.ts";
import type { ToolJobDependencies } from "./tool-jobs.ts";

/** How many times one job activates an agent again after it was given up because of a fault in this process. */
const MOST_LOSSES = 3;

export interface WakeDependencies
  extends Pick<ToolJobDependencies, "stores" | "tenant" | "processId" | "clock" | "definitions" | "live" | "notify"> {
  readonly damage: {
    found(agentId: string, error: unknown): void;
    of(agentId: string): CorruptRecordError | undefined;
  };
}

/**
 * Activates an agent that has items, and keeps its job until the agent is idle or only waits.
 *
 * Invariants
 * 1. If another living process owns the agent, that process is notified of the post, so this one does nothing.
 * 2. An agent that this process cannot run is left to another worker: the job is tried again.
 * 3. A worker that leaves hands the agent over between two steps. An idle agent is not woken for that.
 * 4. An agent with an unreadable stored record is released unchanged: it continues when the record is repaired.
 */
export async function runWake(
  dependencies: WakeDependencies,
  { tenant, agentId }: WakeJob,
  run: JobRun,
): Promise<JobOutcome> {
  if (tenant !== dependencies.tenant) {
    throw new StoreUnavailableError(
      `agent "${agentId}" is of tenant "${tenant}"; this worker is of "${dependencies.tenant}"`,
    );
  }
  const key = { tenant, agentId };
  for (let losses = 0; ; losses += 1) {
    if (dependencies.live.isClosing || dependencies.live.isLeaving || run.leaving.aborted) {
      return await leftFor(dependencies.stores, key);
    }
    const activation = await activated(dependencies, key);
    if (!activation) return "done";
    if (dependencies.live.passivation.isPinned(key)) return "done";
    const rest = await untilRest(dependencies, activation, run);
    if (rest === "left") return await leftFor(dependencies.stores, key);
    if (rest === "waits") return "done";
    const holder = await dependencies.stores.holder(key);
    if (holder?.process.processId !== dependencies.processId) return "done";
    // No other process owns it, and it is not active here, so it was given up because of a fault.
    const damage = dependencies.damage.of(agentId);
    if (damage) {
      await dependencies.stores.release(key, holder.epoch, { as: "leaving", steady: dependencies.clock.elapsed() });
      throw damage;
    }
    if (losses >= MOST_LOSSES) {
      throw new LeaseLostError(`agent "${agentId}" could not be continued: it was given up ${losses + 1} times`);
    }
  }
}

/** Whether another worker must take the job. If the stores do not answer, the other worker checks. */
async function leftFor(stores: WakeDependencies["stores"], key: AgentKey): Promise<JobOutcome> {
  return (await hasMore(stores, key).catch(() => true)) ? "again" : "done";
}

/** Whether a released agent has an open turn or items in its inbox. */
export async function hasMore(stores: Pick<Stores, "readAgent" | "inbox">, key: AgentKey): Promise<boolean> {
  const record = await stores.readAgent(key);
  return record !== undefined && (record.openTurnId !== null || (await stores.inbox(key)).length > 0);
}

/** The agent's activation in this process; `undefined` if another process owns the agent, or it cannot be activated. */
async function activated({ stores, live, damage }: WakeDependencies, key: AgentKey): Promise<Activation | undefined> {
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
    // An agent that does not exist needs no worker; one with an unknown definition needs another worker.
    if (error instanceof NotFoundError && !(await stores.readAgent(key))) return undefined;
    if (!(error instanceof NotFoundError || error instanceof LeaseLostError)) throw error;
    throw new StoreUnavailableError(error.message, { cause: error });
  }
}

async function untilRest({ live }: WakeDependencies, activation: Activation, run: JobRun): Promise<Rest | "left"> {
  const { leaving, signal } = run;
  const left = Promise.withResolvers<"left">();
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
 * Aborts the turn of an agent that has killed its workers too often or could not continue; no part of it is retried. An agent
 * with an unknown definition keeps its turn, because a worker that knows the definition may still be started.
 */
export async function onDeadWake(dependencies: WakeDependencies, job: WakeJob, cause: DeadCause): Promise<void> {
  const { stores, clock, tenant, definitions } = dependencies;
  const { agentId } = job;
  // Damaged records are not changed.
  if (dependencies.damage.of(agentId)) return;
  if (job.tenant !== tenant || (cause.code !== "worker_died" && cause.code !== "failed")) return;
  const key = { tenant, agentId };
  const record = await stores.readAgent(key);
  if (!record || record.openTurnId === null) return;
  if (cause.code === "failed" && !definitions.has(record.definition.name)) return;
  const reason = `the turn was given up: ${cause.message}`;
  const command = { turnId: record.openTurnId, by: "runtime", reason, stopReason: "error" } as const;
  const outcome = await stores.abort(key, command, clock.now());
  if (outcome.type !== "notFound") dependencies.notify(outcome.posted);
}
