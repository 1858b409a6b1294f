import { InvalidInputError } from "../../errors/index.ts";
import { cursorText, type EventCursor, parseCursor, type TroupeEvent } from "../../state/index.ts";
import { followOptionsOf, textOfCaller, unknownTree } from "../api/agent-options.ts";
import type { FollowOptions, TreeSnapshot } from "../api/runtime-types.ts";
import { type FollowSource, TreeStream } from "./tree-stream.ts";
import type { WaitingHold } from "./turn-handle.ts";

type TreeSource = FollowSource & { readonly waiting: Pick<WaitingHold, "begin"> };

/**
 * `runtime.follow()`: the durable events of one tree in journal order from any cursor, without gaps or duplicates, with live
 * events in between. It ends when the runtime is shut down; a client continues in another process after its last cursor. The
 * first event rejects with `NotFoundError` if no such tree is stored.
 */
export function followTree(
  source: TreeSource,
  rootAgentId: string,
  given?: FollowOptions,
): AsyncGenerator<TroupeEvent, void, undefined> {
  const asked = askedOf(source, rootAgentId, given);
  // Rejects with the error of the first event.
  asked.catch(() => undefined);
  return eventsFrom(source, asked);
}

interface Asked {
  readonly agentId: string;
  /** `undefined` to follow from the beginning. */
  readonly from: EventCursor | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Reads the current cursor immediately: "now" is the time of the call, not of the first event. */
async function askedOf(source: TreeSource, rootAgentId: string, given?: FollowOptions): Promise<Asked> {
  const agentId = textOfCaller(rootAgentId, "runtime.follow(): the id of the tree's root");
  const { after, signal } = followOptionsOf(given);
  if (after !== "now" || source.closed.aborted) return { agentId, from: startOf(after), signal };
  const { cursor } = await headOf(source, agentId);
  return { agentId, from: startOf(cursor), signal };
}

async function* eventsFrom(source: TreeSource, asked: Promise<Asked>): AsyncGenerator<TroupeEvent, void, undefined> {
  const { stores, tenant, closed } = source;
  let start: Asked;
  try {
    start = await asked;
    const { agentId } = start;
    const record = closed.aborted ? undefined : await stores.readAgent({ tenant, agentId });
    if (closed.aborted) return;
    if (record?.rootAgentId !== agentId) throw unknownTree(agentId);
  } catch (error) {
    // Shutting down the runtime closes its stores.
    if (closed.aborted && !(error instanceof InvalidInputError)) return;
    throw error;
  }
  const { agentId, from, signal } = start;
  yield* new TreeStream(source, agentId, { from, signal, hold: source.waiting.begin }).events();
}

/** `runtime.head()`. Throws `NotFoundError` when no such tree is stored. */
export async function headOf(
  { stores, tenant }: Pick<TreeSource, "stores" | "tenant">,
  rootAgentId: string,
): Promise<TreeSnapshot> {
  const agentId = textOfCaller(rootAgentId, "runtime.head(): the id of the tree's root");
  const head = await stores.treeHead(tenant, agentId);
  if (!head) throw unknownTree(agentId);
  const { cursor, agents, accounts, openRequests: requests } = head;
  // A position before the next row: the last row may have no event.
  return { cursor: cursorText({ row: cursor + 1, seq: 0, index: 0 }), agents, accounts, requests };
}

function startOf(after: string | undefined): EventCursor | undefined {
  const cursor = after === undefined ? undefined : parseCursor(after);
  if (after === undefined || after === "now" || cursor) return cursor;
  throw new InvalidInputError(
    `"${after}" is not a cursor; use the cursor of an event or "now", or omit it to follow from the beginning`,
  );
}
