import { type Expression, parseSync, type StringLiteral, Visitor } from "oxc-parser";

/**
 * How an import binds its file: `static` runs when the importing file runs, `lazy` runs when control reaches it,
 * `type` is erased. `import { type A }` is static: the import itself stays in the emitted file.
 */
export type ImportKind = "static" | "lazy" | "type";

export interface SourceImport {
  /** The specifier as written; `null` if it is computed at run time. */
  readonly specifier: string | null;
  readonly kind: ImportKind;
  readonly line: number;
}

/** Every import of a TypeScript source, including re-exports and `import("…")` types; an error text if it cannot be parsed. */
export function importsOf(path: string, source: string): readonly SourceImport[] | string {
  const { program, errors } = parseSync(path, source);
  const [error] = errors;
  if (error !== undefined) return `${path}: cannot be parsed: ${error.message}`;
  const imports: SourceImport[] = [];
  const add = (specifier: string | null, kind: ImportKind, offset: number): void => {
    imports.push({ specifier, kind, line: source.slice(0, offset).split("\n").length });
  };
  const addDeclaration = (
    node: { readonly source: StringLiteral | null; readonly start: number },
    kind: "type" | "value" | undefined,
  ): void => {
    if (node.source !== null) add(node.source.value, kind === "type" ? "type" : "static", node.start);
  };
  new Visitor({
    ImportDeclaration: (node) => addDeclaration(node, node.importKind),
    ExportNamedDeclaration: (node) => addDeclaration(node, node.exportKind),
    ExportAllDeclaration: (node) => addDeclaration(node, node.exportKind),
    TSImportType: (node) => add(node.source.value, "type", node.start),
    ImportExpression: (node) => add(literalText(node.source), "lazy", node.start),
    CallExpression: (node) => {
      const [argument] = node.arguments;
      if (argument === undefined || argument.type === "SpreadElement" || !loadsModule(node.callee)) return;
      add(literalText(argument), "lazy", node.start);
    },
  }).visit(program);
  return imports;
}

function loadsModule(callee: Expression): boolean {
  if (callee.type === "Identifier") return callee.name === "require";
  return (
    callee.type === "MemberExpression" &&
    callee.property.type === "Identifier" &&
    callee.property.name === "getBuiltinModule"
  );
}

function literalText(node: Expression): string | null {
  if (node.type === "TSAsExpression") return literalText(node.expression);
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  if (node.type === "TemplateLiteral" && node.expressions.length === 0) return node.quasis[0]?.value.cooked ?? null;
  return null;
}
