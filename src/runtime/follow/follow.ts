import { holdProcess } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type EventCursor, parseCursor, type TroupeEvent } from "../../state/index.ts";
import { followOptionsOf, textOfCaller, unknownTree } from "../doors/agent-doors.ts";
import type { FollowOptions } from "../doors/runtime-types.ts";
import { type FollowSource, TreeStream } from "./tree-stream.ts";

/**
 * `runtime.follow()`: the durable events of one tree in journal order from any cursor, without gaps or duplicates, with
 * live events in between. It ends when the runtime is shut down; a client continues in another process after its last
 * cursor. The first event rejects with `NotFoundError` when no such tree is stored.
 */
export async function* followTree(
  source: FollowSource & { readonly waiting: WaitingHold },
  rootAgentId: string,
  given?: FollowOptions,
): AsyncGenerator<TroupeEvent, void, undefined> {
  const agentId = textOfCaller(rootAgentId, "runtime.follow(): the id of the tree's root");
  const { after, signal } = followOptionsOf(given);
  const from = startOf(after);
  const { stores, tenant, closed } = source;
  try {
    const record = closed.aborted ? undefined : await stores.readAgent({ tenant, agentId });
    if (closed.aborted) return;
    if (record?.rootAgentId !== agentId) throw unknownTree(agentId);
  } catch (error) {
    // Shutting down the runtime closes its stores.
    if (closed.aborted) return;
    throw error;
  }
  yield* new TreeStream(source, agentId, { from, signal, hold: source.waiting.begin }).events();
}

function startOf(after: string | undefined): EventCursor | undefined {
  const cursor = after === undefined ? undefined : parseCursor(after);
  if (after === undefined || cursor) return cursor;
  throw new InvalidInputError(
    `"${after}" is not a cursor; take the cursor of an event, or leave it out to begin at the start`,
  );
}

/**
 * Keeps the process from exiting while a caller here waits for something that can still come.
 *
 * In shared stores it can always come, because another process may decide a request or end the turn. In the memory of
 * this process it comes only from work here, which holds the process itself; when there is none, Node reports that
 * (exit code 13).
 */
export class WaitingHold {
  readonly #isShared: boolean;

  constructor(isShared: boolean) {
    this.#isShared = isShared;
  }

  /** Holds the process until the returned function is called. */
  readonly begin = (): (() => void) => (this.#isShared ? holdProcess() : () => undefined);

  /** Holds the process until the work has settled. */
  until(work: Promise<unknown>): void {
    const end = this.begin();
    work.then(end, end);
  }
}
