import {
  type AnyActorRef,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventObject,
  type ExecutableActionsFrom,
  initialTransition,
  StateMachine,
  transition,
} from "xstate";

/** A snapshot and the actions that led to it, as XState's pure functions give them. */
type Stepped = readonly [AnyMachineSnapshot, readonly ExecutableActionsFrom<AnyStateMachine>[]];

/** The machine as XState steps it, whatever was made of it since. */
export function interpreted<Machine extends AnyStateMachine>(machine: Machine): Machine {
  const { transition: step, getInitialSnapshot } = StateMachine.prototype;
  return { ...machine, transition: step.bind(machine), getInitialSnapshot: getInitialSnapshot.bind(machine) };
}

/** All that anybody can see of a snapshot, as a value that can be compared. */
export function seen(snapshot: AnyMachineSnapshot): Readonly<Record<string, unknown>> {
  const { machine, children, _nodes: nodes, tags, ...fields } = snapshot;
  return {
    ...fields,
    fields: Object.keys(snapshot),
    nodes: nodes.map(({ id }) => id),
    tags: [...tags],
    children: Object.entries(children as Record<string, AnyActorRef>).map(([key, child]) => [key, seenChild(child)]),
    meta: snapshot.getMeta() as unknown,
    stored: JSON.stringify(machine.getPersistedSnapshot(snapshot)),
    written: JSON.stringify(snapshot),
  };
}

function seenChild(child: AnyActorRef): unknown {
  const snapshot = child.getSnapshot() as AnyMachineSnapshot;
  const { id, src, systemId } = child;
  return { id, src, systemId, snapshot: "machine" in snapshot ? seen(snapshot) : snapshot };
}

/** A step: the snapshot and, in order, which children were to be started and stopped, and with what. */
function seenStep([snapshot, actions]: Stepped): unknown {
  const told = actions.map(({ type, params }) => {
    const { id, src, input, actorRef } = (params ?? {}) as Record<string, unknown>;
    return { type, id, src, input, child: (actorRef as AnyActorRef | undefined)?.id };
  });
  return { ...seen(snapshot), actions: told };
}

/** What a step gives, or the words of the error that it throws. */
function outcomeOf(step: () => Stepped): { readonly stepped?: Stepped; readonly seen: unknown } {
  try {
    const stepped = step();
    return { stepped, seen: seenStep(stepped) };
  } catch (error) {
    return { seen: String(error) };
  }
}

/** One event, by the machine as it is and as XState steps it. */
export function bothWays(machine: AnyStateMachine, snapshot: AnyMachineSnapshot, event: EventObject) {
  const compiled = outcomeOf(() => transition(machine, snapshot, event));
  const plain = outcomeOf(() => transition(interpreted(machine), snapshot, event));
  return { next: compiled.stepped?.[0], compiled: compiled.seen, interpreted: plain.seen };
}

/** The beginning of the machine, by both ways. */
export function bothBeginnings(machine: AnyStateMachine, input: unknown) {
  const compiled = outcomeOf(() => initialTransition(machine, input));
  const plain = outcomeOf(() => initialTransition(interpreted(machine), input));
  return { next: compiled.stepped?.[0], compiled: compiled.seen, interpreted: plain.seen };
}
