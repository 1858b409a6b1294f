import { portRule, reading } from "../base/index.ts";
import { eventsOfRow, type Runtime } from "../runtime/index.ts";
import { type AgentRecord, parseCursor, type TroupeEvent } from "../state/index.ts";
import type { Stores } from "../stores/index.ts";

/** What logs and traces need of a runtime. */
export type EventFeed = Pick<Runtime, "subscribe">;

/** Throws `InvalidInputError` for what nothing can be heard of. */
export function assertRuntime(runtime: unknown, of: string, methods: readonly string[] = ["subscribe"]): void {
  reading(of, () => portRule("a runtime, as createRuntime() makes it", methods)(runtime, `${of}: its runtime`));
}

/** The rule of an option that takes a redactor. */
export const redactorRule = portRule("a redactor, for instance createRedactor()", ["text", "value", "message"]);

/** Something that listens to a runtime until it is closed. */
export interface Telemetry {
  /** Resolves when all that was heard so far is written. */
  flush(): Promise<void>;
  /** Listens no more, and flushes. Call it before the runtime is shut down where it reads the store. */
  close(): Promise<void>;
}

/** Warns of the first fault only: one that lasts would be told for every event. */
export function warnOnce(what: string): (error: unknown) => void {
  let isTold = false;
  return (error) => {
    if (isTold) return;
    isTold = true;
    process.emitWarning(`${what}: ${error instanceof Error ? error.message : String(error)}`, {
      code: "TROUPE_TELEMETRY",
    });
  };
}

/** Listens without ever harming who is listened to. The returned function ends it. */
export function listen(feed: EventFeed, what: string, listener: (event: TroupeEvent) => void): () => void {
  const warn = warnOnce(`${what} could not take an event`);
  const subscription = feed.subscribe((event) => {
    try {
      listener(event);
    } catch (error) {
      warn(error);
    }
  });
  return () => subscription.unsubscribe();
}

interface TreeFeedOptions {
  /** For warnings: "the session file". */
  readonly what: string;
  /** Whether this durable event says anything at all. */
  readonly isConcerned: (event: TroupeEvent) => boolean;
  /** Asked of the first event of a tree that is not known: whether what came before it is needed. */
  readonly needsPast: (event: TroupeEvent) => boolean;
  /** What the journal has before the first event, all of it. */
  readonly onPast: (rootAgentId: string, events: readonly TroupeEvent[]) => Promise<void> | void;
  readonly onEvent: (event: TroupeEvent) => Promise<void> | undefined;
}

interface Tree {
  readonly queue: TroupeEvent[];
  isRunning: boolean;
}

/**
 * Gives each tree's durable events one after the other; first, where that is asked for, what the journal holds of the tree
 * from before this process took it up.
 * Owns: what waits for a journal that is being read. Events come at once, in the call that publishes them, unless
 * something before them takes time.
 */
export class TreeFeed {
  readonly #source: JournalSource;
  readonly #options: TreeFeedOptions;
  readonly #trees = new Map<string, Tree>();
  readonly #work = new Set<Promise<void>>();
  readonly #warn: (error: unknown) => void;
  readonly #stop: () => void;

  constructor(source: JournalSource & EventFeed, options: TreeFeedOptions) {
    this.#source = source;
    this.#options = options;
    this.#warn = warnOnce(`${options.what} could not take an event`);
    this.#stop = listen(source, options.what, (event) => this.#push(event));
  }

  /** Begins anew with the tree when the next of its events comes. False while something of it is under way or waits. */
  forget(rootAgentId: string): boolean {
    const tree = this.#trees.get(rootAgentId);
    return tree !== undefined && !tree.isRunning && tree.queue.length === 0 && this.#trees.delete(rootAgentId);
  }

  stop(): void {
    this.#stop();
  }

  async flush(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work);
  }

  #push(event: TroupeEvent): void {
    if (event.cursor === null || !this.#options.isConcerned(event)) return;
    const { rootAgentId } = event;
    const known = this.#trees.get(rootAgentId);
    const tree: Tree = known ?? { queue: [], isRunning: false };
    tree.queue.push(event);
    if (!known) {
      this.#trees.set(rootAgentId, tree);
      if (this.#options.needsPast(event)) {
        this.#track(tree, this.#loadPast(event));
        return;
      }
    }
    if (!tree.isRunning) this.#run(tree);
  }

  async #loadPast({ rootAgentId, cursor }: TroupeEvent): Promise<void> {
    const events: TroupeEvent[] = [];
    for await (const event of eventsInJournal(this.#source, rootAgentId, cursor ?? undefined)) {
      if (this.#options.isConcerned(event)) events.push(event);
    }
    await this.#options.onPast(rootAgentId, events);
  }

  #run(tree: Tree): void {
    for (let event = tree.queue.shift(); event; event = tree.queue.shift()) {
      try {
        const work = this.#options.onEvent(event);
        if (work) {
          this.#track(tree, work);
          return;
        }
      } catch (error) {
        this.#warn(error);
      }
    }
  }

  /** What comes meanwhile waits; afterwards it goes on, whether or not the work succeeded. */
  #track(tree: Tree, work: Promise<void>): void {
    tree.isRunning = true;
    const settled = this.#settle(tree, work);
    this.#work.add(settled);
    void settled.then(() => this.#work.delete(settled));
  }

  async #settle(tree: Tree, work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#warn(error);
    }
    tree.isRunning = false;
    this.#run(tree);
  }
}

/** Where a tree is kept; a `Runtime` is one. */
export interface JournalSource {
  readonly stores: Stores;
  readonly tenant: string;
}

const ROWS_AT_A_TIME = 200;

/** The durable events of a tree that its journal holds now, in order; up to but not with the event at `before`. */
export async function* eventsInJournal(
  { stores, tenant }: JournalSource,
  rootAgentId: string,
  before?: string,
): AsyncGenerator<TroupeEvent, void, undefined> {
  const sources = new Map<string, AgentRecord>();
  for (let cursor = 0; ; ) {
    const rows = await stores.readTree(tenant, rootAgentId, cursor, ROWS_AT_A_TIME);
    for (const row of rows) {
      for (const event of await eventsOfRow(stores, tenant, row, sources)) {
        if (before !== undefined && !isBefore(event, before)) return;
        yield event;
      }
      cursor = row.cursor;
    }
    if (rows.length < ROWS_AT_A_TIME) return;
  }
}

function isBefore(event: TroupeEvent, cursor: string): boolean {
  const [one, other] = [parseCursor(event.cursor ?? ""), parseCursor(cursor)];
  if (!one || !other) return false;
  return one.row - other.row < 0 || (one.row === other.row && (one.seq - other.seq || one.index - other.index) < 0);
}
