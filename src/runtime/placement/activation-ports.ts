import type { Host } from "../../actors/index.ts";
import type { AgentDefinition } from "../../agents/index.ts";
import type { Clock } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import { AlreadyOwnedError, LeaseLostError, NotFoundError, type StoreUnavailableError } from "../../errors/index.ts";
import type { PriceBook } from "../../model/index.ts";
import type { AgentKey, EntryOf, Timer } from "../../state/index.ts";
import type { Committed, ProcessIdentity } from "../../stores/index.ts";
import { createSlotsByTool, type ScheduleCaller, type TurnSchedules } from "../../tools/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { Inspections } from "../agent/inspections.ts";
import type { ActivationPorts, OuterSource } from "../agent/live-view.ts";
import type { TurnAuth } from "../agent/turn-auth.ts";
import type { TurnContexts } from "../agent/turn-contexts.ts";
import type { TurnFailures } from "../agent/turn-failures.ts";
import type { Part } from "../api/roles.ts";
import type { EventBus, LiveBroadcast } from "../follow/event-bus.ts";
import type { SpawnTrees } from "../follow/spawn-trees.ts";
import type { RuntimeStores } from "../unsaved/unsaved-stores.ts";
import type { ChildResults } from "./inbox.ts";

/** The process, as used by `LiveAgents`. */
export interface LiveAgentsOptions {
  readonly stores: RuntimeStores;
  readonly part: Part;
  readonly tenant: string;
  /** Its `elapsed()` is the stores' monotonic time, the same for all processes (`StoreClock`). */
  readonly clock: Clock;
  readonly prices: PriceBook;
  readonly outer: OuterSource;
  readonly random: () => number;
  /** Aborted when the runtime closes. */
  readonly closed: AbortSignal;
  readonly leaseMs: number;
  /** Resolves when other processes consider this one alive, so that they do not take over the agents that it activates. */
  readonly present: () => Promise<void>;
  readonly process: ProcessIdentity;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly bus: EventBus;
  /** Sends live parts, which are not stored. */
  readonly broadcast: LiveBroadcast;
  readonly trees: SpawnTrees;
  readonly auth: TurnAuth;
  readonly contexts: TurnContexts;
  readonly failures: TurnFailures;
  readonly inspections: Inspections;
  readonly schedulesOf: (caller: ScheduleCaller) => TurnSchedules;
  readonly restoreAfterCommit: boolean;
  /** Whether `mayDecide` is set; each request records it. */
  readonly guardsRequests: boolean;
  /** Called with the timers that a commit has set. */
  onTimers(timers: readonly Timer[]): void;
  onCommitted(activation: Activation, outcome: Committed): void;
  /** Called with the accounts that the commit changed, if known. */
  onTurnEnded(activation: Activation, entry: EntryOf<"turn.ended">, accounts: readonly Account[]): void;
  onRest(activation: Activation): void;
  onResumed(activation: Activation): void;
  /** Called when the stores temporarily refuse an agent's batch. */
  onRefused(activation: Activation, error: StoreUnavailableError): void;
  /**
   * Called if an agent cannot continue in this process, because its batch can never be stored or its stored records are
   * unreadable.
   */
  onFailed(agentId: string, cause: unknown): void;
}

type OwnersPorts = "committer" | "inFlight" | "notify" | "onCommitted" | "onLost" | "onEffectOver";

/** The owner of the activations, as used by them. */
interface Owner extends Pick<ActivationPorts<Activation>, OwnersPorts> {
  readonly children: ChildResults;
  readonly succession: Succession;
  activate(key: AgentKey): Promise<Activation>;
}

/** The ports through which activations use their process. */
export function activationPortsOf(options: LiveAgentsOptions, owner: Owner): ActivationPorts<Activation> {
  const { clock, prices, outer, stores, part, random, auth, contexts, failures, broadcast, definitions } = options;
  const { children, succession, ...ports } = owner;
  return {
    ...ports,
    clock,
    prices,
    outer,
    stores,
    definitions,
    queues: part.queues,
    processId: options.process.processId,
    random,
    guardsRequests: options.guardsRequests,
    inspections: options.inspections,
    slots: createSlotsByTool(),
    auth,
    contexts,
    failures,
    viewersOf: (identity) => broadcast.viewersOf(identity),
    schedulesOf: (caller) => options.schedulesOf(caller),
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

/**
 * Records which activation of an agent replaced which in this process, so that code of an earlier one continues with the newest.
 *
 * Invariant: an activation whose lease was released has no successor, so leftover code of it activates nothing.
 */
export class Succession {
  readonly #next = new WeakMap<Activation, Activation | "released">();

  follow(earlier: Activation, later: Activation): void {
    later.standIn(earlier.standing);
    this.#next.set(earlier, later);
  }

  end(activation: Activation): void {
    if (!this.#next.has(activation)) this.#next.set(activation, "released");
  }

  /** The newest activation in the chain of successors. */
  lastOf(activation: Activation): Activation {
    let last = activation;
    for (let next = this.#next.get(last); next && next !== "released"; next = this.#next.get(last)) last = next;
    return last;
  }

  /** Throws `LeaseLostError` for an activation without a successor. */
  assertGoesOn(activation: Activation): void {
    if (this.#next.get(this.lastOf(activation)) !== "released") return;
    throw new LeaseLostError(`agent ${activation.key.agentId} was released by this process`);
  }
}

/**
 * Rethrows as `LeaseLostError` if another process owns the agent or the stores have lost it, for code of an earlier activation.
 */
export function lostToOthers(error: unknown): never {
  if (!(error instanceof AlreadyOwnedError || error instanceof NotFoundError)) throw error;
  throw new LeaseLostError(error.message, { cause: error });
}
