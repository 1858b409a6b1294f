import { type Clock, wordsOfThrown } from "../../base/index.ts";
import type { Stores } from "../../stores/index.ts";
import { projectionsOf } from "./projection-kinds.ts";
import { type ProjectionPlace, ProjectionRun } from "./projection-run.ts";
import type { Projection } from "./projection-step.ts";
import { checkProjections, type Projections } from "../doors/projection-stores.ts";
import type { RuntimeOptions } from "../doors/types.ts";

/** How long `shutdown()` waits for stores of the user's, in milliseconds. */
const CLOSE_MS = 5_000;

export interface ProjectionDeskOptions {
  readonly projections: Projections;
  /** The durable ones. */
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: () => number;
}

/** Undefined where there are none. Throws `InvalidInputError` for a store that lacks what will be called. */
export function projectionDesk(
  { projections, random = Math.random }: Pick<RuntimeOptions, "projections" | "random">,
  place: Pick<ProjectionDeskOptions, "stores" | "tenant" | "clock">,
): ProjectionDesk | undefined {
  if (!projections) return undefined;
  checkProjections(projections);
  return new ProjectionDesk({ ...place, projections, random });
}

/**
 * Keeps the user's own stores up to date with the journal (row L11).
 * Owns: which trees are behind, what is reported. Does not own: when trees change: it is told.
 *
 * Invariants
 * 1. A failing projection breaks no turn and holds up no other projection, and no other tree.
 * 2. A store that fails is reported once, until it has recovered.
 */
export class ProjectionDesk implements ProjectionPlace {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly #projections: readonly Projection[];
  /** Trees that are being worked on. */
  readonly #runs = new Map<string, readonly ProjectionRun[]>();
  readonly #failing = new Map<Projection, Set<string>>();
  #isClosed = false;

  constructor({ projections, stores, tenant, clock, random }: ProjectionDeskOptions) {
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
