import { isDeepStrictEqual } from "node:util";
import { type AnyActorScope, createActor, fromTransition, initialTransition, type SnapshotFrom } from "xstate";
import { InvariantError } from "../../errors/index.ts";
import { type PlacementAction, type PlacementEvent, placementMachine, type Rest } from "../../machines/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { AgentStatusView } from "../agent/actor-tree.ts";

/** The data that this process keeps of a passive agent: its lease, and the status that its handles show. */
export interface KeptLease {
  readonly key: AgentKey;
  readonly epoch: number;
  readonly standing: AgentStatusView;
  /** Keys of the inbox items that it could not take. */
  readonly untaken: readonly string[];
  /** Lets the process exit, which an open turn keeps alive. */
  readonly letGo: (() => void) | undefined;
}

type State = SnapshotFrom<typeof placementMachine>;

/** The state of one agent's machine, and the values that belong to it. */
interface Placed<Live> {
  readonly state: State;
  /** Set while the agent is live or leaving. */
  readonly activation: Live | undefined;
  /** The current or starting activation; settles when it has drained its inbox for the first time. */
  readonly attempt: Promise<Live> | undefined;
  /** Set while the stores decide whether the lease stays in this process. */
  readonly over: Promise<void> | undefined;
  /** Set while the agent is passive, or is being activated from that state. */
  readonly lease: KeptLease | undefined;
  readonly waiter: PromiseWithResolvers<Rest> | undefined;
}

type Parts<Live> = Partial<Pick<Placed<Live>, "activation" | "attempt" | "over" | "lease">>;

/** Events that always change the state in which they are expected. */
const commands: ReadonlySet<PlacementEvent["type"]> = new Set([
  "activation.started",
  "activation.succeeded",
  "activation.failed",
  "change.started",
  "change.ended",
]);

interface Step {
  readonly type: "step";
  readonly from: State;
  readonly event: PlacementEvent;
}

/**
 * Runs the machines of all agents in one actor. An actor per agent would use 4 KB of memory each, and the pure `transition()`
 * creates an actor per event, which takes three times as long as the step.
 */
