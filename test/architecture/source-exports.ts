import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { parseSync } from "oxc-parser";
import { repositoryRoot } from "../../scripts/run-command.ts";

/** A name as declared in its file. `node` is a node of the syntax tree, of any kind. */
export interface Declaration {
  readonly file: string;
  readonly name: string;
  readonly node: unknown;
}

interface Module {
  readonly imports: Map<string, { readonly file: string | null; readonly name: string }>;
  /** By public name: the file that it is re-exported from, if it is another one, and its name there. */
  readonly exports: Map<string, { readonly file?: string | null; readonly name: string }>;
  readonly stars: string[];
  readonly declarations: Map<string, unknown>;
}

type Node = Readonly<Record<string, unknown>>;

const modules = new Map<string, Module>();

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null;
}

function nameOf(node: unknown): string {
  return isNode(node) && typeof node["name"] === "string" ? node["name"] : "";
}

/** Files are named relative to the root of the repository: "src/index.ts". */
function moduleOf(file: string): Module {
  const known = modules.get(file);
  if (known) return known;
  const { program, errors } = parseSync(file, readFileSync(join(repositoryRoot, file), "utf8"));
  if (errors[0]) throw new Error(`${file} cannot be parsed: ${errors[0].message}`);
  const module: Module = { imports: new Map(), exports: new Map(), stars: [], declarations: new Map() };
  modules.set(file, module);
  const fileOf = (specifier: string): string | null =>
    specifier.startsWith(".") ? posix.join(posix.dirname(file), specifier) : null;
  const declare = (declaration: Node): string[] => {
    const list = declaration["declarations"];
    const nodes: unknown[] = Array.isArray(list) ? list : [declaration];
    return nodes.map((node) => {
      const name = isNode(node) ? nameOf(node["id"]) : "";
      module.declarations.set(name, node);
      return name;
    });
  };
  for (const statement of program.body) {
    switch (statement.type) {
      case "ImportDeclaration":
        for (const specifier of statement.specifiers) {
          const name = specifier.type === "ImportSpecifier" ? nameOf(specifier.imported) : "*";
          module.imports.set(specifier.local.name, { file: fileOf(statement.source.value), name });
        }
        break;
      case "ExportAllDeclaration":
        module.stars.push(fileOf(statement.source.value) ?? "");
        break;
      case "ExportNamedDeclaration":
        for (const { local, exported } of statement.specifiers) {
          const from = statement.source ? { file: fileOf(statement.source.value) } : {};
          module.exports.set(nameOf(exported), { ...from, name: nameOf(local) });
        }
        if (isNode(statement.declaration)) {
          for (const name of declare(statement.declaration)) module.exports.set(name, { name });
        }
        break;
      default:
        declare(statement as unknown as Node);
    }
  }
  return module;
}

/** Whether a file exports whole modules (`export *`). */
export function exportsWhole(file: string): boolean {
  return moduleOf(file).stars.length > 0;
}

/** Every name that a file exports, including those of `export *`. */
export function exportsOf(file: string): ReadonlySet<string> {
  const { exports, stars } = moduleOf(file);
  return new Set([...exports.keys(), ...stars.flatMap((star) => [...exportsOf(star)])]);
}

/** The declaration of an exported name; `undefined` if it comes from a package. */
export function declarationOf(file: string, name: string): Declaration | undefined {
  const { exports, stars } = moduleOf(file);
  const found = exports.get(name);
  if (!found) return stars.map((star) => declarationOf(star, name)).find((one) => one !== undefined);
  if (found.file === undefined) return localDeclaration(file, found.name);
  return found.file === null ? undefined : declarationOf(found.file, found.name);
}

function localDeclaration(file: string, name: string): Declaration | undefined {
  const { declarations, imports } = moduleOf(file);
  if (declarations.has(name)) return { file, name, node: declarations.get(name) };
  const found = imports.get(name);
  return found?.file ? declarationOf(found.file, found.name) : undefined;
}

/** The declarations of all types of this package that a declaration's signature names. */
export function typesIn({ file, node }: Declaration): readonly Declaration[] {
  const names = new Set<string>();
  collect(node, names);
  // A qualified name of a package has no declaration in this package.
  return [...names].filter((name) => name !== "").flatMap((name) => localDeclaration(file, name) ?? []);
}

/** Whether a node belongs to the signature: code, private members and values of variables do not. */
function collect(node: unknown, names: Set<string>): void {
  if (Array.isArray(node)) {
    for (const one of node) collect(one, names);
    return;
  }
  if (!isNode(node)) return;
  const parts = (...keys: readonly string[]): void =>
    collect(
      keys.map((key) => node[key]),
      names,
    );
  switch (node["type"]) {
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "TSEmptyBodyFunctionExpression":
    case "ArrowFunctionExpression":
      return parts("typeParameters", "params", "returnType");
    case "ClassDeclaration":
      names.add(nameOf(node["superClass"]));
      return parts("typeParameters", "implements", "body");
    case "MethodDefinition":
    case "TSAbstractMethodDefinition":
      return isHidden(node) ? undefined : parts("value");
    case "PropertyDefinition":
    case "TSAbstractPropertyDefinition":
      return isHidden(node) ? undefined : parts("typeAnnotation");
    case "VariableDeclarator":
      return parts(
        "id",
        ...(isNode(node["init"]) && node["init"]["type"] === "ArrowFunctionExpression" ? ["init"] : []),
      );
    case "AssignmentPattern":
      return parts("left");
    case "TSTypeQuery":
      return;
    case "TSTypeReference":
      names.add(nameOf(node["typeName"]));
      return parts("typeArguments");
    case "TSInterfaceHeritage":
    case "TSClassImplements":
      names.add(nameOf(node["expression"]));
      return parts("typeArguments");
    default:
      return parts(...Object.keys(node));
  }
}

function isHidden(member: Node): boolean {
  const { key, accessibility } = member;
  return (isNode(key) && key["type"] === "PrivateIdentifier") || accessibility === "private";
}
