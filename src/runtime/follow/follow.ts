import { holdProcess } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type EventCursor, parseCursor, type TroupeEvent } from "../../state/index.ts";
import { followOptionsOf, textOfCaller, unknownTree } from "../doors/agent-doors.ts";
import type { FollowOptions } from "../doors/runtime-types.ts";
import { type FollowSource, TreeStream } from "./tree-stream.ts";

/**
 * `runtime.follow()`: the durable events of one tree in the order of its journal, from any cursor, without gap or double, and
 * the live ones in between. It ends when the runtime is shut down; a client goes on in another process after the last
 * cursor it has. Throws at the first event that is asked for: `NotFoundError` where no such tree is stored.
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
    // The stores are closed with their runtime.
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
 * Keeps the process from ending by itself while somebody waits here for what can still come.
 *
 * In stores that other processes share it can always come: somebody decides a request, a worker ends the turn. In the memory of
 * this process alone it comes from work here, which holds the process itself; where there is none, Node says so (exit code 13).
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
