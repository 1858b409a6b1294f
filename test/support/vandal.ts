/** The outcome of every change that code can try on a value that it received. A refused change throws; its error is recorded. */
export interface Damage {
  /** The messages of the refusals. */
  readonly refusals: Set<string>;
  /** The number of successful changes. */
  changes: number;
}

const listMethods = ["push", "pop", "shift", "unshift", "splice", "sort", "reverse", "fill", "copyWithin"] as const;

/** Tries every change on the value and on everything in it; models, compilers, strategies and classes belong to their author. */
export function vandalise(value: unknown, damage: Damage): void {
  const { stackTraceLimit } = Error;
  // The stacks of these thousands of errors are never read, and creating them takes most of the time.
  Error.stackTraceLimit = 0;
  for (const change of partsOf(value, new Set()).flatMap(changesOf)) {
    try {
      change();
      damage.changes += 1;
    } catch (error) {
      damage.refusals.add(error instanceof Error ? error.message : String(error));
    }
  }
  Error.stackTraceLimit = stackTraceLimit;
}

/** The value and all plain objects and lists in it, innermost first, because the outer ones may be emptied. */
function partsOf(value: unknown, seen: Set<object>): readonly object[] {
  if (typeof value !== "object" || value === null || seen.has(value)) return [];
  if (!Array.isArray(value) && ![Object.prototype, null].includes(Object.getPrototypeOf(value) as object | null))
    return [];
  if (["countPromptTokens", "compile", "compact"].some((method) => Object.hasOwn(value, method))) return [];
  seen.add(value);
  const members = Object.keys(value).flatMap((key) => partsOf((value as Record<string, unknown>)[key], seen));
  return [...members, value];
}

function changesOf(part: object): readonly (() => void)[] {
  const fields = part as Record<string, unknown>;
  const list = part as Record<(typeof listMethods)[number], (...given: readonly unknown[]) => unknown>;
  const keys = Object.keys(part);
  return [
    ...keys.map((key) => () => {
      fields[key] = "damaged";
    }),
    () => Object.assign(part, { [keys[0] ?? "added"]: "damaged", more: "damaged" }),
    () => Object.defineProperty(part, keys[0] ?? "defined", { value: "damaged" }),
    () => Object.setPrototypeOf(part, { damaged: true }),
    ...(Array.isArray(part) ? listMethods.map((method) => () => list[method]({ damaged: true })) : []),
    ...(Array.isArray(part) ? [() => (part.length = 0)] : []),
    ...keys.map((key) => () => delete fields[key]),
  ];
}
