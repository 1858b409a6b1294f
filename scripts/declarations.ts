import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** `export { a, type B as C } from "./x.ts"` or `export * from "./x.ts"`, as emitted by tsc. */
const reexport = /^export (?:type )?(?:\{([^}]*)\}|\*) from "(\.[^"]+)";\n?/gm;
const namedImport = /^import (?:type )?\{([^}]*)\} from "(\.[^"]+)"/gm;
const inlineImport = /\bimport\("(\.[^"]+)"\)\.(\w+)/g;

interface Name {
  readonly origin: string;
  readonly exported: string;
}

interface Reexport {
  readonly specifier: string;
  readonly from: string;
  /** `undefined` for all exports of the other file. */
  readonly names: readonly Name[] | undefined;
}

/**
 * Deletes the declarations in `dist` that no type of the package's entries refers to: the inferred types of the state
 * machines alone take megabytes. Internal index files are reduced to the remaining names.
 */
export function keepReachableDeclarations(dist: string, entries: readonly string[]): void {
  const kept = new Map<string, Set<string>>();
  const open = entries.map((file): readonly [file: string, name: string] => [file, "*"]);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [file, name] = next;
    const names = kept.get(file) ?? new Set();
    kept.set(file, names);
    const wanted = isIndex(file) ? name : "*";
    if (names.has(wanted)) continue;
    names.add(wanted);
    open.push(...(isIndex(file) ? passedOn(file, name) : referredTo(file)));
  }
  for (const path of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
    const file = join(dist, path);
    if (!file.endsWith(".d.ts")) continue;
    const names = kept.get(file);
    if (names === undefined) rmSync(file);
    else if (!names.has("*")) writeFileSync(file, cutDown(file, names));
  }
}

const texts = new Map<string, string>();

function sourceText(file: string): string {
  const text = texts.get(file) ?? readFileSync(file, "utf8");
  texts.set(file, text);
  return text;
}

function declarationOf(file: string, specifier: string): string {
  return resolve(dirname(file), specifier.replace(/\.[jt]s$/, ".d.ts"));
}

/** A file that only re-exports. */
function isIndex(file: string): boolean {
  return (
    sourceText(file)
      .replaceAll(reexport, "")
      .replaceAll(/\/\*[^]*?\*\//g, "")
      .trim() === ""
  );
}

function reexportsOf(file: string): Reexport[] {
  return [...sourceText(file).matchAll(reexport)].map(([, list, specifier = ""]) => ({
    specifier,
    from: declarationOf(file, specifier),
    names: list === undefined ? undefined : namesIn(list),
  }));
}

function namesIn(list: string): Name[] {
  return list
    .split(",")
    .map((item) => item.trim().replace(/^type /, ""))
    .filter((item) => item !== "")
    .map((item) => {
      const [origin = "", exported = origin] = item.split(" as ");
      return { origin, exported };
    });
}

/** The source of a name in an index file, or with `*` the sources of all names. */
function passedOn(file: string, name: string): [string, string][] {
  return reexportsOf(file).flatMap(({ from, names }): [string, string][] => {
    if (names === undefined) return name === "*" || exportsName(from, name) ? [[from, name]] : [];
    return names
      .filter(({ exported }) => name === "*" || exported === name)
      .map(({ origin }): [string, string] => [from, origin]);
  });
}

function exportsName(file: string, name: string): boolean {
  if (isIndex(file)) return passedOn(file, name).length > 0;
  return new RegExp(`^export .*\\b${name}\\b`, "m").test(sourceText(file));
}

/** All names that a file's own declarations need. */
function referredTo(file: string): [string, string][] {
  const text = sourceText(file);
  const imported = [...text.matchAll(namedImport)].flatMap(([, list = "", specifier = ""]) =>
    namesIn(list).map(({ origin }): [string, string] => [declarationOf(file, specifier), origin]),
  );
  const inline = [...text.matchAll(inlineImport)].map(([, specifier = "", name = ""]): [string, string] => [
    declarationOf(file, specifier),
    name,
  ]);
  return [...imported, ...inline, ...passedOn(file, "*")];
}

function cutDown(file: string, names: ReadonlySet<string>): string {
  const lines = reexportsOf(file).flatMap(({ specifier, from, names: listed }) => {
    if (listed === undefined) {
      return [...names].some((name) => exportsName(from, name)) ? [`export * from "${specifier}";`] : [];
    }
    const left = listed.filter(({ exported }) => names.has(exported));
    const list = left.map(({ origin, exported }) => (origin === exported ? origin : `${origin} as ${exported}`));
    return left.length === 0 ? [] : [`export { ${list.join(", ")} } from "${specifier}";`];
  });
  return `${lines.join("\n")}\nexport {};\n`;
}
