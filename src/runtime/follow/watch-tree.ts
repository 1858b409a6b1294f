import { type ForeignWrites, isTreeChanged, type Stores } from "../../stores/index.ts";
import { partsIn } from "./event-bus.ts";
import type { LivePart } from "./live-part.ts";
import type { FollowSource } from "./tree-stream.ts";

/** Listens to one tree for a reader of its journal. */
export interface TreeWatcher {
  /** Called when rows may have been written by this or another process. */
  readonly written: () => void;
  /** Called with pieces of answers while they are written: a reader drops pieces that it has, or whose end it has seen. */
  readonly live?: ((part: LivePart) => void) | undefined;
}

export interface TreeWatching {
  /** Requests all answers that are being written, because a piece was lost. */
  ask(): void;
  end(): void;
}

/** Watches a tree in a process that runs agents. */
export function watchTree(
  source: Pick<FollowSource, "bus" | "broadcast" | "tenant" | "onForeignWrite">,
  rootAgentId: string,
  { written, live }: TreeWatcher,
): TreeWatching {
  const { bus, broadcast, tenant } = source;
  const stopRows = bus.listenToRows(() => written(), rootAgentId);
  const stopWrites = source.onForeignWrite(ifChanged(tenant, rootAgentId, written));
  // A follower causes text to be sent while it is written, so this follows only if the watcher wants that text.
  const following = live && broadcast.follow(rootAgentId, live);
  const end = (): void => {
    stopRows();
    stopWrites();
    following?.end();
  };
  return { ask: () => following?.ask(), end };
}

export interface StoredTrees {
  readonly stores: Stores;
  readonly tenant: string;
  /** Identifies this reader among the processes of the stores. */
  readonly processId: string;
}

/** Watches a tree in a process that only reads the stores. */
export function watchStoredTree(
  { stores, tenant, processId }: StoredTrees,
  rootAgentId: string,
  { written, live }: TreeWatcher,
): TreeWatching {
  const stopWrites = stores.onForeignWrite(ifChanged(tenant, rootAgentId, written));
  const following = stores.live.follow({ tenant, rootAgentId, processId }, (message) => {
    for (const part of partsIn(message)) if (part.rootAgentId === rootAgentId) live?.(part);
  });
  const end = (): void => {
    stopWrites();
    following.end();
  };
  return { ask: () => following.ask(), end };
}

function ifChanged(tenant: string, agentId: string, written: () => void): (writes: ForeignWrites) => void {
  return (writes) => (isTreeChanged(writes, { tenant, agentId }) ? written() : undefined);
}
