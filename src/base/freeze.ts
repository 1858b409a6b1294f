/** The same value, read-only to the last field. */
export type DeepReadonly<T> = T extends (...args: never[]) => unknown
  ? T
  : T extends readonly unknown[] | object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

/**
 * Freezes a plain value and all that it holds, in place, and gives it back. What is frozen already is not looked into again,
 * so that freezing a thing twice costs nothing: only hand in what was made here, never what somebody else may still change.
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
