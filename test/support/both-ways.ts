import { isDeepStrictEqual } from "node:util";
import {
  type AnyActorRef,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventObject,
  initialTransition,
  StateMachine,
  transition,
} from "xstate";
import { liveAgentMachine, liveToolCallMachine, liveTurnMachine } from "../../src/actors/index.ts";

/** Steps that were made both ways. */
export interface BothWays {
  readonly steps: number;
  /** Steps that XState makes otherwise, in words; of many the first. */
  readonly differences: readonly string[];
  /** Lets the machines step as they did before. */
  stop(): void;
}

const MOST_DIFFERENCES = 20;
/** Characters of each side of a difference. */
const LONGEST = 4_000;

/** From now on each step of every live agent of this process is made once more by XState, and compared. */
export function stepBothWays(tell: (difference: string) => void = () => undefined): BothWays {
  const differences: string[] = [];
  let steps = 0;
  const compare = (place: string, made: { readonly compiled: unknown; readonly interpreted: unknown }): void => {
    steps += 1;
    if (isDeepStrictEqual(made.compiled, made.interpreted) || differences.length >= MOST_DIFFERENCES) return;
    const [compiled, plain] = [made.compiled, made.interpreted].map((one) => JSON.stringify(one).slice(0, LONGEST));
    differences.push(`${place}: the compiled step gives ${compiled}, XState gives ${plain}`);
    tell(differences.at(-1) as string);
  };
  const machines: readonly AnyStateMachine[] = [liveAgentMachine, liveTurnMachine, liveToolCallMachine];
  const undo = machines.map((machine) => {
    const step = machine.transition.bind(machine);
    const begin = machine.getInitialSnapshot.bind(machine);
    const was: AnyStateMachine = Object.assign({}, machine);
    machine.transition = (snapshot: AnyMachineSnapshot, event: EventObject, scope) => {
      if (!event.type.startsWith("xstate.")) {
        compare(`${machine.id} ${JSON.stringify(snapshot.value)} ${event.type}`, bothWays(machine, snapshot, event, was));
      }
      return step(snapshot, event, scope);
    };
    machine.getInitialSnapshot = (scope, input) => {
      compare(`the beginning of ${machine.id}`, bothBeginnings(machine, input, was));
      return begin(scope, input);
    };
    return () => Object.assign(machine, { transition: step, getInitialSnapshot: begin });
  });
  return {
    get steps() {
      return steps;
    },
    differences,
    stop() {
      for (const one of undo) one();
    },
  };
}

/** A snapshot and the actions that led to it, as XState's pure functions give them. */
type Stepped = readonly [AnyMachineSnapshot, readonly { readonly type: string; readonly params?: unknown }[]];

/** The machine as XState steps it, whatever was made of it since. */
export function interpreted<Machine extends AnyStateMachine>(machine: Machine): Machine {
  const transition = StateMachine.prototype.transition.bind(machine);
  const getInitialSnapshot = StateMachine.prototype.getInitialSnapshot.bind(machine);
  return Object.assign({}, machine, { transition, getInitialSnapshot });
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

/** One event, by the machine as it is (or was) and as XState steps it. */
export function bothWays(machine: AnyStateMachine, snapshot: AnyMachineSnapshot, event: EventObject, was = machine) {
  const compiled = outcomeOf(() => transition(was, snapshot, event) as unknown as Stepped);
  const plain = outcomeOf(() => transition(interpreted(machine), snapshot, event) as unknown as Stepped);
  return { next: compiled.stepped?.[0], compiled: compiled.seen, interpreted: plain.seen };
}

/** The beginning of the machine, by both ways. */
export function bothBeginnings(machine: AnyStateMachine, input: unknown, was = machine) {
  const compiled = outcomeOf(() => initialTransition(was, input) as unknown as Stepped);
  const plain = outcomeOf(() => initialTransition(interpreted(machine), input) as unknown as Stepped);
  return { next: compiled.stepped?.[0], compiled: compiled.seen, interpreted: plain.seen };
}
