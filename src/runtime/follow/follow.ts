import { InvalidInputError } from "../../errors/index.ts";
import { type EventCursor, parseCursor, type TroupeEvent } from "../../state/index.ts";
import { followOptionsOf, textOfCaller, unknownTree } from "../doors/agent-doors.ts";
import { type FollowSource, type Reading, TreeStream } from "./tree-stream.ts";
import type { FollowOptions } from "../doors/types.ts";
import type { WaitingHold } from "./waiting-hold.ts";

export type { FollowSource } from "./tree-stream.ts";

/**
 * Durable events of one tree in the order of its journal, from any cursor, without gap or double; what is live in
 * between. The journal is read for every durable event: what a client sees is what is committed. It ends when the
 * runtime is shut down; a client goes on in another process after the last cursor it has.
 */
export async function* followTree(
  source: FollowSource,
  rootAgentId: string,
  { after, signal, hold }: Reading,
): AsyncGenerator<TroupeEvent, void, undefined> {
  const stream = new TreeStream(source, rootAgentId, { from: startOf(after), signal, hold });
  try {
    yield* stream.events();
  } catch (error) {
    // The stores go with their runtime.
    if (!source.closed.aborted) throw error;
  } finally {
    stream.close();
  }
}

/** As a caller asks for it: the tree has to be there. Throws at the first event that is asked for. */
export async function* followKnown(
  source: FollowSource & { readonly waiting: WaitingHold },
  rootAgentId: string,
  given?: FollowOptions,
): AsyncGenerator<TroupeEvent, void, undefined> {
  const agentId = textOfCaller(rootAgentId, "runtime.follow(): the id of the tree's root");
  const options = followOptionsOf(given);
  startOf(options.after);
  try {
    const record = source.closed.aborted
      ? undefined
      : await source.stores.readAgent({ tenant: source.tenant, agentId });
    if (source.closed.aborted) return;
    if (record?.rootAgentId !== agentId) throw unknownTree(agentId);
  } catch (error) {
    // The stores go with their runtime.
    if (source.closed.aborted) return;
    throw error;
  }
  yield* followTree(source, agentId, { ...options, hold: source.waiting.begin });
}

function startOf(after: string | undefined): EventCursor | undefined {
  const cursor = after === undefined ? undefined : parseCursor(after);
  if (after === undefined || cursor) return cursor;
  throw new InvalidInputError(
    `"${after}" is not a cursor; take the cursor of an event, or leave it out to begin at the start`,
  );
}
