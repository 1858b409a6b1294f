import type { AnyActorRef, AnyMachineSnapshot } from "xstate";

/**
 * The state properties that start an effect on entry and stop it on exit. A restored actor runs no entry actions, so `meta` names
 * the effect too (`effectsCalledFor`).
 */
export function running<const Name extends string>(effect: Name) {
  return { meta: { effect }, entry: { type: "startEffect", params: { effect } }, exit: "stopEffect" } as const;
}

/** The `meta` of a state with an effect, and the params of its action `startEffect`. */
export interface EffectMeta<Name extends string = string> {
  readonly effect: Name;
}

/** An effect that the current state of an actor requires. */
export interface CalledFor {
  readonly actorId: string;
  readonly effect: string;
}

/** The effects that the current states of an actor and its descendants require. */
export function effectsCalledFor(actor: AnyActorRef): readonly CalledFor[] {
  const snapshot = actor.getSnapshot() as AnyMachineSnapshot;
  const metas = Object.values(snapshot.getMeta() as Readonly<Record<string, EffectMeta | undefined>>);
  const own = metas.flatMap((meta) => (meta ? [{ actorId: actor.id, effect: meta.effect }] : []));
  const children = Object.values(snapshot.children as Readonly<Record<string, AnyActorRef | undefined>>);
  return [...own, ...children.flatMap((child) => (child ? effectsCalledFor(child) : []))];
}
