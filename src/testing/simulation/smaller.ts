/** How a kind of programs gets smaller. */
export interface SmallerRules {
  /** The simplest value of fields with texts, by their names. Other texts are kept. */
  readonly plainest: Readonly<Record<string, unknown>>;
  /** Simpler values of a field, in the place of those of its value; `undefined` to use those of its value. */
  readonly field?: (name: string, value: unknown, parts: object) => readonly unknown[] | undefined;
  /** Values that replace the whole object. Default: none. */
  readonly instead?: (parts: object) => readonly unknown[];
}

/** Slightly smaller programs, the smallest first. A program is plain data. */
export function smallerThan<Program>(program: Program, rules: SmallerRules): Program[] {
  const programs = [...smaller(program, "", rules)] as Program[];
  // Try removals before simplifications: a simplified part may fail only in combination with one that is not needed.
  return programs.toSorted((one, other) => lengthOf(one) - lengthOf(other));
}

function lengthOf(program: unknown): number {
  return JSON.stringify(program).length;
}

function* smaller(value: unknown, name: string, rules: SmallerRules): Generator {
  if (Array.isArray(value)) yield* smallerLists(value, rules);
  else if (typeof value === "number") {
    for (const less of new Set([1, Math.floor(value / 2), value - 1])) if (less >= 1 && less < value) yield less;
  } else if (typeof value === "string") {
    const plain = rules.plainest[name];
    if (plain !== undefined && plain !== value) yield plain;
  } else if (typeof value === "object" && value !== null) yield* smallerParts(value, rules);
}

function* smallerLists(list: readonly unknown[], rules: SmallerRules): Generator {
  for (let size = list.length; size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < list.length; from += size) yield list.toSpliced(from, size);
  }
  for (const [index, item] of list.entries()) {
    for (const less of smaller(item, "", rules)) yield list.with(index, less);
  }
}

function* smallerParts(parts: object, rules: SmallerRules): Generator {
  yield* rules.instead?.(parts) ?? [];
  for (const [name, value] of Object.entries(parts)) {
    for (const less of rules.field?.(name, value, parts) ?? smaller(value, name, rules))
      yield { ...parts, [name]: less };
  }
}

/** The kind of a fault: its first line without ids and numbers. A smaller program has to fail in the same way. */
export function kindOf(fault: string): string {
  return (fault.split("\n")[0] ?? "").replaceAll(/\{.*|\S*[#~:]\S*|\d+/g, "");
}
