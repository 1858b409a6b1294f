import { type ActorRefFrom, createActor, type InspectionEvent, type Snapshot } from "xstate";
import {
  bindHost,
  type Host,
  isOver,
  liveAgentMachine,
  type liveToolCallMachine,
  type liveTurnMachine,
} from "../../actors/index.ts";
import { holdProcess } from "../../base/index.ts";
import { type AgentContext, agentHears, allCallsHear, lifecycleOf, turnHears } from "../../machines/index.ts";
import { addressOf, type CallState, type Entry, type Lifecycle, type TurnState } from "../../state/index.ts";

interface ActorTreeStart {
  readonly agentId: string;
  /** From recovery; absent for an agent without entries. */
  readonly snapshot: Snapshot<unknown> | undefined;
  readonly inspect: ((agentId: string, event: InspectionEvent) => void) | undefined;
}

/** A running effect: of the turn or the agent, or of one of its calls. */
export interface EffectPlace {
  readonly callId: string | null;
}

/**
 * The live machines of one agent: a root actor, its turn, its calls. An entry is delivered to every machine on its
 * address, outermost first; machines never send to one another.
 */
export class ActorTree {
  readonly #root: ActorRefFrom<typeof liveAgentMachine>;
  /** The turn that ended last, whose actor is gone. */
  #lastTurn: TurnState | undefined;
  #letGo: (() => void) | undefined;

  constructor(start: ActorTreeStart, host: Host) {
    const { agentId, snapshot, inspect } = start;
    this.#root = createActor(liveAgentMachine, {
      id: agentId,
      ...(snapshot ? { snapshot } : {}),
      ...(inspect ? { inspect: (event: InspectionEvent) => inspect(agentId, event) } : {}),
    });
    bindHost(this.#root.system, host);
  }

  start(): void {
    this.#root.start();
    this.#holdWhileBusy();
  }

  stop(): void {
    this.#root.stop();
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

  /** Running effects; each is an actor that lives as long as its state. */
  get effects(): readonly EffectPlace[] {
    return effectsIn(this.#root.getSnapshot(), null);
  }

  turn(turnId: string): TurnState | undefined {
    const live = this.#turn(turnId)?.getSnapshot().context;
    return live ?? (this.#lastTurn?.turnId === turnId ? this.#lastTurn : undefined);
  }

  call(turnId: string, callId: string): CallState | undefined {
    return this.#call(turnId, callId)?.getSnapshot().context;
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
    if (entry.type === "turn.ended" && turn) this.#lastTurn = turn.getSnapshot().context;
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

interface MachineSnapshot {
  readonly children: Readonly<Record<string, { getSnapshot(): unknown } | undefined>>;
}

function effectsIn({ children }: MachineSnapshot, callId: string | null): EffectPlace[] {
  return Object.entries(children).flatMap(([id, child]) => {
    const snapshot = child?.getSnapshot();
    if (!isMachine(snapshot)) return child && !isOver(child) ? [{ callId }] : [];
    return effectsIn(snapshot, isCall(snapshot) ? id : callId);
  });
}

function isMachine(snapshot: unknown): snapshot is MachineSnapshot & { readonly context: object } {
  return typeof snapshot === "object" && snapshot !== null && "value" in snapshot && "children" in snapshot;
}

function isCall({ context }: { readonly context: object }): boolean {
  return "callId" in context;
}
