import type { TurnMemory } from "../actors/index.ts";
import type { PriceBook } from "../model/index.ts";
import type { CallState, Entry, Lifecycle, Message, TurnState, WakingReport } from "../state/index.ts";
import type { ActorTree } from "./actor-tree.ts";
import type { Conversation } from "./conversation.ts";

/** A live agent as it can be read: where its machines stand, and what their ids stand for. */
export abstract class LiveView {
  readonly prices: PriceBook;

  constructor(prices: PriceBook) {
    this.prices = prices;
  }

  protected abstract readonly actors: ActorTree;
  abstract readonly conversation: Conversation;

  get lifecycle(): Lifecycle {
    return this.actors.lifecycle;
  }

  get isPausing(): boolean {
    return this.actors.isPausing;
  }

  get openTurnId(): string | null {
    return this.actors.context.openTurnId;
  }

  get openChildIds(): readonly string[] {
    return this.actors.context.openChildIds;
  }

  /** Children that go on by themselves, and whose end has not been reported. */
  get backgroundChildren() {
    return this.actors.context.background;
  }

  /** Reports since the last turn that call for one. */
  get waking(): readonly WakingReport[] {
    return this.actors.context.waking;
  }

  get turnEntries(): readonly Entry[] {
    return this.openTurnId === null ? [] : this.memory(this.openTurnId).entries;
  }

  /** The state values of all live machines. */
  values() {
    return this.actors.values(this.openTurnId);
  }

  turn(turnId: string): TurnState | undefined {
    return this.actors.turn(turnId);
  }

  call(turnId: string, callId: string): CallState | undefined {
    return this.actors.call(turnId, callId);
  }

  memory(turnId: string): TurnMemory {
    return this.conversation.memory(turnId);
  }

  /** What the model may see of the conversation. */
  history(): readonly Message[] {
    return this.conversation.viewOf(this.actors.context.compaction);
  }

  turnStart(): number | undefined {
    return this.conversation.turnStartOf(this.actors.context.compaction);
  }

  /** All of it. */
  archive(): readonly Message[] {
    return this.conversation.archive;
  }

  message(messageId: string): Message | undefined {
    return this.conversation.message(messageId);
  }
}
