import type { Deferred } from "../../base/index.ts";
import { InvariantError } from "../../errors/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { Standing } from "../agent/actor-tree.ts";

/** `waits`: the agent is here and only a post can move it. `gone`: it is not here any more. */
export type Rest = "waits" | "gone";

/** One activation, from its start here until its actors are stopped. */
export interface Stay<Live> {
  readonly activation: Live;
  /** The attempt that made it; settles when the activation has drained its inbox for the first time. */
  readonly attempt: Promise<Live>;
  /** Inbox items that it has taken; they leave the inbox with the commit that holds their entries. */
  readonly taken: Set<string>;
  readonly isPassivating: boolean;
  /** Resolves between two steps, for a handover that waits for it. */
  readonly safePoint: Deferred<void> | null;
  /** When it ended its first turn here; `keptUntil`: the time before which it is not passivated between turns. */
  readonly keptSince: number | null;
  readonly keptUntil: number;
}

/** What this process keeps of an agent that it has put away: its lease, and the place from which it is taken up. */
export interface PutAway {
  readonly key: AgentKey;
  readonly epoch: number;
  /** Its last committed entry, and the time of it. */
  readonly seq: number;
  readonly at: number;
  readonly standing: Standing;
  /** Keys of the inbox items that it could not take. */
  readonly untaken: readonly string[];
  /** Lets the process exit, which a waiting turn holds. */
  readonly letGo: (() => void) | undefined;
}

/** Claims of this process on the agent, wherever it is. */
interface Claims {
  /** A handle has activated it, so it is not passivated. */
  readonly isHeld: boolean;
  /** Deliveries in progress; it is not passivated before they are over. */
  readonly deliveries: number;
  /** Answered when the agent rests. */
  readonly waiter: Deferred<Rest> | null;
  /** The stores did not answer, and are asked again after a pause. */
  readonly isRetrying: boolean;
}

export type Residence<Live> = Claims &
  (
    | { readonly kind: "away" }
    /** Shut down while a turn was open: only `start()` activates it again. */
    | { readonly kind: "dormant" }
    /** Its lease is being taken and its state recovered. */
    | { readonly kind: "coming"; readonly attempt: Promise<Live> }
    /** Its lease is held for a change that takes no step. */
    | { readonly kind: "visited"; readonly over: Promise<void>; readonly isShutDown: boolean }
    | { readonly kind: "here"; readonly stay: Stay<Live> }
    /** It rests, and its actors are stopped; the lease stays here. */
    | { readonly kind: "putAway"; readonly remains: PutAway }
    /** Passivation: the lease is offered back, and the actors continue if an item has arrived meanwhile. */
    | { readonly kind: "releasing"; readonly stay: Stay<Live>; readonly over: Promise<void> }
    /** Handover: the actors are stopped and the lease is being given back. */
    | {
        readonly kind: "leaving";
        readonly activation: Live;
        readonly over: Promise<void>;
        readonly isShutDown: boolean;
      }
  );

export type ResidenceEvent<Live> =
  /** `remains`: it was to be taken up, and stays put away. */
  | { readonly type: "activation.failed"; readonly remains?: PutAway | undefined }
  | { readonly type: "visit.over" }
  /** The lease of an agent that was put away is given back, or lost. */
  | { readonly type: "forgotten"; readonly remains: PutAway }
  | { readonly type: "hold" | "unhold" | "delivery" | "delivery.over" | "retry" | "retry.over" | "rest.checked" }
  | { readonly type: "activate"; readonly attempt: Promise<Live> }
  | { readonly type: "visit"; readonly over: Promise<void> }
  | { readonly type: "rest.awaited"; readonly waiter: Deferred<Rest> }
  | ({ readonly activation: Live } & (
      | { readonly type: "activated" }
      | { readonly type: "put.away"; readonly remains: PutAway }
      | { readonly type: "release.over" | "leave.over" | "lost" | "passivation.over" | "kept.over" }
      | { readonly type: "release"; readonly over: Promise<void> }
      | { readonly type: "leave"; readonly over: Promise<void>; readonly isShutDown: boolean }
      | { readonly type: "safePoint.awaited"; readonly safePoint: Deferred<void> }
      | { readonly type: "turn.ended"; readonly now: number }
      /** All is committed, and only effects that wait for children are running; none at all if it may passivate. */
      | {
          readonly type: "settled";
          readonly mayPassivate: boolean;
          readonly isBetweenTurns: boolean;
          readonly now: number;
        }
    ));

type EventOf<Live, Type> = Extract<ResidenceEvent<Live>, { readonly type: Type }>;

