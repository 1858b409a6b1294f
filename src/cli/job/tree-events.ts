import type { Runtime } from "../../runtime/index.ts";
import { parseCursor, type TroupeEvent, type AgentRecord, DEFAULT_TENANT, statusOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { allAgents } from "./find-agent.ts";

/** Where the agents of a tree live: in this process, or in others that only the store tells of. */
interface TreeSource {
  readonly runtime: Pick<Runtime, "subscribe" | "follow">;
  readonly rootAgentId: string;
  readonly isElsewhere: boolean;
}

/**
 * Tells the events of one tree from now on, until the returned function is called. Those of agents elsewhere come from the
 * journal after the cursor, and what is being written at the moment as it comes.
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
  // A store that fails shows in the turn that is awaited; what was missed meanwhile is read again at the end.
  read().catch(() => {});
  return () => controller.abort();
}

/**
 * Resolves when a paused tree has come to rest: no agent of it has a call in flight any more, so that leaving cuts off
 * no answer that is being paid for.
 */
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
 * Hands events on, the durable ones in order and each once, whatever way they come: those of the past from the journal,
 * those of now from the runtime, and at the end from the journal again, should one have been missed.
 */
export class EventFeed {
  readonly #listener: (event: TroupeEvent) => void;
  #last: EventPlace | undefined;

  constructor(listener: (event: TroupeEvent) => void) {
    this.#listener = listener;
  }

  /** Events that somebody else has shown already. */
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

type EventPlace = NonNullable<ReturnType<typeof parseCursor>>;

function compare(left: EventPlace, right: EventPlace): number {
  return left.row - right.row || left.seq - right.seq || left.index - right.index;
}
