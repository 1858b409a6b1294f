import { backoffDelay, type Clock, faultPoint, holdProcess, processContext, wordsOfThrown } from "../../base/index.ts";
import { TurnInterruptedError } from "../../errors/index.ts";
import { agentOfTurn, type JournalRow, rootOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type Projection, projectionsOf } from "./projection-kinds.ts";
import { TreeTurns, type TreeTurnsOptions } from "./tree-turns.ts";
import { checkProjections, type Projections } from "../api/projection-stores.ts";
import type { RuntimeOptions } from "../api/runtime-types.ts";

/** How long `shutdown()` waits for the user's stores, in milliseconds. */
const CLOSE_MS = 5_000;
/**
 * Number of trees at rest whose open turns are remembered. For other trees the actor is read, and `resolveAuth` called, again.
 */
const REMEMBERED_TREES = 1_000;

export interface ProjectorOptions {
  readonly projections: Projections;
  /** The durable stores. */
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: () => number;
  /** Credentials of open turns; called when the first tree is processed, so the runtime may create them later. */
  readonly auth: () => TreeTurnsOptions["auth"];
}

/** `undefined` without projections. Throws `InvalidInputError` for a store that lacks a required method. */
export function createProjector(
  { projections, random = Math.random }: Pick<RuntimeOptions, "projections" | "random">,
  dependencies: Pick<ProjectorOptions, "stores" | "tenant" | "clock" | "auth">,
): Projector | undefined {
  if (!projections) return undefined;
  checkProjections(projections);
  return new Projector({ ...dependencies, projections, random });
}

/** A tree being processed, or at rest with open turns. */
interface ProjectedTree {
  readonly runs: readonly ProjectionRun[];
  readonly turns: TreeTurns;
}

