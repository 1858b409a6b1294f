import {
  backoffDelay,
  type Clock,
  createDeferred,
  type Deferred,
  faultPoint,
  holdProcess,
  processContext,
  wordsOfThrown,
} from "../../base/index.ts";
import { TurnInterruptedError } from "../../errors/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type Projection, projectionsOf } from "./projection-kinds.ts";
import { checkProjections, type Projections } from "../doors/projection-stores.ts";
import type { RuntimeOptions } from "../doors/runtime-types.ts";

/** How long `shutdown()` waits for the user's stores, in milliseconds. */
const CLOSE_MS = 5_000;

export interface ProjectorOptions {
  readonly projections: Projections;
  /** The durable ones. */
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: () => number;
}

/** Undefined without projections. Throws `InvalidInputError` for a store that lacks a required method. */
export function createProjector(
  { projections, random = Math.random }: Pick<RuntimeOptions, "projections" | "random">,
  dependencies: Pick<ProjectorOptions, "stores" | "tenant" | "clock">,
): Projector | undefined {
  if (!projections) return undefined;
  checkProjections(projections);
  return new Projector({ ...dependencies, projections, random });
}

/**
 * Keeps the user's own stores up to date with the journal.
 * Owns: which trees are behind, and which failures were reported. Does not own: noticing changes; callers report them.
 *
 * Invariants
 * 1. A failing projection breaks no turn and delays no other projection and no other tree.
 * 2. A store that fails is reported once, until it has recovered.
 */
export class Projector implements ProjectionDependencies {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly #projections: readonly Projection[];
  /** Runs of the trees that are being worked on. */
  readonly #runs = new Map<string, readonly ProjectionRun[]>();
  readonly #failing = new Map<Projection, Set<string>>();
  #isClosed = false;

  constructor({ projections, stores, tenant, clock, random }: ProjectorOptions) {
    this.stores = stores;
    this.tenant = tenant;
    this.clock = clock;
    this.random = random;
    this.#projections = projectionsOf(projections, stores, tenant);
  }

