import type { TroupeEvent } from "../state/index.ts";
import { type EventFeed, listen, warnOnce } from "./listen.ts";
import { eventsInJournal, type JournalSource } from "./read-events.ts";

export interface TreeFeedOptions {
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
