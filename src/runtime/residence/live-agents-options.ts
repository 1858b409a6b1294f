import type { InspectionEvent } from "xstate";
import type { AgentDefinition } from "../../agents/index.ts";
import type { Clock } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import type { StoreUnavailableError } from "../../errors/index.ts";
import type { PriceBook } from "../../model/index.ts";
import type { EntryOf, Timer } from "../../state/index.ts";
import type { Committed, ProcessIdentity } from "../../stores/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { AuthBook } from "../agent/turn-auth.ts";
import type { EventBus } from "../follow/event-bus.ts";
import type { LiveBroadcast } from "../follow/live-broadcast.ts";
import type { Part } from "../doors/roles.ts";
import type { UnsavedTrees } from "../unsaved/unsaved-trees.ts";

/** What the live agents of a process are given, and whom they tell. */
export interface LiveAgentsOptions {
  readonly stores: UnsavedTrees;
  readonly part: Part;
  readonly tenant: string;
  readonly clock: Clock;
  readonly prices: PriceBook;
  readonly random: () => number;
  readonly leaseMs: number;
  readonly process: ProcessIdentity;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly bus: EventBus;
  /** Shows what is not stored. */
  readonly broadcast: LiveBroadcast;
  readonly auth: AuthBook;
  readonly onInspect: ((agentId: string, event: InspectionEvent) => void) | undefined;
  readonly restoreAfterCommit: boolean;
  /** Timers that a commit has set. */
  onTimers(timers: readonly Timer[]): void;
  onActivated(activation: Activation): void;
  onCommitted(activation: Activation, outcome: Committed): void;
  /** With the accounts that its commit changed, where they are known. */
  onTurnEnded(activation: Activation, entry: EntryOf<"turn.ended">, accounts: readonly Account[]): void;
  onRest(activation: Activation): void;
  onResumed(activation: Activation): void;
  /** The stores do not take now what it has done. */
  onRefused(activation: Activation, error: StoreUnavailableError): void;
  /** An agent cannot be carried on here: what it has done can never be stored, or what is stored of it cannot be read. */
  onFailed(agentId: string, cause: unknown): void;
}
