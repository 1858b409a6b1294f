import {
  type ActionExecutor,
  type AnyActorLogic,
  type AnyActorRef,
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  type EventObject,
  spawnChild,
  stopChild,
} from "xstate";

/*
 * Children of machines that run without an actor of XState. They have what XState asks of a child, and of the scope in which a
 * machine steps (`test/machines/xstate-inside.test.ts` holds both), and nothing for others: nobody can subscribe to them or inspect
 * them. What is restored or inspected is an actor of XState. A compiled step, which starts and stops them, is here too.
 */

/** How a child is made. */
export interface ChildOptions {
  readonly id: string;
  readonly src: string;
  readonly parent: AnyActorRef;
  readonly input: unknown;
}

/** Logic whose children run without an actor of XState where nobody inspects them. */
export interface LightLogic {
  readonly light: (options: ChildOptions) => AnyActorRef;
}

type Start<Input> = (given: { readonly input: Input; readonly self: object; readonly system: object }) => () => void;

/** What a compiled step does with a child: it starts one, or stops one that may be there. */
export interface Change {
  readonly child: Startable | undefined;
  /** Undefined: it is stopped. */
  readonly starts: { readonly id: string; readonly src: string; readonly input: unknown } | undefined;
}

/** A child with what XState's types do not show of it. */
type Startable = AnyActorRef & { readonly _processingStatus?: 0 | 1 | 2 };

class LightChild {
  readonly id: string;
  readonly src: string;
  readonly system: AnyActorRef["system"];
  readonly sessionId = "";
  readonly systemId = undefined;
  readonly _parent: AnyActorRef;
  readonly _syncSnapshot = false;
  /** XState's numbers: not started, running, stopped. */
  _processingStatus: 0 | 1 | 2 = 0;

  constructor({ id, src, parent }: ChildOptions) {
    this.id = id;
    this.src = src;
    this.system = parent.system as AnyActorRef["system"];
    this._parent = parent;
  }

  toJSON() {
    return { xstate$$type: 1, id: this.id };
  }
}

/** Work that is started and stopped, and hears nothing: what `fromCallback` makes an actor of. */
class LightCallback<Input> extends LightChild {
  readonly #input: Input;
  readonly #begin: Start<Input>;
  #end: (() => void) | undefined;

  constructor(options: ChildOptions, begin: Start<Input>) {
    super(options);
    this.#input = options.input as Input;
    this.#begin = begin;
  }

  start(): void {
    if (this._processingStatus !== 0) return;
    this._processingStatus = 1;
    this.#end = this.#begin({ input: this.#input, self: this, system: this.system });
  }

  _stop(): void {
    this._processingStatus = 2;
    this.#end?.();
    this.#end = undefined;
  }

  send(): void {}

  getSnapshot() {
    const status = this._processingStatus === 2 ? "stopped" : "active";
    return { status, output: undefined, error: undefined, input: this.#input };
  }

  getPersistedSnapshot() {
    return this.getSnapshot();
  }
}

/**
 * A machine that runs: its mailbox, its snapshot, and the scope in which it steps. Delays are not cancelled at its end, and the
 * machines of this house have none.
 */
class LightMachine extends LightChild {
  readonly #machine: AnyStateMachine;
  #snapshot: AnyMachineSnapshot;
  /** What a step leaves to be done when its snapshot is there: the changes of a compiled one, the work of XState's. */
  #changes: Change[] = none;
  readonly #deferred: (() => void)[] = [];
  readonly #mail: EventObject[] = [];
  #isStepping = false;
  #executor: ActionExecutor | undefined;

  constructor(options: ChildOptions, machine: AnyStateMachine) {
    super(options);
    this.#machine = machine;
    this.#snapshot = machine.getInitialSnapshot(this.#scope, options.input) as AnyMachineSnapshot;
  }

  get #scope(): AnyActorScope {
    return this as unknown as AnyActorScope;
  }

  get self(): this {
    return this;
  }

