import { parseSync } from "oxc-parser";

export interface ModuleSpecifier {
  readonly name: string;
  /** Its range in the text, including the quotes. */
  readonly start: number;
  readonly end: number;
}

/** The specifiers in an ES module's imports, re-exports and literal `import("…")` calls, in order. */
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
