import {
  backoffDelay,
  type Clock,
  createDeferred,
  type Deferred,
  faultPoint,
  holdProcess,
  wordsOfThrown,
} from "../../base/index.ts";
import { TurnInterruptedError } from "../../errors/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type Projection, projectionsOf } from "./projection-kinds.ts";
import { checkProjections, type Projections } from "../doors/projection-stores.ts";
import type { RuntimeOptions } from "../doors/runtime-types.ts";

/** How long `shutdown()` waits for stores of the user's, in milliseconds. */
const CLOSE_MS = 5_000;

export interface ProjectorOptions {
  readonly projections: Projections;
  /** The durable ones. */
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: () => number;
}

/** Undefined where there are none. Throws `InvalidInputError` for a store that lacks what will be called. */
export function createProjector(
  { projections, random = Math.random }: Pick<RuntimeOptions, "projections" | "random">,
  place: Pick<ProjectorOptions, "stores" | "tenant" | "clock">,
): Projector | undefined {
  if (!projections) return undefined;
  checkProjections(projections);
  return new Projector({ ...place, projections, random });
}

/**
 * Keeps the user's own stores up to date with the journal (row L11).
 * Owns: which trees are behind, what is reported. Does not own: when trees change: it is told.
 *
 * Invariants
 * 1. A failing projection breaks no turn and holds up no other projection, and no other tree.
 * 2. A store that fails is reported once, until it has recovered.
 */
export class Projector implements ProjectionPlace {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly #projections: readonly Projection[];
  /** Trees that are being worked on. */
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

  /** Something of the tree may be new. */
  look(rootAgentId: string): void {
    if (this.#isClosed) return;
    for (const run of this.#runsOf(rootAgentId)) run.look();
  }

  /** Something of these agents' trees may be new. */
  lookAtAll(agents: readonly { readonly rootAgentId: string }[]): void {
    for (const rootAgentId of new Set(agents.map((agent) => agent.rootAgentId))) this.look(rootAgentId);
  }

  /** Resolves when everything that is committed of the tree now is written. */
  async projected(rootAgentId: string): Promise<void> {
    if (this.#isClosed) return;
    await Promise.all(this.#runsOf(rootAgentId).map((run) => run.projected()));
  }

  /** Tries what is due once more, for a bounded time. */
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
    // After the pass that this is the end of.
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

/** Whom runs belong to: their surroundings, and where failures are counted. */
export interface ProjectionPlace {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: () => number;
  onFailure(run: ProjectionRun, error: unknown): void;
  onSuccess(run: ProjectionRun): void;
}

/**
 * Brings one projection of one tree up to date.
 * Owns: its passes, and those who wait for them. Does not own: the cursor, which is stored, or what rows mean.
 *
 * Invariants
 * 1. One pass at a time. What was committed before a look is written when the pass that follows it has ended.
 * 2. The cursor moves after the write, so nothing is ever missing; what was written and not noted is written again.
 * 3. A pass that fails is repeated, later and later, until it succeeds or the runtime is shut down.
 */
export class ProjectionRun {
  readonly projection: Projection;
  readonly rootAgentId: string;
  readonly #place: ProjectionPlace;
  #waiters: Deferred<void>[] = [];
  #isDue = false;
  #passes: Promise<void> | undefined;
  readonly #closing = new AbortController();
  #isOver = false;

  constructor(projection: Projection, rootAgentId: string, place: ProjectionPlace) {
    this.projection = projection;
    this.rootAgentId = rootAgentId;
    this.#place = place;
  }

  get isIdle(): boolean {
    return this.#passes === undefined;
  }

  look(): void {
    this.#isDue = true;
    if (!this.#isOver) this.#passes ??= this.#run();
  }

  /** Resolves when everything that is committed now is written. */
  async projected(): Promise<void> {
    const waiter = createDeferred();
    this.#waiters.push(waiter);
    this.look();
    // A retry waits for the clock only, which keeps no process alive.
    const letGo = holdProcess();
    try {
      await waiter.promise;
    } finally {
      letGo();
    }
  }

  /** Resolves when what is due was tried once more. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#passes;
  }

  /** Nobody waits for it any longer: the stores are being closed. */
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
        this.#place.onSuccess(this);
        for (const waiter of waiters) waiter.resolve();
      } catch (error) {
        failures += 1;
        this.#isDue = true;
        this.#waiters.unshift(...waiters);
        if (!this.#isOver) this.#place.onFailure(this, error);
        if (this.#closing.signal.aborted) break;
        await this.#pause(failures);
      }
    }
    // Here and not later: a look that comes from now on begins anew.
    this.#passes = undefined;
    if (this.#closing.signal.aborted) this.#reject();
  }

  async #pass(): Promise<void> {
    const { stores, tenant } = this.#place;
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
    const { clock, random } = this.#place;
    // close() ends the pause.
    await clock.sleep(backoffDelay(failures, random()), this.#closing.signal).catch(() => undefined);
  }

  #reject(): void {
    const error = new TurnInterruptedError("this runtime was shut down; what is left is written at the next start");
    for (const waiter of this.#waiters) waiter.reject(error);
    this.#waiters = [];
  }
}
