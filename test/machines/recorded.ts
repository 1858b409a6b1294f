import { type AnyActorRef, createActor, fromCallback, type Snapshot } from "xstate";
import {
  type AgentContext,
  agentHears,
  agentMachine,
  type CallEffectInput,
  compiled,
  type TurnEffectInput,
  toolCallMachine,
  turnHears,
  turnMachine,
} from "../../src/machines/index.ts";
import { addressOf, type Entry } from "../../src/state/index.ts";

/** What runs in an actor system: `effect {input}` of every effect that was started and not stopped. */
const running = new WeakMap<object, Map<object, string>>();

/** Stands where an effect stands: does nothing and is written down while it runs. */
function recorder<Input extends object | undefined>(name: string) {
  return fromCallback<Entry, Input>(({ input, system, self }) => {
    const effects = running.get(system) ?? new Map<object, string>();
    running.set(system, effects);
    effects.set(self, input === undefined ? name : `${name} ${JSON.stringify(input)}`);
    return () => effects.delete(self);
  });
}

export const recordedCallMachine = compiled(
  toolCallMachine.provide({
    actors: {
      performCall: recorder<CallEffectInput>("performCall"),
      enqueueCall: recorder<CallEffectInput>("enqueueCall"),
      spawnOrdered: recorder<CallEffectInput>("spawnOrdered"),
      settleChild: recorder<CallEffectInput>("settleChild"),
      settleWait: recorder<CallEffectInput>("settleWait"),
      reviewCall: recorder<CallEffectInput>("reviewCall"),
    },
  }),
);

export const recordedTurnMachine = compiled(
  turnMachine.provide({
    actors: {
      receive: recorder<TurnEffectInput>("receive"),
      think: recorder<TurnEffectInput>("think"),
      decide: recorder<TurnEffectInput>("decide"),
      settleRound: recorder<TurnEffectInput>("settleRound"),
      interruptOpenWork: recorder<TurnEffectInput>("interruptOpenWork"),
      complete: recorder<TurnEffectInput>("complete"),
      endTurn: recorder<TurnEffectInput>("endTurn"),
      toolCall: recordedCallMachine,
    },
  }),
);

export const recordedAgentMachine = compiled(
  agentMachine.provide({
    actors: { confirmPause: recorder<undefined>("confirmPause"), turn: recordedTurnMachine },
  }),
);

export function effectsOf(actor: AnyActorRef): string[] {
  return [...(running.get(actor.system)?.values() ?? [])].sort();
}

/** What is stored of an actor, as a store gives it back. */
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
  return { value, context };
}

/** The machines of one agent with recording effects, and an entry's way to each that hears it: outermost first. */
export class RecordedTree {
  readonly root: AnyActorRef;

  constructor(snapshot?: Snapshot<unknown>) {
    this.root = createActor(recordedAgentMachine, snapshot ? { snapshot } : {});
    this.root.start();
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
  return turn ? (snapshotOf(turn).context as { openCallIds: string[] }).openCallIds : [];
}
