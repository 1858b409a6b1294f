import {
  type ActionExecutor,
  type AnyActorLogic,
  type AnyActorRef,
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  type EventObject,
} from "xstate";

/*
 * Children of machines that run without an actor of XState. They have what XState asks of a child, and of the scope in which a
 * machine steps (`test/machines/xstate-inside.test.ts` holds both), and nothing for others: nobody can subscribe to them or inspect
 * them. What is restored or inspected is an actor of XState.
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
  /** What a step leaves to be done when its snapshot is there. */
  readonly #deferred: (() => void)[] = [];
  readonly #mail: EventObject[] = [];
  #isStepping = false;

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

  /** A field of its own: XState replaces it for the time of a step. */
  actionExecutor: ActionExecutor = ({ exec, info, params }) => {
    const run = (): void => exec?.(info, params);
    if (this._processingStatus === 1) run();
    else this.#deferred.push(run);
  };

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
    this.#take(() => {
      this.#machine.start(this.#snapshot);
      return this.#snapshot;
    });
    this.#flush();
  }

  _stop(): void {
    if (this._processingStatus === 2) return;
    this.#mail.length = 0;
    if (this._processingStatus === 0) this._processingStatus = 2;
    else this.send({ type: "xstate.stop" });
  }

  send(event: EventObject): void {
    if (this._processingStatus === 2) return;
    this.#mail.push(event);
    if (this._processingStatus === 1 && !this.#isStepping) this.#flush();
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
    this.#isStepping = true;
    for (let event = this.#mail.shift(); event; event = this.#mail.shift()) {
      const next = event;
      this.#take(() => this.#machine.transition(this.#snapshot, next, this.#scope) as AnyMachineSnapshot);
      if (event.type === "xstate.stop") this.#leave();
    }
    this.#isStepping = false;
  }

  #take(step: () => AnyMachineSnapshot): void {
    try {
      this.#settle(step());
    } catch (error) {
      this.#settle({ ...this.#snapshot, status: "error", error } as AnyMachineSnapshot);
    }
  }

  #settle(snapshot: AnyMachineSnapshot): void {
    this.#snapshot = snapshot;
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
