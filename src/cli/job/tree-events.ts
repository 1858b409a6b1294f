import type { Runtime } from "../../runtime/index.ts";
import { parseCursor, type TroupeEvent, type AgentRecord, DEFAULT_TENANT, statusOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { allAgents } from "./find-agent.ts";

/** A tree of agents, in this process or in others. */
interface TreeSource {
  readonly runtime: Pick<Runtime, "subscribe" | "follow">;
  readonly rootAgentId: string;
  readonly isElsewhere: boolean;
}

/**
 * Calls the listener with each new event of one tree until the returned function is called. Events of agents in other
 * processes are read from the store, after the cursor `after`.
 */
export function listenToTree(
  { runtime, rootAgentId, isElsewhere }: TreeSource,
  listener: (event: TroupeEvent) => void,
  after?: string,
): () => void {
  if (!isElsewhere) {
    const subscription = runtime.subscribe((event) => {
      if (event.rootAgentId === rootAgentId) listener(event);
    });
    return () => subscription.unsubscribe();
  }
  const controller = new AbortController();
  const { signal } = controller;
  const read = async (): Promise<void> => {
    for await (const event of runtime.follow(rootAgentId, { after, signal })) {
      if (signal.aborted) return;
      listener(event);
    }
  };
  // If the store fails, the awaited turn reports it; missed events are read again at the end.
  read().catch(() => {});
  return () => controller.abort();
}

/** Resolves when no agent of a paused tree has an open call, so that leaving does not discard a paid answer. */
export async function treeAtRest(stores: Stores, source: TreeSource): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let hasNews = true;
  let isLooking = false;

  async function look(): Promise<void> {
    if (isLooking) return;
    isLooking = true;
    try {
      while (hasNews) {
        hasNews = false;
        const records = await allAgents(stores, { tenant: DEFAULT_TENANT, rootAgentId: source.rootAgentId });
        if (records.every(isAtRest)) return resolve();
      }
    } catch (error) {
      reject(error);
    } finally {
      isLooking = false;
    }
  }

  const stopListening = listenToTree(source, ({ cursor }) => {
    if (cursor === null) return;
    hasNews = true;
    void look();
  });
  try {
    void look();
    await promise;
  } finally {
    stopListening();
  }
}

function isAtRest(agent: AgentRecord): boolean {
  return agent.openTurnId === null || statusOf(agent) === "paused";
}

/**
 * Forwards events in order, each durable one once. They come from the journal for the past, from the runtime for the
 * present, and at the end again from the journal for missed events.
 */
export class EventFeed {
  readonly #listener: (event: TroupeEvent) => void;
  #last: EventPosition | undefined;

  constructor(listener: (event: TroupeEvent) => void) {
    this.#listener = listener;
  }

  /** Marks events as already shown. */
  skip(events: readonly TroupeEvent[]): void {
    for (const event of events) this.#isNew(event);
  }

  push(event: TroupeEvent): void {
    if (this.#isNew(event)) this.#listener(event);
  }

  #isNew({ cursor }: TroupeEvent): boolean {
    if (cursor === null) return true;
    const place = parseCursor(cursor);
    if (place === undefined) return true;
    if (this.#last !== undefined && compare(place, this.#last) <= 0) return false;
    this.#last = place;
    return true;
  }
}

type EventPosition = NonNullable<ReturnType<typeof parseCursor>>;

function compare(left: EventPosition, right: EventPosition): number {
  return left.row - right.row || left.seq - right.seq || left.index - right.index;
}