export type ResidenceEffect =
  | { readonly type: "answer"; readonly waiter: Deferred<Rest>; readonly rest: Rest }
  /** Runs in the next tick of the event loop, and does nothing if the agent is being activated by then. */
  | { readonly type: "checkRest" }
  | { readonly type: "reachSafePoint"; readonly safePoint: Deferred<void> }
  | { readonly type: "passivate" }
  | { readonly type: "lookAgain"; readonly afterMs: number };

interface Step<Live> {
  readonly next: Residence<Live>;
  readonly effects: readonly ResidenceEffect[];
}

/** For how long an agent is not passivated after a turn, whose next one often comes soon, unless its lease is asked for. */
export const KEPT_MS = 5_000;
/** Even with frequent turns an agent leaves after this time, so that it can move to another process and job. */
export const LONGEST_KEPT_MS = 60_000;

export const unclaimed = { kind: "away", isHeld: false, deliveries: 0, waiter: null, isRetrying: false } as const;

/**
 * Where one agent lives, as far as one process knows; there is no other record of it. There is no state for an agent
 * that was passivated with an open turn: it is `away`, and only the stores know more.
 *
 * These never happen:
 * 1. Two activations of one agent in a process: one starts only if the agent is `away` or `dormant`.
 * 2. An activation without a lease: `coming` takes it before the actors are made; `leaving` stops them before it is given back;
 *    `releasing` goes on only if the stores refuse to take it back.
 * 3. An activation that starts while a lease is being given back: it waits for the outcome.
 * 4. A late report that changes a later state: an event about an activation counts only while that activation is here.
 * 5. A waiter for rest without an answer: it is answered when the agent rests here, when a handle holds the agent, and
 *    after each way to `away` or `dormant`, a failed attempt included.
 * 6. A passivation of an agent that a handle holds or that has a delivery in progress, or two passivations at once.
 * 7. An agent that is put away while something is delivered to it, somebody waits for its rest, or it is about to leave.
 *
 * Throws `InvariantError` for a command that breaks 1.
 */
export function transition<Live>(at: Residence<Live>, event: ResidenceEvent<Live>): Step<Live> {
  switch (event.type) {
    case "activate":
    case "visit":
    case "activated":
    case "activation.failed":
    case "visit.over":
      return arrive(at, event);
    case "hold":
      return at.kind === "dormant" ? to(at) : answered({ ...at, isHeld: true }, "waits");
    case "unhold":
      return to({ ...at, isHeld: false });
    case "delivery":
      return to({ ...at, deliveries: at.deliveries + 1 });
    case "delivery.over":
      return to({ ...at, deliveries: Math.max(0, at.deliveries - 1) });
    case "retry":
      return to({ ...at, isRetrying: true });
    case "retry.over":
      return to({ ...at, isRetrying: false });
    case "rest.awaited": {
      const next = { ...at, waiter: at.waiter ?? event.waiter };
      if (at.isHeld || at.kind === "putAway") return answered(next, "waits");
      return to(next, isAway(at) ? [{ type: "checkRest" }] : []);
    }
    case "rest.checked":
      if (at.kind === "putAway") return answered(at, "waits");
      return isAway(at) ? answered(at, "gone") : to(at);
    case "forgotten":
      return at.kind === "putAway" && at.remains === event.remains ? gone(claimsOf(at), false) : to(at);
    default:
      return activationOf(at) === event.activation ? live(at, event) : to(at);
  }
}

type ArrivalType = "activate" | "visit" | "activated" | "activation.failed" | "visit.over";

function arrive<Live>(at: Residence<Live>, event: EventOf<Live, ArrivalType>): Step<Live> {
  const claims = claimsOf(at);
  const isFree = isAway(at) || at.kind === "putAway";
  if (event.type === "activate" && isFree) return to({ ...claims, kind: "coming", attempt: event.attempt });
  if (event.type === "visit" && isFree) {
    return to({ ...claims, kind: "visited", over: event.over, isShutDown: at.kind === "dormant" });
  }
  if (event.type === "activation.failed" && at.kind === "coming") {
    const { remains } = event;
    return remains ? answered(putAway(claims, remains), "waits") : gone(claims, false);
  }
  if (event.type === "visit.over" && at.kind === "visited") return gone(claims, at.isShutDown);
  if (event.type === "activated" && at.kind === "coming") {
    const stay = {
      activation: event.activation,
      attempt: at.attempt,
      taken: new Set<string>(),
      isPassivating: false,
      safePoint: null,
      keptSince: null,
      keptUntil: Number.NEGATIVE_INFINITY,
    };
    return to({ ...claims, kind: "here", stay });
  }
  throw new InvariantError(`an agent that is ${at.kind} in this process got "${event.type}"`);
}

