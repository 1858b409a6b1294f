import { type ActorRefFrom, createActor, type Snapshot } from "xstate";
import {
  type EffectOwner,
  Effects,
  type Host,
  type LiveAgentActor,
  liveAgentMachine,
  type liveToolCallMachine,
  type liveTurnMachine,
  startWithEffects,
} from "../../actors/index.ts";
import { holdProcess } from "../../base/index.ts";
import { type AgentContext, agentHears, allCallsHear, lifecycleOf, turnHears } from "../../machines/index.ts";
import {
  addressOf,
  type CallState,
  type Entry,
  isResting,
  type Lifecycle,
  type OwnedFields,
  type Refusal,
  type TurnState,
} from "../../state/index.ts";
import type { BudgetMove } from "../../stores/index.ts";
import type { Inspections } from "./inspections.ts";
import { lossOf, type LossReason } from "./journal-writer.ts";

interface ActorTreeStart {
  readonly agentId: string;
  /** The recovered state; absent for an agent without entries. */
  readonly snapshot: Snapshot<unknown> | undefined;
  readonly inspections: Inspections;
}

/**
 * The live machines of one agent: a root actor, its turn, its calls. An entry is delivered to every machine on its
 * address, outermost first; machines never send to one another.
 */
export class ActorTree {
  readonly #root: LiveAgentActor;
  readonly #effects: Effects;
  readonly #inspections: Inspections;
  /** The turn that ended last; its actor is gone. */
  #lastTurn: TurnState | undefined;
  #letGo: (() => void) | undefined;

  constructor(start: ActorTreeStart, host: Host) {
    const { agentId, snapshot, inspections } = start;
    this.#effects = new Effects(host);
    this.#inspections = inspections;
    this.#root = createActor(liveAgentMachine, { id: agentId, ...(snapshot ? { snapshot } : {}) });
  }

  start(): void {
    this.#inspections.begin(this.#root);
    startWithEffects(this.#root, this.#effects);
    this.#holdWhileBusy();
  }

  stop(): void {
    this.#root.stop();
    this.#inspections.end(this.#root);
    this.#effects.stopAll();
    this.#letGo?.();
    this.#letGo = undefined;
  }

  /** Keeps the process from exiting during a turn, even if the turn only waits for its next attempt. */
  #holdWhileBusy(): void {
    if (this.lifecycle === "busy") {
      this.#letGo ??= holdProcess();
    } else {
      this.#letGo?.();
      this.#letGo = undefined;
    }
  }

