import type { InspectionEvent } from "xstate";
import type { Host } from "../../actors/index.ts";
import type { AgentDefinition } from "../../agents/index.ts";
import { type Clock, deepFreeze, harmless } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import { AlreadyOwnedError, LeaseLostError, NotFoundError, type StoreUnavailableError } from "../../errors/index.ts";
import type { PriceBook } from "../../model/index.ts";
import type { AgentKey, EntryOf, Timer } from "../../state/index.ts";
import type { Committed, ProcessIdentity } from "../../stores/index.ts";
import { createSlotsByTool } from "../../tools/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { ActivationPorts } from "../agent/live-view.ts";
import type { TurnAuth } from "../agent/turn-auth.ts";
import type { Part } from "../doors/roles.ts";
import type { EventBus } from "../follow/event-bus.ts";
import type { LiveBroadcast } from "../follow/live-broadcast.ts";
import type { UnsavedTrees } from "../unsaved/unsaved-trees.ts";
import type { ChildResults } from "./inbox.ts";

/** The process as `LiveAgents` uses it. */
export interface LiveAgentsOptions {
  readonly stores: UnsavedTrees;
  readonly part: Part;
  readonly tenant: string;
  /** Its `elapsed()` is the stores' steady time. */
  readonly clock: Clock;
  readonly prices: PriceBook;
  readonly random: () => number;
  readonly leaseMs: number;
  readonly process: ProcessIdentity;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly bus: EventBus;
  /** Shows what is not stored. */
  readonly broadcast: LiveBroadcast;
  readonly auth: TurnAuth;
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

type OwnersPorts = "committer" | "inFlight" | "notify" | "onCommitted" | "onLost" | "onEffectOver";

/** The owner of the activations, as they see it. */
interface Owner extends Pick<ActivationPorts<Activation>, OwnersPorts> {
  readonly children: ChildResults;
  readonly succession: Succession;
  activate(key: AgentKey): Promise<Activation>;
}

/** The ports through which activations reach their process. */
export function activationPortsOf(options: LiveAgentsOptions, owner: Owner): ActivationPorts<Activation> {
  const { clock, prices, stores, part, random, auth, broadcast, definitions } = options;
  const { children, succession, ...ports } = owner;
  return {
    ...ports,
    clock,
    prices,
    stores,
    definitions,
    queues: part.queues,
    processId: options.process.processId,
    random,
    inspect: options.onInspect && inspection(options.onInspect),
    slots: createSlotsByTool(),
    auth: (turnId) => auth.of(turnId),
    redactorOf: (turnId) => auth.redactorOf(turnId),
    resolveAuth: (identity, turnId, actorId) => auth.resolve(identity, turnId, actorId),
    viewersOf: (identity) => broadcast.viewersOf(identity),
    childResult: async ({ turnEntries }, childId) => {
      const ended = turnEntries.find((entry) => entry.type === "child.ended" && entry.childId === childId);
      if (ended?.type === "child.ended") return { status: ended.outcome, text: ended.text };
      return await children.wait(childId);
    },
    onRefused: (activation, error) => options.onRefused(activation, error),
    onFailed: (agentId, cause) => options.onFailed(agentId, cause),
    successor: async (activation): Promise<Host> => {
      succession.assertGoesOn(activation);
      return await owner.activate(activation.key).catch(lostToOthers);
    },
  };
}

/** Contexts are frozen first: the machines go on from the very objects that are inspected. */
function inspection(onInspect: NonNullable<LiveAgentsOptions["onInspect"]>): typeof onInspect {
  return harmless("onInspect", (agentId, event) => {
    if ("snapshot" in event && "context" in event.snapshot) deepFreeze(event.snapshot.context);
    onInspect(agentId, event);
  });
}

/**
 * Which activation of an agent took the place of which, in this process: code of an earlier one goes on with the last.
 *
 * Invariant: an activation whose lease was given back has no successor: what its code has left behind activates nobody.
 */
export class Succession {
  readonly #next = new WeakMap<Activation, Activation | "released">();

  follow(earlier: Activation, later: Activation): void {
    this.#next.set(earlier, later);
  }

  end(activation: Activation): void {
    if (!this.#next.has(activation)) this.#next.set(activation, "released");
  }

  /** The last activation that an earlier one leads to. */
  lastOf(activation: Activation): Activation {
    let last = activation;
    for (let next = this.#next.get(last); next && next !== "released"; next = this.#next.get(last)) last = next;
    return last;
  }

  /** Throws `LeaseLostError` where nothing leads on. */
  assertGoesOn(activation: Activation): void {
    if (this.#next.get(this.lastOf(activation)) !== "released") return;
    throw new LeaseLostError(`agent ${activation.key.agentId} was released by this process`);
  }
}

/** Rethrows: an agent that another process has, or that the stores have lost, is lost for code of an earlier activation. */
export function lostToOthers(error: unknown): never {
  if (!(error instanceof AlreadyOwnedError || error instanceof NotFoundError)) throw error;
  throw new LeaseLostError(error.message, { cause: error });
}