/** Handles an event about the activation that is here or leaving. */
function live<Live>(at: Residence<Live>, event: Extract<ResidenceEvent<Live>, { activation: Live }>): Step<Live> {
  const claims = claimsOf(at);
  if (at.kind === "leaving") return event.type === "leave.over" ? gone(claims, at.isShutDown) : to(at);
  if (at.kind !== "here" && at.kind !== "releasing") return to(at);
  const { stay } = at;
  const reached = stay.safePoint ? [{ type: "reachSafePoint", safePoint: stay.safePoint } as const] : [];
  switch (event.type) {
    case "release":
      return to(at.kind === "here" ? { ...claims, kind: "releasing", stay, over: event.over } : at);
    case "release.over":
      return to({ ...claims, kind: "here", stay });
    case "leave": {
      const { activation, over, isShutDown } = event;
      return to({ ...claims, kind: "leaving", activation, over, isShutDown }, reached);
    }
    case "lost":
      return gone(claims, false, reached);
    case "put.away":
      return to(mayBePutAway(at) ? putAway(claims, event.remains) : at);
    case "safePoint.awaited":
      return to({ ...at, stay: { ...stay, safePoint: stay.safePoint ?? event.safePoint } });
    case "passivation.over":
      return to({ ...at, stay: { ...stay, isPassivating: false } });
    case "turn.ended":
      return kept({ ...at, stay }, event.now);
    case "kept.over":
      return to({ ...at, stay: { ...stay, keptUntil: Number.NEGATIVE_INFINITY } });
    case "settled":
      return settled({ ...at, stay }, event);
    default:
      return to(at);
  }
}

type Staying<Live> = Extract<Residence<Live>, { stay: Stay<Live> }>;

function mayBePutAway<Live>({ kind, deliveries, waiter, stay }: Staying<Live>): boolean {
  return kind === "here" && deliveries === 0 && waiter === null && !stay.isPassivating && stay.safePoint === null;
}

function putAway({ isHeld, deliveries, waiter, isRetrying }: Claims, remains: PutAway) {
  return { kind: "putAway", isHeld, deliveries, waiter, isRetrying, remains } as const;
}

function kept<Live>(at: Staying<Live>, now: number): Step<Live> {
  if (!at.waiter) return to(at);
  const stay = { ...at.stay, keptSince: at.stay.keptSince ?? now };
  if (now - stay.keptSince >= LONGEST_KEPT_MS) return to({ ...at, stay });
  return to({ ...at, stay: { ...stay, keptUntil: now + KEPT_MS } }, [{ type: "lookAgain", afterMs: KEPT_MS }]);
}

function settled<Live>(at: Staying<Live>, { mayPassivate, isBetweenTurns, now }: EventOf<Live, "settled">): Step<Live> {
  const isKept = mayPassivate && isBetweenTurns && now < at.stay.keptUntil;
  if (at.isHeld || at.deliveries > 0 || isKept) return to(at);
  const { next, effects } = answered(at, "waits");
  if (!mayPassivate || at.stay.isPassivating) return { next, effects };
  return to({ ...next, stay: { ...at.stay, isPassivating: true } }, [...effects, { type: "passivate" }]);
}

function answered<At extends Claims>(at: At, rest: Rest): { readonly next: At; readonly effects: ResidenceEffect[] } {
  if (!at.waiter) return { next: at, effects: [] };
  return { next: { ...at, waiter: null }, effects: [{ type: "answer", waiter: at.waiter, rest }] };
}

function gone<Live>(claims: Claims, isShutDown: boolean, effects: readonly ResidenceEffect[] = []): Step<Live> {
  const kind = isShutDown && !claims.isHeld ? "dormant" : "away";
  return to({ ...claims, kind }, claims.waiter ? [...effects, { type: "checkRest" }] : effects);
}

function to<Live>(next: Residence<Live>, effects: readonly ResidenceEffect[] = []): Step<Live> {
  return { next, effects };
}

function isAway<Live>({ kind }: Residence<Live>): boolean {
  return kind === "away" || kind === "dormant";
}

function claimsOf<Live>({ isHeld, deliveries, waiter, isRetrying }: Residence<Live>): Claims {
  return { isHeld, deliveries, waiter, isRetrying };
}

function activationOf<Live>(at: Residence<Live>): Live | undefined {
  if (at.kind === "leaving") return at.activation;
  return "stay" in at ? at.stay.activation : undefined;
}

