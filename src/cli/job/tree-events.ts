import type { Runtime } from "../../runtime/index.ts";
import type { TroupeEvent } from "../../state/index.ts";

/** Where the agents of a tree live: in this process, or in others that only the store tells of. */
export interface TreeSource {
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