/**
 * Keeps the user's own stores up to date with the journal.
 * Owns: which trees are behind, and which failures were reported. Does not own: detecting changes; callers report them.
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
  readonly #auth: ProjectorOptions["auth"];
  /** In order of coming to rest; the latest is last. */
  readonly #trees = new Map<string, ProjectedTree>();
  readonly #failing = new Map<Projection, Set<string>>();
  #isClosed = false;

  constructor({ projections, stores, tenant, clock, random, auth }: ProjectorOptions) {
    this.stores = stores;
    this.tenant = tenant;
    this.clock = clock;
    this.random = random;
    this.#auth = auth;
    this.#projections = projectionsOf(projections, stores, tenant);
  }

  /** Checks the tree for new rows. */
  look(rootAgentId: string): void {
    if (this.#isClosed) return;
    for (const run of this.#treeOf(rootAgentId).runs) run.look();
  }

  /** Checks the trees of these agents for new rows. */
  lookAtAll(agents: readonly { readonly rootAgentId: string }[]): void {
    for (const rootAgentId of new Set(agents.map((agent) => agent.rootAgentId))) this.look(rootAgentId);
  }

  /** Resolves when all rows of the tree that are committed now are written. */
  async projected(rootAgentId: string): Promise<void> {
    if (this.#isClosed) return;
    await Promise.all(this.#treeOf(rootAgentId).runs.map((run) => run.projected()));
  }

  /**
   * Keeps the credentials of a turn that has ended in this process until its writes are done. Call it after the commit's `look()`
   * and before `TurnAuth` drops them: if no run of the tree is in progress then, the writes are done.
   */
  turnEnded(turnId: string): void {
    const tree = this.#trees.get(rootOf(agentOfTurn(turnId)));
    if (tree && !isIdle(tree)) tree.turns.ended(turnId);
  }

  /** Names of the user's stores that cannot delete. */
  get undeletable(): readonly string[] {
    return this.#projections.flatMap(({ name, remove }) => (remove ? [] : [name]));
  }

  async isCopied(rootAgentId: string, cursor: number): Promise<boolean> {
    const reached = this.#projections.map(({ name }) => this.stores.projectionCursor(this.tenant, name, rootAgentId));
    return (await Promise.all(reached)).every((one) => one >= cursor);
  }

  /** Deletes the copies of a tree that is not stored any more, after writes that are in progress. */
  async deleteTree(rootAgentId: string, agentIds: readonly string[]): Promise<void> {
    const tree = this.#trees.get(rootAgentId);
    await Promise.all(tree?.runs.map((run) => run.stop()) ?? []);
    tree?.turns.forgetAll();
    this.#trees.delete(rootAgentId);
    for (const { remove } of this.#projections) for (const agentId of agentIds) await remove?.(agentId);
  }

  /** Tries pending writes once more, for at most `CLOSE_MS`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const closed = new AbortController();
    const runs = [...this.#trees.values()].flatMap((tree) => tree.runs);
    const late = this.clock.sleep(CLOSE_MS, closed.signal);
    await Promise.race([Promise.all(runs.map((run) => run.close())), late]);
    closed.abort();
    for (const run of runs) run.giveUp();
    for (const { turns } of this.#trees.values()) turns.forgetAll();
  }

  onFailure({ projection, rootAgentId, turns }: ProjectionRun, error: unknown): void {
    const failing = this.#failing.get(projection) ?? new Set();
    this.#failing.set(projection, failing);
    if (failing.size === 0) {
      process.emitWarning(
        `the ${projection.words} could not be written and will be retried: ${turns.redact(wordsOfThrown(error))}`,
      );
    }
    failing.add(rootAgentId);
    turns.askAgain();
  }

  onSuccess(run: ProjectionRun): void {
    this.#failing.get(run.projection)?.delete(run.rootAgentId);
    // Deferred, because the run is idle only after the current pass has returned.
    setImmediate(() => this.#forgetIdle(run.rootAgentId));
  }

  #treeOf(rootAgentId: string): ProjectedTree {
    const known = this.#trees.get(rootAgentId);
    if (known) return known;
    const { stores, tenant } = this;
    const turns = new TreeTurns({ stores, tenant, auth: this.#auth() });
    const runs = this.#projections.map((projection) => new ProjectionRun({ projection, rootAgentId, turns }, this));
    const tree = { runs, turns };
    this.#trees.set(rootAgentId, tree);
    return tree;
  }

  #forgetIdle(rootAgentId: string): void {
    const tree = this.#trees.get(rootAgentId);
    if (!tree || !isIdle(tree)) return;
    tree.turns.forgetOver();
    this.#trees.delete(rootAgentId);
    if (!tree.turns.isEmpty) this.#remember(rootAgentId, tree);
  }

  /** Drops the tree that came to rest first if there are too many, because turns may also end in other processes. */
  #remember(rootAgentId: string, tree: ProjectedTree): void {
    this.#trees.set(rootAgentId, tree);
    if (this.#trees.size <= REMEMBERED_TREES) return;
    for (const [oldest, known] of this.#trees) {
      if (isIdle(known)) return void this.#trees.delete(oldest);
    }
  }
}

function isIdle({ runs }: ProjectedTree): boolean {
  return runs.every((run) => run.isIdle);
}

const ROWS_AT_A_TIME = 200;

/** The owner of the runs: their dependencies, and the counter of failures. */
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
  readonly turns: TreeTurns;
  readonly #dependencies: ProjectionDependencies;
  #waiters: PromiseWithResolvers<void>[] = [];
  #isDue = false;
  #passes: Promise<void> | undefined;
  readonly #closing = new AbortController();
  #isOver = false;

  constructor(
    { projection, rootAgentId, turns }: Pick<ProjectionRun, "projection" | "rootAgentId" | "turns">,
    dependencies: ProjectionDependencies,
  ) {
    this.projection = projection;
    this.rootAgentId = rootAgentId;
    this.turns = turns;
    this.#dependencies = dependencies;
  }

  get isIdle(): boolean {
    return this.#passes === undefined;
  }

  look(): void {
    this.#isDue = true;
    // Runs in no caller's context, because the copied rows belong to other callers.
    if (!this.#isOver) this.#passes ??= processContext.run(() => this.#run());
  }

  /** Resolves when all rows that are committed now are written. */
  async projected(): Promise<void> {
    const waiter = Promise.withResolvers<void>();
    this.#waiters.push(waiter);
    this.look();
    // Keeps the process alive, because a retry waits only for the clock, which does not.
    const letGo = holdProcess();
    try {
      await waiter.promise;
    } finally {
      letGo();
    }
  }

  /** Resolves when pending writes were tried once more. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#passes;
  }

  /** For a tree that was deleted: its waiters get what they wait for, because there is nothing left to write. */
  async stop(): Promise<void> {
    this.#isOver = true;
    this.#closing.abort();
    await this.#passes;
    for (const waiter of this.#waiters) waiter.resolve();
    this.#waiters = [];
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
    // Cleared before any other code can run, so that a later look starts a new run.
    this.#passes = undefined;
    if (this.#closing.signal.aborted && !this.#isOver) this.#reject();
  }

  async #pass(): Promise<void> {
    const { stores, tenant } = this.#dependencies;
    const { name } = this.projection;
    let cursor = await stores.projectionCursor(tenant, name, this.rootAgentId);
    for (;;) {
      const rows = await stores.readTree(tenant, this.rootAgentId, cursor, ROWS_AT_A_TIME);
      this.turns.note(rows);
      for (const step of this.projection.steps(rows, this.turns)) {
        await step.write();
        faultPoint("projection.written");
        const isStored = await stores.moveProjection(tenant, name, this.rootAgentId, step.through);
        if (!isStored) return await this.#removeAgain(rows);
        cursor = step.through;
      }
      this.turns.passed(rows);
      if (rows.length < ROWS_AT_A_TIME) return;
    }
  }

  /** The tree was deleted during a write, perhaps after another process had deleted the copies. */
  async #removeAgain(rows: readonly JournalRow[]): Promise<void> {
    for (const agentId of new Set(rows.map((row) => row.agentId))) await this.projection.remove?.(agentId);
  }

  async #pause(failures: number): Promise<void> {
    const { clock, random } = this.#dependencies;
    // close() ends the pause.
    await clock.sleep(backoffDelay(failures, random()), this.#closing.signal).catch(() => undefined);
  }

  #reject(): void {
    const error = new TurnInterruptedError(
      "this runtime was shut down; the remaining rows are written at the next start",
    );
    for (const waiter of this.#waiters) waiter.reject(error);
    this.#waiters = [];
  }
}