class PlacementSteps {
  #actions: PlacementAction[] = [];
  readonly #machine = placementMachine.provide({
    actions: {
      answerRest: (_args, params) => void this.#actions.push({ type: "answerRest", params }),
      checkRest: () => void this.#actions.push({ type: "checkRest" }),
      passivate: () => void this.#actions.push({ type: "passivate" }),
    },
  });
  /** The state shared by passive agents, of which a process may have many; nearly all of their contexts are equal. */
  #passive: State | undefined;
  /** The state of an unknown agent. */
  readonly initial: State = initialTransition(this.#machine)[0];
  readonly #actor = createActor(
    fromTransition(
      (_last: State, { from, event }: Step, scope: AnyActorScope) => this.#machine.transition(from, event, scope),
      this.initial,
    ),
  ).start();

  /** The state after an event, and the actions that it starts. */
  step(from: State, event: PlacementEvent): { readonly state: State; readonly actions: readonly PlacementAction[] } {
    this.#actions = [];
    this.#actor.send({ type: "step", from, event });
    return { state: this.#shared(this.#actor.getSnapshot().context), actions: this.#actions };
  }

  #shared(state: State): State {
    if (state.value !== "passive") return state;
    if (!isDeepStrictEqual(this.#passive?.context, state.context)) this.#passive = state;
    return this.#passive ?? state;
  }
}

/** Shared by all runtimes of the process, because `createAgentLoop()` creates one per turn. */
const steps = new PlacementSteps();

const absent = {
  state: steps.initial,
  activation: undefined,
  attempt: undefined,
  over: undefined,
  lease: undefined,
  waiter: undefined,
} as const;

/**
 * The agents of one process.
 * Owns: the state of each one's machine, and the answers to callers that wait for its rest. Does not own: leases, actors,
 * inboxes.
 *
 * Invariant: a late report changes no later state. A report about an activation counts only while it is the current one.
 */
export class Placements<Live extends { readonly key: AgentKey }> {
  readonly #placed = new Map<string, Placed<Live>>();
  #waiters = 0;
  /** Set when the process is leaving: nothing new is activated, and its agents continue until they rest. */
  isLeaving = false;
  isClosing = false;

  of(agentId: string): Placed<Live> {
    return this.#placed.get(agentId) ?? absent;
  }

  /** Sends an event to the agent's machine, and answers waiters. Returns the actions that the caller must run. */
  send(agentId: string, event: PlacementEvent, parts: Parts<Live> = {}): readonly PlacementAction[] {
    const before = this.of(agentId);
    const { state, actions } = steps.step(before.state, event);
    const after = { ...before, ...parts, state };
    if (commands.has(event.type) && nameOf(after) === nameOf(before)) {
      throw new InvariantError(
        `unexpected event for an agent in state "${nameOf(before)}" of this process: "${event.type}"`,
      );
    }
    this.#put(agentId, after);
    for (const action of actions) {
      if (action.type === "answerRest") this.#answer(agentId, action.params.rest);
      else if (action.type === "checkRest" && before.waiter) this.#checkRest(agentId);
    }
    return actions;
  }

  /** Like `send`, for reports about an activation; ignored if it is not the current one any more. */
  report(activation: Live, event: PlacementEvent, parts?: Parts<Live>): readonly PlacementAction[] {
    const { agentId } = activation.key;
    return this.of(agentId).activation === activation ? this.send(agentId, event, parts) : [];
  }

  #put(agentId: string, placed: Placed<Live>): void {
    const name = nameOf(placed);
    const isHere = name === "live" || name === "leaving";
    const next = {
      ...placed,
      activation: isHere ? placed.activation : undefined,
      attempt: name === "activating" || name === "live" ? placed.attempt : undefined,
      over: isDeciding(placed) ? placed.over : undefined,
      lease: name === "passive" || name === "activating" ? placed.lease : undefined,
    };
    if (placed.lease && !next.lease) placed.lease.letGo?.();
    const { isHeld, deliveries } = placed.state.context;
    if (name === "away" && !isHeld && deliveries === 0 && !placed.waiter) this.#placed.delete(agentId);
    else this.#placed.set(agentId, next);
  }

  /** Resolves when the agent rests or has left this process; all waiters of one agent share the answer. */
  rest(agentId: string): Promise<Rest> {
    const placed = this.of(agentId);
    const waiter = placed.waiter ?? Promise.withResolvers<Rest>();
    if (!placed.waiter) this.#waiters += 1;
    this.#placed.set(agentId, { ...placed, waiter });
    this.send(agentId, { type: "rest.awaited" });
    return waiter.promise;
  }

  #answer(agentId: string, rest: Rest): void {
    const placed = this.of(agentId);
    if (!placed.waiter) return;
    this.#waiters -= 1;
    placed.waiter.resolve(rest);
    this.#put(agentId, { ...placed, waiter: undefined });
  }

  #checkRest(agentId: string): void {
    setImmediate(() => this.send(agentId, { type: "rest.checked" }));
  }

  /** Number of agents whose rest is being waited for. */
  get waiters(): number {
    return this.#waiters;
  }

  isAwaited(agentId: string): boolean {
    return this.of(agentId).waiter !== undefined;
  }

  isHeld(agentId: string): boolean {
    return this.of(agentId).state.context.isHeld;
  }

  hasDeliveries(agentId: string): boolean {
    return this.of(agentId).state.context.deliveries > 0;
  }

  keptUntil(agentId: string): number {
    return this.of(agentId).state.context.keptUntil;
  }

  isAway(agentId: string): boolean {
    return nameOf(this.of(agentId)) === "away";
  }

  /** Whether an activation can start: none is current, and the lease is not being acquired or released. */
  isFree(agentId: string): boolean {
    return ["away", "dormant", "passive"].includes(nameOf(this.of(agentId)));
  }

  /** The current activation, also while its lease is offered to the stores. */
  get(agentId: string): Live | undefined {
    const placed = this.of(agentId);
    return nameOf(placed) === "live" ? placed.activation : undefined;
  }

  isHere(activation: Live): boolean {
    return this.get(activation.key.agentId) === activation;
  }

  all(): Live[] {
    return [...this.#placed.values()].flatMap((placed) =>
      nameOf(placed) === "live" && placed.activation ? [placed.activation] : [],
    );
  }

  /** The kept lease of a passive agent. */
  leaseOf(agentId: string): KeptLease | undefined {
    const placed = this.of(agentId);
    return nameOf(placed) === "passive" ? placed.lease : undefined;
  }

  leases(): KeptLease[] {
    return [...this.#placed.values()].flatMap((placed) =>
      nameOf(placed) === "passive" && placed.lease ? [placed.lease] : [],
    );
  }

  /** Whether an agent is active, starting or leaving, or a passive one has an open turn. */
  get isAtWork(): boolean {
    return [...this.#placed.values()].some((placed) => {
      const name = nameOf(placed);
      if (name === "passive") return (placed.lease?.standing.now?.openTurnId ?? null) !== null;
      return name !== "away" && name !== "dormant";
    });
  }

  /**
   * Settles when the stores have decided whether the activation's lease stays in this process; `undefined` if no decision is
   * pending.
   */
  overOf(activation: Live): Promise<void> | undefined {
    const placed = this.of(activation.key.agentId);
    return placed.activation === activation ? placed.over : undefined;
  }

  isShutDown(agentId: string): boolean {
    return this.of(agentId).state.context.isShutDown;
  }

  /** Resolves when no lease of the agent is being released or held for a change; returns the agent's placement. */
  async #decided(agentId: string): Promise<Placed<Live>> {
    for (;;) {
      const placed = this.of(agentId);
      if (!placed.over) return placed;
      await placed.over;
    }
  }

  /** The current or starting activation. */
  async present(agentId: string): Promise<Live | undefined> {
    const placed = await this.#decided(agentId);
    if (nameOf(placed) === "activating") return await placed.attempt?.catch(() => undefined);
    return placed.activation;
  }

  /** Settles when all running attempts have ended. */
  async arrived(): Promise<void> {
    await Promise.allSettled([...this.#placed.values()].flatMap(({ attempt }) => attempt ?? []));
  }
}

function nameOf({ state: { value } }: Pick<Placed<unknown>, "state">): string {
  return typeof value === "string" ? value : (Object.keys(value)[0] ?? "");
}

function isDeciding({ state: { value } }: Pick<Placed<unknown>, "state">): boolean {
  if (typeof value === "string") return value === "changing" || value === "leaving";
  return value.live.lease === "offered";
}