  get lifecycle(): Lifecycle {
    return lifecycleOf(this.#root.getSnapshot().value);
  }

  get isPausing(): boolean {
    return this.#root.getSnapshot().matches({ busy: "pausing" });
  }

  get context() {
    return this.#root.getSnapshot().context;
  }

  /** The part of the agent machine that a checkpoint keeps. */
  checkpoint() {
    const { value, context } = this.#root.getSnapshot();
    return { value, context } as { value: string; context: AgentContext };
  }

  /** The state values of all live machines, for comparing the live state with a fold. */
  values(turnId: string | null) {
    const turn = turnId === null ? undefined : this.#turn(turnId)?.getSnapshot();
    const calls = Object.entries(turn?.children ?? {}).flatMap(([id, actor]) => {
      const value = (actor?.getSnapshot() as { value?: unknown } | undefined)?.value;
      return value === undefined ? [] : [[id, value] as const];
    });
    return { agent: this.#root.getSnapshot().value, turn: turn?.value, calls: Object.fromEntries(calls) };
  }

  /** The scopes in which effects are running. */
  get effects(): readonly EffectOwner[] {
    return this.#effects.places;
  }

  turn(turnId: string): TurnState | undefined {
    const live = this.#turn(turnId)?.getSnapshot().context.turn;
    return live ?? (this.#lastTurn?.turnId === turnId ? this.#lastTurn : undefined);
  }

  forgetTurn(turnId: string): void {
    if (this.#lastTurn?.turnId === turnId) this.#lastTurn = undefined;
  }

  call(turnId: string, callId: string): CallState | undefined {
    return this.#call(turnId, callId)?.getSnapshot().context.call;
  }

  deliver(entry: Entry): void {
    const { turnId, callId } = addressOf(entry);
    const broadcast = allCallsHear(entry) && turnId !== null ? (this.turn(turnId)?.openCallIds ?? []) : [];
    if (agentHears(entry)) {
      this.#root.send(entry);
      this.#holdWhileBusy();
    }
    if (turnId === null) return;
    const turn = this.#turn(turnId);
    if (turnHears(entry)) turn?.send(entry);
    if (entry.type === "turn.ended") {
      if (turn) this.#lastTurn = turn.getSnapshot().context.turn;
      // Calls of a turn that could not be stopped may still be running.
      this.#effects.stopAll();
    }
    if (callId !== null) this.#call(turnId, callId)?.send(entry);
    for (const id of broadcast) this.#call(turnId, id)?.send(entry);
  }

  #turn(turnId: string) {
    return this.#root.getSnapshot().children[turnId] as ActorRefFrom<typeof liveTurnMachine> | undefined;
  }

  #call(turnId: string, callId: string) {
    const calls = this.#turn(turnId)?.getSnapshot().children as Record<string, unknown> | undefined;
    return calls?.[callId] as ActorRefFrom<typeof liveToolCallMachine> | undefined;
  }
}

/** A live agent, as `Activity` reads it. */
interface WorkingAgent {
  readonly lifecycle: Lifecycle;
  readonly openTurnId: string | null;
  turn(turnId: string): TurnState | undefined;
  /** Whether a call of the open turn waits for a free slot among its children. */
  isQueuedToSpawn(callId: string): boolean;
}

/** A change of activity that must be stored. */
interface ActivityChange {
  readonly move: Extract<BudgetMove, { type: "activity" }>;
  /** Requests that the turn waits for, if none of its work is running. */
  readonly waitsFor: readonly string[];
}

/**
 * Tracks whether the open turn works or rests, because `maxSeconds` counts only working time (docs/budgets.md). The activity is
 * derived from the state alone. Each change is sent to the account, and again after recovery, since a crash may have lost the
 * last change.
 */
export class Activity {
  readonly #agent: WorkingAgent;
  #accountId: string | undefined;
  #isActive = false;

  constructor(agent: WorkingAgent) {
    this.#agent = agent;
  }

  /** The last value that was sent to the account. */
  get isActive(): boolean {
    return this.#isActive;
  }

  /** The initial value for an agent that is recovered with an open turn. */
  begin(): ActivityChange["move"] | undefined {
    const turn = this.#openTurn();
    if (!turn) return undefined;
    this.#accountId = turn.accountId;
    this.#isActive = this.#works(turn);
    return { type: "activity", accountId: turn.accountId, isActive: this.#isActive };
  }

  /** Must be called after each entry. */
  look(entry: Entry): ActivityChange | undefined {
    const turn = this.#openTurn();
    const accountId = turn?.accountId ?? this.#accountId;
    const isActive = turn !== undefined && this.#works(turn);
    const isChanged = isActive !== this.#isActive || accountId !== this.#accountId;
    // After a pause the turn still waits for the same requests: followers receive `turn.waiting` again.
    const isBack = entry.type === "agent.resumed" && turn !== undefined && !isActive;
    if (accountId === undefined || !(isChanged || isBack)) return undefined;
    this.#accountId = accountId;
    this.#isActive = isActive;
    const waits = turn !== undefined && !isActive && entry.type !== "agent.paused";
    return { move: { type: "activity", accountId, isActive }, waitsFor: waits ? turn.openRequestIds : [] };
  }

  #openTurn(): TurnState | undefined {
    const { openTurnId } = this.#agent;
    return openTurnId === null ? undefined : this.#agent.turn(openTurnId);
  }

  #works(turn: TurnState): boolean {
    return this.#agent.lifecycle !== "paused" && !isResting(turn, (callId) => this.#agent.isQueuedToSpawn(callId));
  }
}

/** A live agent, as `TurnWaiters` reads it. */
interface WatchedAgent {
  readonly openTurnId: string | null;
  turn(turnId: string): TurnState | undefined;
  call(turnId: string, callId: string): CallState | undefined;
  /** Whether an attempt of the call is in flight in this process; attempts of a dead process are not. */
  isOut(call: CallState): boolean;
}

/**
 * Promises for effects that wait: until no call of the open turn is in flight, until a refused intent may be proposed again, or
 * for the next entry.
 */
export class TurnWaiters {
  readonly #agent: WatchedAgent;
  #quiet: PromiseWithResolvers<void> | undefined;
  #freed: PromiseWithResolvers<void> | undefined;
  #moved: PromiseWithResolvers<void> | undefined;
  /** How many times each run of user code currently waits to be freed. */
  readonly #held = new Map<string, number>();
  /** The last entry after which refused intents may be proposed again. */
  #freedSeq = 0;

