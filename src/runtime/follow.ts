import { createDeferred } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type AgentRecord, type EventCursor, parseCursor, type TroupeEvent } from "../state/index.ts";
import type { Stores } from "../stores/index.ts";
import type { EventBus } from "./event-bus.ts";
import { eventsOfRow } from "./row-events.ts";
import type { FollowOptions } from "./types.ts";

const ROWS_AT_A_TIME = 200;

export interface FollowSource {
  readonly stores: Stores;
  readonly bus: EventBus;
  readonly tenant: string;
  /** Called when another process may have written to the tree; the returned function ends it. */
  onForeignWrite(listener: () => void): () => void;
  /** Aborted when the runtime has been shut down: nothing more comes. */
  readonly closed: AbortSignal;
}

/**
 * Durable events of one tree in the order of its journal, from any cursor, without gap or double; live deltas in
 * between. The journal is read for every durable event: what a client sees is what is committed. It ends when the
 * runtime is shut down; a client goes on in another process after the last cursor it has.
 */
export async function* followTree(
  source: FollowSource,
  rootAgentId: string,
  options: FollowOptions,
): AsyncGenerator<TroupeEvent, void, undefined> {
  const { stores, bus, tenant, closed } = source;
  const { signal } = options;
  let position = startOf(options.after);
  const queue: (TroupeEvent | "look")[] = ["look"];
  let arrived = createDeferred();
  const push = (item: TroupeEvent | "look"): void => {
    if (item !== "look" || queue.at(-1) !== "look") queue.push(item);
    arrived.resolve();
  };
  const stopListening = bus.listen((event) => push(event.cursor === null ? event : "look"), rootAgentId);
  const stopWatching = source.onForeignWrite(() => push("look"));
  const onAbort = (): void => arrived.resolve();
  signal?.addEventListener("abort", onAbort, { once: true });
  closed.addEventListener("abort", onAbort, { once: true });
  const sources = new Map<string, AgentRecord>();
  try {
    while (!signal?.aborted) {
      const item = queue.shift();
      if (item === undefined) {
        if (closed.aborted) return;
        arrived = createDeferred();
        if (queue.length === 0 && !signal?.aborted && !closed.aborted) await arrived.promise;
      } else if (item !== "look") {
        yield item;
      } else {
        for (;;) {
          const rows = await stores.readTree(tenant, rootAgentId, position.row - 1, ROWS_AT_A_TIME);
          for (const row of rows) {
            for (const event of await eventsOfRow(stores, tenant, row, sources)) {
              if (isAfter(event, position)) yield event;
            }
            position = { row: row.cursor + 1, seq: 0, index: -1 };
          }
          if (rows.length < ROWS_AT_A_TIME) break;
        }
      }
    }
  } catch (error) {
    // The stores go with their runtime.
    if (!closed.aborted) throw error;
  } finally {
    stopListening();
    stopWatching();
    signal?.removeEventListener("abort", onAbort);
    closed.removeEventListener("abort", onAbort);
  }
}

function startOf(after: string | undefined): EventCursor {
  if (after === undefined) return { row: 1, seq: 0, index: -1 };
  const cursor = parseCursor(after);
  if (cursor) return cursor;
  throw new InvalidInputError(
    `"${after}" is not a cursor; take the cursor of an event, or leave it out to begin at the start`,
  );
}

function isAfter(event: TroupeEvent, position: EventCursor): boolean {
  const at = parseCursor(event.cursor ?? "");
  if (!at) return false;
  if (at.row !== position.row) return at.row > position.row;
  return at.seq !== position.seq ? at.seq > position.seq : at.index > position.index;
}