/**
 * The agents of one process.
 * Owns: the record of each of them, and the answers to their waiters. Does not own: leases, actors, inboxes.
 */
export class Residences<Live extends { readonly key: AgentKey }> {
  readonly #residences = new Map<string, Residence<Live>>();
  #waiters = 0;
  /** Set when the process is leaving: nothing new is activated, and agents here continue until they rest. */
  isLeaving = false;
  isClosing = false;

  of(agentId: string): Residence<Live> {
    return this.#residences.get(agentId) ?? unclaimed;
  }

  /** Changes the record and answers waiters. Returns the effects that the caller must run. */
  apply(agentId: string, event: ResidenceEvent<Live>): readonly ResidenceEffect[] {
    const before = this.of(agentId);
    const { next, effects } = transition(before, event);
    this.#waiters += Number(next.waiter !== null) - Number(before.waiter !== null);
    if (isUnclaimed(next)) this.#residences.delete(agentId);
    else if (next !== before) this.#residences.set(agentId, next);
    for (const effect of effects) {
      if (effect.type === "answer") effect.waiter.resolve(effect.rest);
      else if (effect.type === "reachSafePoint") effect.safePoint.resolve();
      else if (effect.type === "checkRest") setImmediate(() => this.apply(agentId, { type: "rest.checked" }));
    }
    return effects;
  }

  /** The activation that is here, also while its lease is offered back. */
  get(agentId: string): Live | undefined {
    const at = this.of(agentId);
    return "stay" in at ? at.stay.activation : undefined;
  }

  all(): Live[] {
    return [...this.#residences.values()].flatMap((at) => ("stay" in at ? [at.stay.activation] : []));
  }

  /** Whether an agent is here, comes or leaves, or one that was put away has an open turn. */
  get isAtWork(): boolean {
    return [...this.#residences.values()].some(
      (at) => !isAway(at) && (at.kind !== "putAway" || (at.remains.standing.now?.openTurnId ?? null) !== null),
    );
  }

  /** Of the agents that are live, and of those that are put away. */
  heldKeys(): AgentKey[] {
    const keys: AgentKey[] = [];
    for (const at of this.#residences.values()) {
      if ("stay" in at) keys.push(at.stay.activation.key);
      else if (at.kind === "putAway") keys.push(at.remains.key);
    }
    return keys;
  }

  remainsOf(agentId: string): PutAway | undefined {
    const at = this.of(agentId);
    return at.kind === "putAway" ? at.remains : undefined;
  }

  allPutAway(): PutAway[] {
    return [...this.#residences.values()].flatMap((at) => (at.kind === "putAway" ? [at.remains] : []));
  }

  stay(activation: Live): Stay<Live> | undefined {
    const at = this.of(activation.key.agentId);
    return "stay" in at && at.stay.activation === activation ? at.stay : undefined;
  }

  /**
   * Settles when it is decided whether the activation's lease is given back; undefined if that is not being decided.
   */
  overOf(activation: Live): Promise<void> | undefined {
    const at = this.of(activation.key.agentId);
    return "over" in at && activationOf(at) === activation ? at.over : undefined;
  }

  /** Number of agents with a waiter for their rest. */
  get waiters(): number {
    return this.#waiters;
  }

  isShutDown(agentId: string): boolean {
    const at = this.of(agentId);
    return at.kind === "dormant" || ("isShutDown" in at && at.isShutDown);
  }

  /** The record, once no lease of the agent is being given back or held for a change. */
  async decided(agentId: string): Promise<Exclude<Residence<Live>, { over: Promise<void> }>> {
    for (;;) {
      const at = this.of(agentId);
      if (!("over" in at)) return at;
      await at.over;
    }
  }

  /** The activation that is here or being made. */
  async present(agentId: string): Promise<Live | undefined> {
    const at = await this.decided(agentId);
    if (at.kind === "coming") return await at.attempt.catch(() => undefined);
    return at.kind === "here" ? at.stay.activation : undefined;
  }

  /** Settles when all running attempts have ended. */
  async arrived(): Promise<void> {
    const attempts = [...this.#residences.values()].flatMap((at) => {
      if (at.kind === "coming") return [at.attempt];
      return "stay" in at ? [at.stay.attempt] : [];
    });
    await Promise.allSettled(attempts);
  }
}

function isUnclaimed<Live>(at: Residence<Live>): boolean {
  return at.kind === "away" && !at.isHeld && at.deliveries === 0 && at.waiter === null && !at.isRetrying;
}
