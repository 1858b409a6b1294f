import { type AnyActorLogic, type AnyActorRef, createActor } from "xstate";

/*
 * Children of machines that run without an actor of XState. They have what XState asks of a child
 * (`test/machines/xstate-inside.test.ts` holds it), and nothing for others: nobody can subscribe to them or inspect them. What is
 * restored or inspected is an actor of XState.
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
