import type { FactParts } from "../../actors/index.ts";
import { createId } from "../../base/index.ts";
import type { AgentRequest, Entry, Message, OwnedFields, Timer } from "../../state/index.ts";
import type { Batch, BudgetMove, NewArtifact, Post, SpawnOrder, WakeOrder } from "../../stores/index.ts";

/** What has been appended since the last batch was taken. */
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
  readonly requests: AgentRequest[] = [];
  readonly closedRequests: string[] = [];
  cleared: Batch["cleared"] = null;
  owned: OwnedFields | null = null;
  closedTurnId: string | null = null;

  get isEmpty(): boolean {
    const hasWork = this.entries.length + this.acknowledged.length + this.clearedTimers.length + this.moves.length > 0;
    return !hasWork && this.owned === null && this.closedTurnId === null;
  }

  add(entry: Entry, parts: FactParts = {}): void {
    this.entries.push(entry);
    if (parts.messages) this.messages.push(...parts.messages);
    if (parts.artifacts) this.artifacts.push(...parts.artifacts);
    if (parts.moves) this.moves.push(...parts.moves);
    if (parts.posts) this.posts.push(...parts.posts);
    if (parts.requests) this.requests.push(...parts.requests);
    if (parts.closedRequests) this.closedRequests.push(...parts.closedRequests);
    if (parts.timers) this.timers.push(...parts.timers);
    for (const timerId of parts.clearedTimers ?? []) this.clearTimer(timerId);
    this.wake ??= parts.wake;
  }

  /** Also one that this batch sets: a batch clears before it sets. */
  clearTimer(timerId: string): void {
    this.clearedTimers.push(timerId);
    this.timers = this.timers.filter(({ id }) => id !== timerId);
  }

  toBatch({ key, epoch, processId }: Pick<Batch, "key" | "epoch" | "processId">, expectedSeq: number): Batch {
    const { entries, messages, artifacts, owned, closedTurnId, moves, spawns, posts } = this;
    const { acknowledged, timers, clearedTimers, wake, requests, closedRequests, cleared } = this;
    return {
      id: createId(),
      key,
      epoch,
      processId,
      expectedSeq,
      entries,
      messages,
      artifacts,
      cleared,
      owned,
      requests,
      closedRequests,
      closedTurnId,
      moves,
      spawns,
      posts,
      acknowledged,
      ...(timers.length > 0 ? { timers } : {}),
      clearedTimers,
      ...(wake ? { wake } : {}),
    };
  }
}
