import { type Clock, withinTrace } from "../../base/index.ts";
import { type AgentKey, partsOfCall, rootOf } from "../../state/index.ts";
import type { DeadCause, Job, JobOutcome, JobRun, ToolJob, WakeJob } from "../../queues/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { DrainReport } from "../api/runtime-types.ts";
import { hasMore, onDeadWake, runWake, type WakeDependencies } from "./wakes.ts";
import { Reconciler, type Recovered } from "./reconciler.ts";
import type { Part } from "../api/roles.ts";
import { onDeadJob, runToolJob, type ToolJobDependencies } from "./tool-jobs.ts";

/** Maximum time before the end of a drain at which running work is cut off, in milliseconds. */
const LONGEST_NOTICE_MS = 2_000;

interface WorkerDependencies extends ToolJobDependencies, WakeDependencies {
  readonly part: Part;
  readonly random: () => number;
}

/**
 * The worker role of a process: it runs jobs, searches for unattended agents, and hands its own agents over when it leaves. Does
 * not own: the agents.
 */
export class Worker {
  readonly #dependencies: WorkerDependencies;
  readonly #part: Part;
  readonly #clock: Clock;
  readonly #reconciler: Reconciler;
  #toolJobs = 0;
  #running = 0;
  #wakes = 0;
  #rolledBack = 0;

  constructor(dependencies: WorkerDependencies) {
    const { part, clock, random, stores, tenant, processId, leaseMs, live, definitions } = dependencies;
    this.#dependencies = dependencies;
    this.#part = part;
    this.#clock = clock;
    stores.onRolledBack((found) => (this.#rolledBack += found.tenant === tenant ? 1 : 0));
    this.#reconciler = new Reconciler({
      stores,
      tenant,
      clock,
      random,
      processId,
      leaseMs,
      isKnown: (name) => definitions.has(name),
      isAttended: (key) => live.isShutDown(key) || live.get(key) !== undefined || !this.#concerns(key),
      // Local queues contain no wakes of other processes.
      areAwaited: async (keys) => (part.isDistributed ? await part.queues.awaited(keys) : []),
      attend: (key) => live.takeOver(key),
    });
  }

  /** Whether this process continues the agents of that tree when no other process does. */
  #concerns(key: AgentKey): boolean {
    const { live, part } = this.#dependencies;
    const root = rootOf(key.agentId);
    return part.recovers === "all" || live.passivation.keys().some(({ agentId }) => rootOf(agentId) === root);
  }

  get counted() {
    const unattended = this.#reconciler.count;
    return { toolJobs: this.#toolJobs, wakes: this.#wakes, unattended, rolledBack: this.#rolledBack };
  }

  /** Number of tool jobs that are currently running in this process. */
  get running(): number {
    return this.#running;
  }

  /** Activates every unattended agent of the store, or wakes it in another process. */
  recover(): Promise<Recovered> {
    return this.#reconciler.recover();
  }

  /** Starts taking jobs, unless this process has no jobs to run. */
  async start(): Promise<void> {
    const { role, queues, isDistributed, agents, toolQueues } = this.#part;
    if (this.#part.looksAfterOthers) this.#reconciler.start();
    const hasTools = Object.keys(toolQueues).length > 0;
    if (role === "client" || !(isDistributed || hasTools)) return;
    await queues.work({
      wakes: isDistributed
        ? {
            concurrency: agents,
            run: (job, run) => this.#wake(job, run),
            areNeeded: (keys) => this.#reconciler.areLeftBehind(keys),
          }
        : undefined,
      tools: hasTools ? { queues: toolQueues, run: (job, run) => this.#runTool(job, run) } : undefined,
      onDead: (job, cause) => this.#onDead(job, cause),
      onFault: (error) => (this.#dependencies.closed.aborted ? undefined : warn(error)),
    });
  }

  /** Stops searching for unattended agents. */
  stop(): void {
    this.#reconciler.close();
  }

  /**
   * Starts nothing new, and hands each agent over between two steps; work still running shortly before the end is cut off.
   * Resolves within the time limit.
   */
  async drain(timeoutMs: number): Promise<Pick<DrainReport, "left">> {
    const { live } = this.#dependencies;
    this.stop();
    live.beginLeaving();
    const cut = new AbortController();
    const notice = Math.min(LONGEST_NOTICE_MS, Math.floor(timeoutMs / 2));
    const cancel = this.#clock.setDelay(timeoutMs - notice, () => cut.abort());
    const done = new AbortController();
    const late = this.#clock.sleep(timeoutMs, done.signal);
    try {
      const jobs = this.#part.queues.drain({ timeoutMs }).catch((error: unknown) => {
        process.emitWarning(`the queues could not be drained: ${String(error)}`);
        return { left: 0 };
      });
      const left = new Set(live.all());
      const handedOver = Promise.all([this.#handOver(left, cut.signal), this.#leavePassive()]);
      // While there is time, leases are offered to stores that did not answer.
      await Promise.race([handedOver.then(() => live.offered()), late]);
      return { left: (await jobs).left + left.size };
    } finally {
      cancel();
      done.abort();
    }
  }

  /** Removes from `left` the agents that were handed over without being cut off. */
  async #handOver(left: Set<Activation>, cut: AbortSignal): Promise<void> {
    const { live, stores } = this.#dependencies;
    const outcomes = await Promise.allSettled(
      [...left].map(async (activation) => {
        const { key } = activation;
        const wasCut = await live.leaveAtSafePoint(activation, cut);
        // Processes that posted recently have relied on this process to handle the post.
        if (live.isOthers(key) && (await hasMore(stores, key))) await live.wake(key);
        if (!wasCut) left.delete(activation);
      }),
    );
    for (const outcome of outcomes) if (outcome.status === "rejected") warn(outcome.reason);
  }

  async #leavePassive(): Promise<void> {
    const { live, stores } = this.#dependencies;
    try {
      for (const key of await live.passivation.leave()) {
        if (live.isOthers(key) && (await hasMore(stores, key))) await live.wake(key);
      }
    } catch (error) {
      warn(error);
    }
  }

  async #wake(job: WakeJob, run: JobRun): Promise<JobOutcome> {
    try {
      return await runWake(this.#dependencies, job, run);
    } finally {
      this.#wakes += 1;
    }
  }

  async #runTool(job: ToolJob, run: JobRun): Promise<JobOutcome> {
    this.#running += 1;
    try {
      return await this.#within(job, () => runToolJob(this.#dependencies, job, run));
    } finally {
      this.#running -= 1;
      this.#toolJobs += 1;
    }
  }

  async #onDead(job: Job, cause: DeadCause): Promise<void> {
    if (job.kind === "wake") await onDeadWake(this.#dependencies, job, cause);
    else await this.#within(job, () => onDeadJob(this.#dependencies, job, cause));
  }

  /** Runs code in the async context of the turn, under the span of the call or turn in the process that owns the agent. */
  #within<T>({ callId, traceparent, tracestate }: ToolJob, work: () => T): T {
    const trace = traceparent === undefined ? undefined : { traceparent, tracestate };
    return this.#dependencies.contexts.of(partsOfCall(callId).turnId).run(() => withinTrace(trace, work));
  }
}

function warn(error: unknown): void {
  process.emitWarning(`queues: ${String(error)}`);
}