  /** What starts before its machine does is started with it. */
  perform(changes: Change[]): void {
    for (const { child, starts } of changes) {
      if (child && !starts && child._processingStatus !== 1) this.stopChild(child);
    }
    if (this._processingStatus === 1) this.#changes = changes;
  }

  /** XState replaces it for the time of a step that it makes. */
  get actionExecutor(): ActionExecutor {
    this.#executor ??= ({ exec, info, params }) => {
      const run = (): void => exec?.(info, params);
      if (this._processingStatus === 1) run();
      else this.#deferred.push(run);
    };
    return this.#executor;
  }

  set actionExecutor(executor: ActionExecutor) {
    this.#executor = executor;
  }

  defer(work: () => void): void {
    this.#deferred.push(work);
  }

  /** Nobody listens: whoever wants to must inspect. */
  emit(): void {}

  stopChild(child: AnyActorRef): void {
    (child as unknown as LightMachine)._stop();
  }

  start(): void {
    if (this._processingStatus !== 0) return;
    this._processingStatus = 1;
    this.#isStepping = true;
    try {
      this.#machine.start(this.#snapshot);
      this.#settle(this.#snapshot);
    } catch (error) {
      this.#fail(error);
    }
    this.#flush();
  }

  _stop(): void {
    if (this._processingStatus === 2) return;
    this.#mail.length = 0;
    if (this._processingStatus === 0) this._processingStatus = 2;
    else if (this.#isStepping) this.#mail.push(stopped);
    else this.#halt();
  }

  send(event: EventObject): void {
    if (this._processingStatus === 2) return;
    if (this._processingStatus === 0 || this.#isStepping) {
      this.#mail.push(event);
      return;
    }
    this.#isStepping = true;
    this.#step(event);
    this.#flush();
  }

  _send(event: EventObject): void {
    this.send(event);
  }

  getSnapshot(): AnyMachineSnapshot {
    return this.#snapshot;
  }

  getPersistedSnapshot(options?: unknown) {
    return this.#machine.getPersistedSnapshot(this.#snapshot, options);
  }

  #flush(): void {
    while (this.#mail.length > 0) this.#step(this.#mail.shift() as EventObject);
    this.#isStepping = false;
  }

  #step(event: EventObject): void {
    if (event === stopped) return this.#halt();
    try {
      this.#settle(this.#machine.transition(this.#snapshot, event, this.#scope) as AnyMachineSnapshot);
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#settle({ ...this.#snapshot, status: "error", error } as AnyMachineSnapshot);
  }

  /** What XState does at its event `xstate.stop`. */
  #halt(): void {
    const children = Object.values(this.#snapshot.children as Record<string, AnyActorRef>);
    this.#snapshot = { ...this.#snapshot, children: {}, status: "stopped" } as AnyMachineSnapshot;
    this.#leave();
    for (const child of children) this.stopChild(child);
  }

  #settle(snapshot: AnyMachineSnapshot): void {
    this.#snapshot = snapshot;
    for (let change = this.#changes.shift(); change; change = this.#changes.shift()) {
      const { child, starts } = change;
      if (starts && child?._processingStatus === 0) child.start();
      else if (!starts && child?._processingStatus === 1) this.stopChild(child);
    }
    for (let work = this.#deferred.shift(); work; work = this.#deferred.shift()) work();
    const { status, output, error } = snapshot;
    if (status === "active" || status === "stopped") return;
    this.#leave();
    const [actorId, system] = [this.id, this.system as unknown as { _relay: (...given: unknown[]) => void }];
    const told = status === "done" ? { output } : { error };
    system._relay(this, this._parent, { type: `xstate.${status}.actor.${actorId}`, ...told, actorId });
  }

  #leave(): void {
    this.#mail.length = 0;
    this._processingStatus = 2;
  }
}

const none: Change[] = [];
const stopped: EventObject = { type: "xstate.stop" };
const [spawning, stopping] = [spawnChild(""), stopChild("")] as unknown as readonly {
  readonly execute: (scope: AnyActorScope, params: unknown) => void;
}[];