  constructor(agent: WatchedAgent) {
    this.#agent = agent;
  }

  async quiet(): Promise<void> {
    if (this.#isQuiet()) return;
    this.#quiet ??= Promise.withResolvers<void>();
    await this.#quiet.promise;
  }

  /** Resolves when a reservation is freed or a pause ends after the refusal; rejects when the agent is discarded. */
  async freed(refusal: Refusal, run: string): Promise<void> {
    if (this.#freedSeq > refusal.seq) return;
    this.#freed ??= Promise.withResolvers<void>();
    this.#held.set(run, (this.#held.get(run) ?? 0) + 1);
    this.#settleQuiet();
    try {
      await this.#freed.promise;
    } finally {
      const others = (this.#held.get(run) ?? 1) - 1;
      if (others > 0) this.#held.set(run, others);
      else this.#held.delete(run);
    }
  }

  /** Resolves with the next entry; a caller that is stopped meanwhile must stop waiting by itself. */
  moved(): Promise<void> {
    this.#moved ??= Promise.withResolvers<void>();
    return this.#moved.promise;
  }

  /** Must be called after each entry. */
  look(entry: Entry): void {
    if (entry.type === "budget.freed" || entry.type === "agent.resumed") {
      this.#freedSeq = entry.seq;
      this.#freed?.resolve();
      this.#freed = undefined;
    }
    this.#moved?.resolve();
    this.#moved = undefined;
    this.#settleQuiet();
  }

  #settleQuiet(): void {
    if (!this.#quiet || !this.#isQuiet()) return;
    this.#quiet.resolve();
    this.#quiet = undefined;
  }

  /** Rejects waits for budget when the agent is discarded; its successor waits again. */
  close(why: LossReason): void {
    this.#freed?.promise.catch(() => undefined);
    this.#freed?.reject(lossOf(why));
  }

  #isQuiet(): boolean {
    const { openTurnId } = this.#agent;
    const turn = openTurnId === null ? undefined : this.#agent.turn(openTurnId);
    if (openTurnId === null || !turn) return true;
    const isRunning = (callId: string): boolean => {
      const call = this.#agent.call(openTurnId, callId);
      return call !== undefined && this.#agent.isOut(call) && !this.#held.has(callId);
    };
    return turn.openRequest === null && !turn.openCallIds.some(isRunning);
  }
}

/** The status of an agent that a handle shows. */
export interface ShownStatus extends Pick<OwnedFields, "turnCount" | "lastActivity" | "error"> {
  readonly lifecycle: Lifecycle;
  readonly openTurnId: string | null;
}

interface StatusSource {
  readonly owned: OwnedFields;
  readonly lifecycle: Lifecycle;
  readonly openTurnId: string | null;
}

/**
 * The status of an agent: that of its live agent, and after its end the last one. Handles use it so that they do not keep a live
 * agent in memory.
 */
export class AgentStatusView {
  #live: StatusSource | undefined;
  #last: ShownStatus | undefined;
  #other: AgentStatusView | undefined;

  /** Shows the status of this live agent from now on. */
  follow(live: StatusSource): void {
    this.#live = live;
    this.#last = undefined;
  }

  /** Shows the status of another view of the same agent. */
  giveWayTo(other: AgentStatusView): void {
    this.#other = other;
    this.#live = undefined;
  }

  settle(live: StatusSource): void {
    if (this.#live !== live) return;
    this.#last = standOf(live);
    this.#live = undefined;
  }

  get now(): ShownStatus | undefined {
    if (this.#other) return this.#other.now;
    return this.#live ? standOf(this.#live) : this.#last;
  }
}

function standOf({ owned, lifecycle, openTurnId }: StatusSource): ShownStatus {
  const { turnCount, lastActivity, error } = owned;
  return { lifecycle, openTurnId, turnCount, lastActivity, error };
}
