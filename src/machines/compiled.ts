import {
  type AnyActorRef,
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
  type AnyTransitionDefinition,
  and,
  assign,
  type EventObject,
  enqueueActions,
  not,
  or,
  pathToStateValue,
  type StateValue,
  spawnChild,
  stopChild,
} from "xstate";
import { isWhole } from "./entry-routing.ts";
import { childOf, type Context, type LightLogic, lightMachine, noSpawn, Step, unknown } from "./light-child.ts";

/*
 * Steps of a machine by a table that is made from its chart, instead of being worked out from the chart each time
 * (docs/decisions/2026-11-23-compiled-charts.md). The chart stays what says how the machine goes: this file knows no state, event or
 * action of ours.
 *
 * Invariants
 * 1. A compiled step gives what XState's own gives: value, context, children, tags, and the same actions in the same order.
 * 2. What is not known here goes XState's way: its own events (`xstate.*`), parallel, final and history states, delays, actions
 *    and guards of other forms. So does a step in which anything throws, which leaves the error to XState: until its end a step has
 *    done nothing but compute.
 * 3. A compiled machine sends no inspection events of its steps. Who inspects must be given the machine as it was.
 */

type Guard = (step: Step) => boolean;
type Action = (step: Step) => void;

/** The active states of a machine: one state without inner states, and those around it, outermost first. */
interface Configuration {
  readonly nodes: AnyStateNode[];
  readonly value: StateValue;
  readonly tags: Set<string>;
  /** By type of event, innermost state first; undefined where one of them is not known. */
  readonly transitions: Map<string, readonly Transition[] | undefined>;
  /** Those that wait for no event. */
  readonly always: readonly Transition[];
}

interface Transition {
  readonly guard: Guard | undefined;
  /** On leaving states, on the way, and on entering states. */
  readonly actions: readonly Action[];
  /** Undefined: no state is left. */
  readonly target: AnyStateNode | undefined;
}

/** What XState's types do not show of its built-in actions and guards, which are functions with fields. */
interface BuiltIn {
  readonly resolve?: unknown;
  readonly execute: (scope: AnyActorScope, params: unknown) => void;
  readonly check?: unknown;
  readonly guards: readonly unknown[];
  readonly assignment: unknown;
  readonly collect: (given: object) => void;
  readonly actorRef: unknown;
  readonly src: unknown;
  readonly id: unknown;
  readonly input: unknown;
  readonly systemId: unknown;
  readonly syncSnapshot: unknown;
}

const builtIn = (made: unknown): BuiltIn => made as BuiltIn;
const assigning = builtIn(assign({}));
const enqueueing = builtIn(enqueueActions(() => undefined));
const spawning = builtIn(spawnChild(""));
const stopping = builtIn(stopChild(""));
const isAll = builtIn(and([])).check;
const isAny = builtIn(or([])).check;
const isNot = builtIn(not("")).check;

/** The chart of one machine, read when it is first needed. */
class Chart {
  readonly #machine: AnyStateMachine;
  readonly #configurations = new Map<AnyStateNode, Configuration | undefined>();
  #entry: Transition | undefined;
  #blank: AnyMachineSnapshot | undefined;
  /** Whether children are named by what happens: known as soon as a part of the chart that does so is read. */
  #hasNames = false;

  constructor(machine: AnyStateMachine) {
    this.#machine = machine;
  }

  /** The snapshot after an event; undefined where XState has to say it. */
  next(snapshot: AnyMachineSnapshot, event: EventObject, scope: AnyActorScope): AnyMachineSnapshot | undefined {
    if (event.type.startsWith("xstate.") || snapshot.status !== "active") return undefined;
    const from = this.#at(snapshot._nodes.at(-1) as AnyStateNode);
    const candidates = from && this.#on(from, event.type);
    if (!candidates) return undefined;
    const step = new Step(snapshot as Pick<Step, "context" | "children">, event, scope, this.#hasNames);
    let next: AnyMachineSnapshot;
    try {
      next = this.#taken(step, snapshot, from, chosen(candidates, step));
    } catch {
      return undefined;
    }
    step.happen(scope);
    return next;
  }

  /** The snapshot of a machine that begins; undefined where XState has to say it. */
  first(input: unknown, scope: AnyActorScope): AnyMachineSnapshot | undefined {
    const event = { type: "xstate.init", input } as EventObject;
    const step = new Step({ context: {}, children: {} }, event, scope, this.#hasNames);
    let snapshot: AnyMachineSnapshot;
    try {
      snapshot = this.#begun(step, input);
    } catch {
      return undefined;
    }
    step.happen(scope);
    return snapshot;
  }

  #begun(step: Step, input: unknown): AnyMachineSnapshot {
    const { root, config } = this.#machine;
    const given = (config as { readonly context?: unknown }).context;
    const leaf = initialLeafOf(root);
    const at = this.#at(leaf);
    if (!at) throw unknown;
    this.#entry ??= { guard: undefined, actions: this.#entering(at.nodes), target: leaf };
    this.#blank ??= this.#machine.resolveState({ value: at.value, context: {} }) as AnyMachineSnapshot;
    const own = typeof given === "function" ? given({ spawn: noSpawn, input, self: step.self }) : given;
    // The blank one is no snapshot of this machine: there always is another.
    step.changes = 1;
    step.context = (own ?? {}) as Context;
    return this.#taken(step, this.#blank, at, this.#entry);
  }

  /** Takes the transition, if there is one, and then those that wait for no event. */
  #taken(
    step: Step,
    before: AnyMachineSnapshot,
    from: Configuration,
    first: Transition | undefined,
  ): AnyMachineSnapshot {
    let at = from;
    let isSame = step.changes === 0;
    for (let taken = first; taken; taken = chosen(at.always, step)) {
      const { changes } = step;
      for (const action of taken.actions) action(step);
      const to = taken.target ? this.#at(taken.target) : at;
      if (!to) throw unknown;
      if (to === at && step.changes === changes && taken !== first) break;
      isSame &&= to === at && step.changes === changes;
      at = to;
    }
    if (isSame) return before;
    const { context, children } = step;
    return { ...before, context, children, _nodes: at.nodes, value: at.value, tags: at.tags };
  }