/** A child that is to be started: a light one where its logic brings it. */
export function childOf(logic: object, options: ChildOptions): AnyActorRef {
  if ("light" in logic) return (logic as LightLogic).light(options);
  return createActor(logic as AnyActorLogic, { ...options, syncSnapshot: false, systemId: undefined } as object);
}

/** Logic of XState whose children are light where nobody inspects them. */
export function lightCallback<Logic extends object, Input>(logic: Logic, begin: Start<Input>): Logic & LightLogic {
  const light = (options: ChildOptions): AnyActorRef => new LightCallback(options, begin) as unknown as AnyActorRef;
  return Object.assign(logic, { light });
}

export function lightMachine<Machine extends AnyStateMachine>(machine: Machine): Machine & LightLogic {
  const light = (options: ChildOptions): AnyActorRef => new LightMachine(options, machine) as unknown as AnyActorRef;
  return Object.assign(machine, { light });
}

export type Context = Record<string, unknown>;
type Children = Record<string, AnyActorRef | undefined>;

/** Thrown at what goes XState's way; shared, because nobody sees it. */
export const unknown = new Error("this part of a chart is not compiled");

export const noSpawn = (): never => {
  throw unknown;
};

/** One step while it is computed, and the argument of the chart's own functions, which read the context and the event of it. */
export class Step {
  context: Context;
  children: Children;
  /** Counts what would have made another snapshot. */
  changes = 0;
  /** Children to be started and stopped when nothing can fail any more. */
  readonly #effects: Change[] = [];
  #isOwn = false;
  readonly #hasNames: boolean;
  readonly event: EventObject;
  readonly self: AnyActorRef;
  readonly system: AnyActorScope["system"];
  /** An assignment that spawns goes XState's way. */
  readonly spawn = noSpawn;

  /** `hasNames`: children are named by what happens, not by the chart alone. */
  constructor(
    { context, children }: Pick<Step, "context" | "children">,
    event: EventObject,
    { self, system }: AnyActorScope,
    hasNames: boolean,
  ) {
    this.context = context;
    this.children = children;
    this.event = event;
    this.self = self as AnyActorRef;
    this.system = system;
    this.#hasNames = hasNames;
  }

  assign(context: Context): void {
    this.context = context;
    this.changes += 1;
  }

  start(src: string, id: string, input: unknown, child: AnyActorRef): void {
    this.#ownChildren()[id] = child;
    this.changes += 1;
    this.#effects.push({ child, starts: { id, src, input } });
  }

  stop(child: AnyActorRef | undefined): void {
    if (child && child.id in this.children) delete this.#ownChildren()[child.id];
    this.changes += 1;
    this.#effects.push({ child, starts: undefined });
  }

  /** Copied at the first change. Where names are many and never the same, an object without a shape is faster. */
  #ownChildren(): Children {
    if (this.#isOwn) return this.children;
    this.#isOwn = true;
    const { children } = this;
    if (!this.#hasNames) return (this.children = { ...children });
    const own = { __proto__: null } as unknown as Children;
    // A spread takes three to five times as long here.
    for (const id in children) own[id] = children[id];
    return (this.children = own);
  }

  /** Lets the step happen once it is computed. */
  happen(scope: AnyActorScope): void {
    makeChanges(scope, this.#effects, {
      context: this.context,
      event: this.event,
      self: this.self,
      system: this.system,
    });
  }
}

/** Lets the changes of a compiled step happen: a light machine of light children makes them itself, anybody else as XState's own. */
function makeChanges(scope: AnyActorScope, changes: Change[], info: object): void {
  if (changes.length === 0) return;
  if (
    scope instanceof LightMachine &&
    changes.every(({ child }) => !child || (child as object) instanceof LightChild)
  ) {
    return scope.perform(changes);
  }
  for (const { child, starts } of changes) {
    const params = starts ? { ...starts, systemId: undefined, actorRef: child } : child;
    const type = starts ? "xstate.spawnChild" : "xstate.stopChild";
    const exec = (starts ? spawning : stopping)?.execute.bind(null, scope, params);
    scope.actionExecutor({ type, info, params, exec } as Parameters<ActionExecutor>[0]);
  }
}
