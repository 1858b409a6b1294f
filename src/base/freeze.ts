import { InvalidInputError } from "../errors/index.ts";
import type { Json } from "./json.ts";

/** The same type, read-only at every level. `Json` is read-only already, and is a recursive type that mapping would not end on. */
export type DeepReadonly<T> = [Json] extends [T] ? T : ReadonlyMembers<T>;

type ReadonlyMembers<T> = T extends (...args: never[]) => unknown
  ? T
  : T extends readonly unknown[] | object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

/**
 * Freezes a plain value and everything in it, in place, and returns it. A frozen object is not looked into again, so that
 * freezing twice costs nothing. Hand in only values that this code made: neither an object that somebody else may still
 * change, nor one that was frozen on the outside only (`Object.freeze`).
 */
export function deepFreeze<T>(value: T): DeepReadonly<T> {
  if (typeof value === "object" && value !== null) freezeAll(value);
  return value as DeepReadonly<T>;
}

function freezeAll(value: object): void {
  if (Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const member of Object.values(value) as unknown[]) {
    if (typeof member === "object" && member !== null) freezeAll(member);
  }
}

const changing = ["push", "pop", "shift", "unshift", "splice", "sort", "reverse", "fill", "copyWithin"] as const;

/**
 * Makes frozen lists whose errors say why they cannot be changed and what to do instead; those of a frozen array speak of
 * properties. The list is a copy; its members are not frozen here. Otherwise (JSON, spread, `structuredClone`, comparisons)
 * it is an array.
 * @param hint A sentence without its full stop: "draft.messages is read-only: use draft.add(…)".
 */
export function readOnlyLists(hint: string): <T>(members: readonly T[]) => readonly T[] {
  const refusals: PropertyDescriptorMap = {};
  for (const method of changing) {
    const refuse = (): never => {
      throw new InvalidInputError(`${method}() cannot be used here: ${hint}`);
    };
    refusals[method] = { value: refuse };
  }
  // Own methods rather than a subclass: engines spread and iterate fast only over arrays with the ordinary prototype.
  return (members) => Object.freeze(Object.defineProperties(members.slice(), refusals));
}

const refusedChange = /^Cannot (?:assign to read only|add|delete|define|redefine) property|is not extensible$/;

/** Whether code tried to change something frozen. JavaScript names the property, but not what would be right. */
export function isRefusedChange(error: unknown): boolean {
  return error instanceof TypeError && refusedChange.test(error.message);
}
