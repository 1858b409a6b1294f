import { type AnyActorRef, createActor, type Snapshot } from "xstate";
import {
  type AgentContext,
  agentHears,
  agentMachine,
  effectsCalledFor,
  toolCallMachine,
  type TurnContext,
  turnHears,
  turnMachine,
} from "../../src/machines/index.ts";
import { addressOf, type CallState, type Entry, type TurnState } from "../../src/state/index.ts";

/** The running effect of each actor in an actor system, as started and stopped by the actor's states. */
const running = new WeakMap<object, Map<string, string>>();

function runningIn(system: object): Map<string, string> {
  const found = running.get(system) ?? new Map<string, string>();
  running.set(system, found);
  return found;
}

interface ActionArguments {
  readonly self: { readonly id: string };
  readonly system: object;
}

/** Replace the actions that start and stop effects, and only record them. */
const actions = {
  startEffect: ({ self, system }: ActionArguments, { effect }: { readonly effect: string }): void => {
    runningIn(system).set(self.id, effect);
  },
  stopEffect: ({ self, system }: ActionArguments): void => {
    runningIn(system).delete(self.id);
  },
};

export const recordedCallMachine = toolCallMachine.provide({ actions });
export const recordedTurnMachine = turnMachine.provide({ actions, actors: { toolCall: recordedCallMachine } });
export const recordedAgentMachine = agentMachine.provide({ actions, actors: { turn: recordedTurnMachine } });

/** Starts the effects of restored states, as the runtime does. */
export function startRecorded(actor: AnyActorRef): void {
  actor.start();
  for (const { actorId, effect } of effectsCalledFor(actor)) runningIn(actor.system).set(actorId, effect);
}

export function effectsOf(actor: AnyActorRef): string[] {
  return [...runningIn(actor.system)].map(([actorId, effect]) => `${effect} ${actorId}`).sort();
}

/** The stored form of an actor, as a store returns it. */
export function persistedCopy(actor: AnyActorRef): Snapshot<unknown> {
  return JSON.parse(JSON.stringify(actor.getPersistedSnapshot())) as Snapshot<unknown>;
}

export interface MachineView {
  readonly value: unknown;
  readonly context: unknown;
}

interface Parent extends MachineView {
  readonly children: Readonly<Record<string, AnyActorRef | undefined>>;
}

export function snapshotOf(actor: AnyActorRef): Parent {
  return actor.getSnapshot() as Parent;
}

export function viewOf(actor: AnyActorRef | undefined): MachineView | undefined {
  if (!actor) return undefined;
  const { value, context } = snapshotOf(actor);
  const { turn, call } = context as { readonly turn?: TurnState; readonly call?: CallState };
  return { value, context: turn ?? call ?? context };
}

/** The machines of one agent with recording effects. `deliver` sends an entry to each machine that handles it, outermost first. */
export class RecordedTree {
  readonly root: AnyActorRef;

  constructor(snapshot?: Snapshot<unknown>) {
    this.root = createActor(recordedAgentMachine, { id: "agent", ...(snapshot ? { snapshot } : {}) });
    startRecorded(this.root);
  }

  deliver(entry: Entry): void {
    const { turnId, callId } = addressOf(entry);
    const namesNoCall = callId === null && (entry.type === "child.ended" || entry.type === "child.reported");
    const concernsAll = entry.type === "agent.resumed" || namesNoCall;
    const open = turnId === null ? [] : openCallIdsOf(this.turn(turnId));
    if (agentHears(entry)) this.root.send(entry);
    if (turnId === null) return;
    if (turnHears(entry)) this.turn(turnId)?.send(entry);
    for (const id of concernsAll ? open : [callId]) if (id !== null) this.call(turnId, id)?.send(entry);
  }

  turn(turnId: string): AnyActorRef | undefined {
    return snapshotOf(this.root).children[turnId];
  }

  call(turnId: string, callId: string): AnyActorRef | undefined {
    const turn = this.turn(turnId);
    return turn ? snapshotOf(turn).children[callId] : undefined;
  }

  get effects(): string[] {
    return effectsOf(this.root);
  }

  stop(): void {
    this.root.stop();
  }
}

/** The machines of a live agent as one value: the agent, its open turn, and the calls that have no result. */
export function treeView(root: AnyActorRef) {
  const { value, context, children } = snapshotOf(root);
  const { openTurnId } = context as AgentContext;
  const turn = openTurnId === null ? undefined : children[openTurnId];
  const calls = openCallIdsOf(turn).map((id) => [id, turn && viewOf(snapshotOf(turn).children[id])] as const);
  return { agent: { value, context }, turn: viewOf(turn), calls: Object.fromEntries(calls) };
}

function openCallIdsOf(turn: AnyActorRef | undefined): readonly string[] {
  return turn ? (snapshotOf(turn).context as TurnContext).turn.openCallIds : [];
}
