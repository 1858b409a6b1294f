import { InvalidInputError } from "../errors/index.ts";
import type { Json } from "./plain-json.ts";

/** The same value, read-only to the last field. What may be any JSON value is that already, and has no last field to a compiler. */
export type DeepReadonly<T> = [Json] extends [T] ? T : ReadonlyMembers<T>;

type ReadonlyMembers<T> = T extends (...args: never[]) => unknown
  ? T
  : T extends readonly unknown[] | object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

/**
 * Freezes a plain value and all that it holds, in place, and gives it back. What is frozen already is not looked into again,
 * so that freezing a thing twice costs nothing: only hand in what was made here, never what somebody else may still change, and
 * freeze nothing but the outside of what holds more (`Object.freeze`).
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
 * Makes frozen lists that say in words why they cannot be changed, and how to do it right: a frozen array by itself speaks of
 * properties. The list is a copy; its members are frozen already, or are to be frozen by whoever made them. To all else (JSON,
 * spread, `structuredClone`, comparisons) it is an array.
 * @param hint Whole sentence, without its end: "draft.messages is read-only: use draft.add(…)".
 */
export function readOnlyLists(hint: string): <T>(members: readonly T[]) => readonly T[] {
  const refusals: PropertyDescriptorMap = {};
  for (const method of changing) {
    const refuse = (): never => {
      throw new InvalidInputError(`${method}() cannot be used here: ${hint}`);
    };
    refusals[method] = { value: refuse };
  }
  // Methods of its own, not a class: spreading and iterating are fast only for arrays with the prototype that all arrays have.
  return (members) => Object.freeze(Object.defineProperties(members.slice(), refusals));
}

const refusedChange = /^Cannot (?:assign to read only|add|delete|define|redefine) property|is not extensible$/;

/** Whether code tried to change something frozen: JavaScript says which property, and not what would be right. */
export function isRefusedChange(error: unknown): boolean {
  return error instanceof TypeError && refusedChange.test(error.message);
}