  /** The configuration whose innermost state this is; undefined if it has parts that are not known. */
  #at(leaf: AnyStateNode): Configuration | undefined {
    return this.#configurations.get(leaf) ?? readOnce(this.#configurations, leaf, () => this.#configuration(leaf));
  }

  #configuration(leaf: AnyStateNode): Configuration {
    const nodes = [...chainOf(leaf)].toReversed();
    if (leaf.type !== "atomic" || nodes.some(({ type }) => type === "parallel")) throw unknown;
    const always = nodes.toReversed().flatMap((node) => node.always ?? []);
    return {
      nodes,
      value: pathToStateValue(leaf.path),
      tags: new Set(nodes.flatMap(({ tags }) => tags)),
      transitions: new Map(),
      always: always.map((one) => this.#transition(nodes, one)),
    };
  }

  /** The transitions for an event, of which the first whose guard holds is taken; undefined if one of them is not known. */
  #on({ nodes, transitions }: Configuration, type: string): readonly Transition[] | undefined {
    return (
      transitions.get(type) ??
      readOnce(transitions, type, () => {
        const candidates = nodes.toReversed().flatMap((node) => candidatesOf(node, type));
        return candidates.map((one) => this.#transition(nodes, one));
      })
    );
  }

  #transition(active: readonly AnyStateNode[], given: AnyTransitionDefinition): Transition {
    const { guard, actions, target, source, reenter } = given;
    const [aim, other] = (target ?? []) as readonly AnyStateNode[];
    const own = actions.map((action) => this.#action(action));
    const when = guard === undefined ? undefined : this.#guard(guard);
    if (!aim) return { guard: when, actions: own, target: undefined };
    const isWithin = !reenter && (aim === source || isBelow(aim, source));
    // The innermost state that is neither left nor entered.
    const domain = isWithin ? source : [...chainOf(aim)].find((node) => isBelow(aim, node) && isBelow(source, node));
    if (other || !domain) throw unknown;
    const leaf = initialLeafOf(aim);
    const left = active.filter((node) => isBelow(node, domain)).toReversed();
    const entered = [...chainOf(leaf)].toReversed().filter((node) => isBelow(node, domain));
    return { guard: when, actions: [...this.#leaving(left), ...own, ...this.#entering(entered)], target: leaf };
  }

  #leaving(nodes: readonly AnyStateNode[]): readonly Action[] {
    return nodes.flatMap((node) => {
      if (Object.values(node.states).some(({ type }) => type === "history")) throw unknown;
      return [...node.exit.map((action) => this.#action(action)), ...node.invoke.map(({ id }) => stopOf(id))];
    });
  }

  #entering(nodes: readonly AnyStateNode[]): readonly Action[] {
    return nodes.flatMap((node) => [
      ...node.entry.map((action) => this.#action(action)),
      ...node.invoke.map((invoke) => this.#spawn(builtIn({ ...invoke, syncSnapshot: invoke.onSnapshot }))),
    ]);
  }

  #guard(guard: unknown): Guard {
    if (typeof guard === "string") return this.#guard(this.#machine.implementations.guards[guard]);
    if (typeof guard !== "function") throw unknown;
    const { check, guards } = builtIn(guard);
    if (check === undefined) return (step) => Boolean(guard(step));
    const parts = guards.map((part) => this.#guard(part));
    if (check === isAll) return (step) => parts.every((part) => part(step));
    if (check === isAny) return (step) => parts.some((part) => part(step));
    if (check === isNot) return (step) => !parts[0]?.(step);
    throw unknown;
  }

  #action(action: unknown): Action {
    if (typeof action === "string") return this.#action(this.#machine.implementations.actions[action]);
    if (typeof action !== "function") throw unknown;
    const read = builtIn(action);
    if (read.resolve === assigning.resolve) return assignment(read.assignment);
    if (read.resolve === enqueueing.resolve) return this.#enqueued(read);
    if (read.resolve === spawning.resolve) return this.#spawn(read);
    if (read.resolve === stopping.resolve) return stopOf(read.actorRef);
    throw unknown;
  }

  #spawn({ src, id, input, systemId, syncSnapshot }: BuiltIn): Action {
    const logic = typeof src === "string" ? this.#machine.implementations.actors[src] : undefined;
    if (!logic || typeof src !== "string" || id === undefined || systemId || syncSnapshot) throw unknown;
    if (typeof id === "function") this.#hasNames = true;
    return (step) => {
      const name = (typeof id === "function" ? id(step) : id) as string;
      const given: unknown = typeof input === "function" ? input(step) : input;
      step.start(src, name, given, childOf(logic as object, { id: name, src, parent: step.self, input: given }));
    };
  }

  #enqueued({ collect }: BuiltIn): Action {
    this.#hasNames = true;
    let actions: Action[] = [];
    const enqueue = Object.assign((action: unknown) => actions.push(this.#action(action)), {
      assign: (given: unknown) => actions.push(assignment(given)),
      stopChild: (actorRef: unknown) => actions.push(stopOf(actorRef)),
      spawnChild: (src: unknown, options: object) => actions.push(this.#spawn(builtIn({ src, ...options }))),
    });
    return (step) => {
      actions = [];
      const { context, event, self, system } = step;
      collect({ context, event, self, system, enqueue });
      for (const action of actions) action(step);
    };
  }
}

function assignment(given: unknown): Action {
  if (typeof given !== "function") throw unknown;
  if (isWhole(given)) return (step) => step.assign(given(step) as Context);
  return (step) => step.assign({ ...step.context, ...(given(step) as Context) });
}

function stopOf(actorRef: unknown): Action {
  return (step) => {
    const found: unknown = typeof actorRef === "function" ? actorRef(step) : actorRef;
    step.stop(typeof found === "string" ? step.children[found] : (found as AnyActorRef));
  };
}

function* chainOf(node: AnyStateNode): Generator<AnyStateNode> {
  for (let at: AnyStateNode | undefined = node; at; at = at.parent) yield at;
}

function isBelow(node: AnyStateNode, above: AnyStateNode): boolean {
  return node !== above && [...chainOf(node)].includes(above);
}

function initialLeafOf(node: AnyStateNode): AnyStateNode {
  if (node.type !== "compound") return node;
  const { target, actions } = node.initial;
  if (!target[0] || actions.length > 0) throw unknown;
  return initialLeafOf(target[0]);
}

/** The transitions of a state for a type of event: those for the type itself first, then those for families, the closest first. */
function candidatesOf({ transitions }: AnyStateNode, type: string): readonly AnyTransitionDefinition[] {
  const families = [...transitions.keys()].filter(
    (key) => key.endsWith("*") && `${type}.`.startsWith(key.slice(0, -1)),
  );
  const keys = families.toSorted((one, other) => other.length - one.length);
  return [type, ...keys].flatMap((key) => transitions.get(key) ?? []);
}

/** Reads a part of the chart, and keeps it; undefined where it is not known. */
function readOnce<Key, Part>(kept: Map<Key, Part | undefined>, key: Key, read: () => Part): Part | undefined {
  if (kept.has(key)) return undefined;
  let part: Part | undefined;
  try {
    part = read();
  } catch (error) {
    if (error !== unknown) throw error;
  }
  kept.set(key, part);
  return part;
}

/** The first of the transitions whose guard holds. */
function chosen(transitions: readonly Transition[], step: Step): Transition | undefined {
  for (const transition of transitions) if (!transition.guard || transition.guard(step)) return transition;
  return undefined;
}

/**
 * Makes the machine step by a table from now on; returns it. Give it a machine of its own (`provide` makes one): whoever inspects
 * needs one that is not compiled.
 */
export function compiled<Machine extends AnyStateMachine>(machine: Machine): Machine & LightLogic {
  const chart = new Chart(machine);
  const transition = machine.transition.bind(machine);
  const getInitialSnapshot = machine.getInitialSnapshot.bind(machine);
  machine.transition = (snapshot: AnyMachineSnapshot, event: EventObject, scope: AnyActorScope) =>
    chart.next(snapshot, event, scope) ?? transition(snapshot, event, scope);
  machine.getInitialSnapshot = (scope: AnyActorScope, input?: unknown) =>
    chart.first(input, scope) ?? getInitialSnapshot(scope, input);
  return lightMachine(machine);
}
