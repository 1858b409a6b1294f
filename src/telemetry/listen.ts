import { portRule, reading } from "../base/index.ts";
import { eventsOfRow, type Runtime } from "../runtime/index.ts";
import { type AgentRecord, parseCursor, type TroupeEvent } from "../state/index.ts";
import type { Stores } from "../stores/index.ts";

/** The part of a runtime that logs and traces use. */
export type EventFeed = Pick<Runtime, "subscribe">;

/** Throws `InvalidInputError` unless the value is a runtime. */
export function assertRuntime(runtime: unknown, of: string, methods: readonly string[] = ["subscribe"]): void {
  reading(of, () =>
    portRule("a runtime, such as the result of createRuntime()", methods)(runtime, `${of}: its runtime`),
  );
}

/** The rule for a redactor option. */
export const redactorRule = portRule("a redactor, for instance createRedactor()", ["text", "value", "message"]);

/** A listener of a runtime, until it is closed. */
export interface Telemetry {
  /** Resolves when all events so far are written. */
  flush(): Promise<void>;
  /** Stops listening, and flushes. Call it before the runtime is shut down if it reads the store. */
  close(): Promise<void>;
}

/** Warns only of the first fault, because a lasting fault would repeat with every event. */
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

/** Subscribes a listener whose errors become a warning. The returned function unsubscribes it. */
export function listen(feed: EventFeed, what: string, listener: (event: TroupeEvent) => void): () => void {
  const warn = warnOnce(`${what} could not process an event`);
  const tell = (event: TroupeEvent): void => {
    try {
      listener(event);
    } catch (error) {
      warn(error);
    }
  };
  // Telemetry must not change how models are called.
  const subscription = feed.subscribe(tell, { streams: false });
  return () => subscription.unsubscribe();
}

interface TreeFeedOptions {
  /** Name for warnings: "the session file". */
  readonly what: string;
  /** Whether a durable event is relevant. */
  readonly isConcerned: (event: TroupeEvent) => boolean;
  /** Called with the first event of an unknown tree; returns whether the earlier events are needed. */
  readonly needsPast: (event: TroupeEvent) => boolean;
  /** Receives all events that the journal has before the first one. */
  readonly onPast: (rootAgentId: string, events: readonly TroupeEvent[]) => Promise<void> | void;
  readonly onEvent: (event: TroupeEvent) => Promise<void> | undefined;
}

interface Tree {
  readonly queue: TroupeEvent[];
  isRunning: boolean;
}

/**
 * Delivers the durable events of each tree one after the other, if needed after the earlier ones from its journal.
 * Owns: the queue of events while a journal is read or an earlier event is processed. Other events are delivered in the
 * call that publishes them.
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
    this.#warn = warnOnce(`${options.what} could not process an event`);
    this.#stop = listen(source, options.what, (event) => this.#push(event));
  }

  /** Removes a tree; its next event adds it again. Returns false while its events are queued or processed. */
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

  /** Queues new events until the work has settled. */
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

/** Stores with a tenant, such as a `Runtime`. */
export interface JournalSource {
  /** The stores with the journal. */
  readonly stores: Stores;
  /** The tenant of the agents. */
  readonly tenant: string;
}

const ROWS_AT_A_TIME = 200;

/** The durable events of a tree from its journal, in order, before the one at `before`. */
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