  /** Checks the tree for new rows. */
  look(rootAgentId: string): void {
    if (this.#isClosed) return;
    for (const run of this.#runsOf(rootAgentId)) run.look();
  }

  /** Checks the trees of these agents for new rows. */
  lookAtAll(agents: readonly { readonly rootAgentId: string }[]): void {
    for (const rootAgentId of new Set(agents.map((agent) => agent.rootAgentId))) this.look(rootAgentId);
  }

  /** Resolves when everything that is now committed of the tree is written. */
  async projected(rootAgentId: string): Promise<void> {
    if (this.#isClosed) return;
    await Promise.all(this.#runsOf(rootAgentId).map((run) => run.projected()));
  }

  /** Tries due writes once more, for at most `CLOSE_MS`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const closed = new AbortController();
    const runs = [...this.#runs.values()].flat();
    const late = this.clock.sleep(CLOSE_MS, closed.signal);
    await Promise.race([Promise.all(runs.map((run) => run.close())), late]);
    closed.abort();
    for (const run of runs) run.giveUp();
  }

  onFailure({ projection, rootAgentId }: ProjectionRun, error: unknown): void {
    const failing = this.#failing.get(projection) ?? new Set();
    this.#failing.set(projection, failing);
    if (failing.size === 0) {
      process.emitWarning(
        `the ${projection.words} could not be written, and will be tried again: ${wordsOfThrown(error)}`,
      );
    }
    failing.add(rootAgentId);
  }

  onSuccess(run: ProjectionRun): void {
    this.#failing.get(run.projection)?.delete(run.rootAgentId);
    // Later, because the run is idle only when the current pass has returned.
    setImmediate(() => this.#forgetIdle(run.rootAgentId));
  }

  #runsOf(rootAgentId: string): readonly ProjectionRun[] {
    const known = this.#runs.get(rootAgentId);
    if (known) return known;
    const runs = this.#projections.map((projection) => new ProjectionRun(projection, rootAgentId, this));
    this.#runs.set(rootAgentId, runs);
    return runs;
  }

  #forgetIdle(rootAgentId: string): void {
    if (this.#runs.get(rootAgentId)?.every((run) => run.isIdle)) this.#runs.delete(rootAgentId);
  }
}

const ROWS_AT_A_TIME = 200;

/** The owner of the runs: their environment, and where failures are counted. */
export interface ProjectionDependencies {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: () => number;
  onFailure(run: ProjectionRun, error: unknown): void;
  onSuccess(run: ProjectionRun): void;
}

/**
 * Brings one projection of one tree up to date.
 * Owns: its passes, and the waiters for them. Does not own: the stored cursor, or how rows are written.
 *
 * Invariants
 * 1. One pass at a time. Rows committed before a look are written when the pass after it has ended.
 * 2. The cursor moves after the write, so no row is missed; a write whose cursor was not stored is repeated.
 * 3. A failed pass is repeated with growing delays, until it succeeds or the runtime is shut down.
 */
export class ProjectionRun {
  readonly projection: Projection;
  readonly rootAgentId: string;
  readonly #dependencies: ProjectionDependencies;
  #waiters: Deferred<void>[] = [];
  #isDue = false;
  #passes: Promise<void> | undefined;
  readonly #closing = new AbortController();
  #isOver = false;

  constructor(projection: Projection, rootAgentId: string, dependencies: ProjectionDependencies) {
    this.projection = projection;
    this.rootAgentId = rootAgentId;
    this.#dependencies = dependencies;
  }

  get isIdle(): boolean {
    return this.#passes === undefined;
  }

  look(): void {
    this.#isDue = true;
    // What it copies belongs to others than those who have it look.
    if (!this.#isOver) this.#passes ??= processContext.run(() => this.#run());
  }

  /** Resolves when everything that is now committed is written. */
  async projected(): Promise<void> {
    const waiter = createDeferred();
    this.#waiters.push(waiter);
    this.look();
    // The process must be held, because a retry waits only for the clock, which does not keep it running.
    const letGo = holdProcess();
    try {
      await waiter.promise;
    } finally {
      letGo();
    }
  }

  /** Resolves when due writes were tried once more. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#passes;
  }

  /** Rejects all waiters, because the stores are being closed. */
  giveUp(): void {
    this.#isOver = true;
    this.#reject();
  }

  async #run(): Promise<void> {
    for (let failures = 0; this.#isDue && !this.#isOver; ) {
      this.#isDue = false;
      const waiters = this.#waiters;
      this.#waiters = [];
      try {
        await this.#pass();
        failures = 0;
        this.#dependencies.onSuccess(this);
        for (const waiter of waiters) waiter.resolve();
      } catch (error) {
        failures += 1;
        this.#isDue = true;
        this.#waiters.unshift(...waiters);
        if (!this.#isOver) this.#dependencies.onFailure(this, error);
        if (this.#closing.signal.aborted) break;
        await this.#pause(failures);
      }
    }
    // Cleared before anything else can run, so that a later look starts a new run.
    this.#passes = undefined;
    if (this.#closing.signal.aborted) this.#reject();
  }

  async #pass(): Promise<void> {
    const { stores, tenant } = this.#dependencies;
    const { name } = this.projection;
    let cursor = await stores.projectionCursor(tenant, name, this.rootAgentId);
    for (;;) {
      const rows = await stores.readTree(tenant, this.rootAgentId, cursor, ROWS_AT_A_TIME);
      for (const step of this.projection.steps(rows)) {
        await step.write();
        faultPoint("projection.written");
        await stores.moveProjection(tenant, name, this.rootAgentId, step.through);
        cursor = step.through;
      }
      if (rows.length < ROWS_AT_A_TIME) return;
    }
  }

  async #pause(failures: number): Promise<void> {
    const { clock, random } = this.#dependencies;
    // close() ends the pause.
    await clock.sleep(backoffDelay(failures, random()), this.#closing.signal).catch(() => undefined);
  }

  #reject(): void {
    const error = new TurnInterruptedError("this runtime was shut down; what is left is written at the next start");
    for (const waiter of this.#waiters) waiter.reject(error);
    this.#waiters = [];
  }
}
