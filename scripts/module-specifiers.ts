import { parseSync } from "oxc-parser";

export interface ModuleSpecifier {
  readonly name: string;
  /** Where it stands in the text, its quotes included. */
  readonly start: number;
  readonly end: number;
}

/** What an ES module names in its imports, re-exports and literal `import("…")`, in order, each place once. */
export function moduleSpecifiers(path: string, text: string): ModuleSpecifier[] {
  const { module } = parseSync(path, text);
  const places = [
    ...module.staticImports.map((one) => one.moduleRequest),
    ...module.staticExports.flatMap((one) => one.entries.flatMap((entry) => entry.moduleRequest ?? [])),
    ...module.dynamicImports.map((one) => one.moduleRequest),
  ];
  const found = new Map<number, ModuleSpecifier>();
  for (const { start, end } of places) {
    const name = /^(["'`])([^"'`$]*)\1$/.exec(text.slice(start, end))?.[2];
    if (name !== undefined) found.set(start, { name, start, end });
  }
  return [...found.values()].sort((left, right) => left.start - right.start);
}
