import type { FactParts } from "../../actors/index.ts";
import { createId } from "../../base/index.ts";
import type { AgentRequest, Entry, Message, OwnedFields, SteerItem, Timer } from "../../state/index.ts";
import type { Batch, BudgetMove, NewArtifact, Post, SpawnOrder, WakeOrder } from "../../stores/index.ts";

/** Everything appended since the last batch was taken. */
export class PendingBatch {
  readonly entries: Entry[] = [];
  readonly messages: Message[] = [];
  readonly artifacts: NewArtifact[] = [];
  readonly moves: BudgetMove[] = [];
  readonly spawns: SpawnOrder[] = [];
  readonly posts: Post[] = [];
  readonly acknowledged: string[] = [];
  timers: Timer[] = [];
  readonly clearedTimers: string[] = [];
  wake: WakeOrder | undefined;
  readonly deferred: SteerItem[] = [];
  leaves = false;
  readonly requests: AgentRequest[] = [];
  readonly closedRequests: string[] = [];
  cleared: Batch["cleared"] = null;
  owned: OwnedFields | null = null;
  closedTurnId: string | null = null;
  definition: Batch["definition"];

  get isEmpty(): boolean {
    const hasWork = this.entries.length + this.acknowledged.length + this.clearedTimers.length + this.moves.length > 0;
    return !hasWork && this.owned === null && this.closedTurnId === null;
  }

  add(entry: Entry, parts?: FactParts): void {
    this.entries.push(entry);
    if (!parts) return;
    if (parts.messages) this.messages.push(...parts.messages);
    if (parts.artifacts) this.artifacts.push(...parts.artifacts);
    if (parts.moves) this.moves.push(...parts.moves);
    if (parts.posts) this.posts.push(...parts.posts);
    if (parts.requests) this.requests.push(...parts.requests);
    if (parts.closedRequests) this.closedRequests.push(...parts.closedRequests);
    if (parts.timers) this.timers.push(...parts.timers);
    for (const timerId of parts.clearedTimers ?? []) this.clearTimer(timerId);
    this.wake ??= parts.wake;
    this.definition ??= parts.definition;
  }

  /** Removes it from this batch's own timers too, because a batch clears timers before it sets them. */
  clearTimer(timerId: string): void {
    this.clearedTimers.push(timerId);
    this.timers = this.timers.filter(({ id }) => id !== timerId);
  }

  toBatch({ key, epoch, processId }: Pick<Batch, "key" | "epoch" | "processId">, expectedSeq: number): Batch {
    const { entries, messages, artifacts, moves, spawns, posts, acknowledged, timers, clearedTimers } = this;
    const { wake, deferred, leaves, requests, closedRequests, cleared, owned, closedTurnId, definition } = this;
    const begun = { id: createId(), key, epoch, processId, expectedSeq, entries, messages, artifacts, moves, spawns };
    const rest = {
      posts,
      acknowledged,
      timers,
      clearedTimers,
      wake,
      deferred,
      leaves,
      requests,
      closedRequests,
      cleared,
    };
    return { ...begun, ...rest, owned, closedTurnId, definition };
  }
}
