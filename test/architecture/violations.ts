import { posix } from "node:path";
import { cyclesOf, shortestWalk } from "./cycles.ts";
import { forbiddenImport, forbiddenSubfolder, packageOwners } from "./layers.ts";
import { type ImportKind, importsOf } from "./source-imports.ts";

export interface Rules {
  /** Entry points of the package; other folders may import them like an index. */
  readonly entries?: readonly string[];
  /** Packages that package.json declares. Default: any package is allowed. */
  readonly packages?: readonly string[];
  /** Modules that the static imports of src/index.ts must not reach. */
  readonly lazyModules?: readonly string[];
}

interface Edge {
  readonly from: string;
  readonly line: number;
  readonly kind: ImportKind;
  /** A path of the file map, or the specifier of a package. */
  readonly to: string;
  readonly isFile: boolean;
}

/**
 * The architecture faults of a source tree, as one line each: `path:line: fault, and the rule`. Empty if there are none.
 * Pure: `files` maps paths from the root of the repository ("src/state/json.ts") to source text.
 */
export function violations(files: ReadonlyMap<string, string>, rules: Rules = {}): readonly string[] {
  const { edges, faults } = importEdges(files);
  return [
    ...faults,
    ...edges.filter((edge) => edge.isFile).flatMap((edge) => layerFaults(edge, rules.entries ?? [])),
    ...packageFaults(edges, rules),
    ...lazyFaults(edges, rules.lazyModules ?? []),
    ...cycleFaults("file", edges, (path) => path),
    ...cycleFaults("folder", edges, folderOf),
  ];
}

/** The import cycles of these files, for folders without other layer rules. */
export function fileCycles(files: ReadonlyMap<string, string>): readonly string[] {
  return cycleFaults("file", importEdges(files).edges, (path) => path);
}

/** The imports between files; those that cannot be followed are faults. */
function importEdges(files: ReadonlyMap<string, string>): { edges: readonly Edge[]; faults: readonly string[] } {
  const faults: string[] = [];
  const edges: Edge[] = [];
  for (const [path, source] of files) {
    const imports = importsOf(path, source);
    if (typeof imports === "string") {
      faults.push(imports);
      continue;
    }
    for (const { specifier, kind, line } of imports) {
      const place = `${path}:${line}`;
      if (specifier === null) {
        if (!loadsUserCode(path)) faults.push(`${place}: a computed import cannot be checked; write the name out`);
      } else if (!specifier.startsWith(".")) {
        edges.push({ from: path, line, kind, to: specifier, isFile: false });
      } else {
        const to = posix.join(posix.dirname(path), specifier);
        if (files.has(to)) edges.push({ from: path, line, kind, to, isFile: true });
        else faults.push(`${place}: "${specifier}" is not a source file; give the relative path with its .ts ending`);
      }
    }
  }
  return { edges, faults };
}

/** Only the command line, and agents described in YAML, load files that a user names. */
function loadsUserCode(path: string): boolean {
  return folderOf(path) === "cli" || path === "src/server/teal/plugins.ts";
}

/** The folder of a file, "" for the files in src itself. */
function folderOf(path: string): string {
  const [, folder, ...rest] = path.split("/");
  return rest.length === 0 ? "" : (folder ?? "");
}

/** The subfolder of a file, "" for the files in the folder itself. */
function subfolderOf(path: string): string {
  const [, , subfolder, ...rest] = path.split("/");
  return rest.length === 0 ? "" : (subfolder ?? "");
}

function layerFaults({ from, to, line, kind }: Edge, entries: readonly string[]): readonly string[] {
  const [source, target] = [folderOf(from), folderOf(to)];
  const place = `${from}:${line}`;
  if (source === target) {
    const reason = forbiddenSubfolder(source, subfolderOf(from), subfolderOf(to), kind === "type");
    return reason === undefined ? [] : [`${place}: imports ${to}: ${reason}`];
  }
  if (target === "") return [`${place}: imports ${to}; the entry points are for users of the package`];
  const faults: string[] = [];
  if (to !== `src/${target}/index.ts` && !entries.includes(to)) {
    faults.push(`${place}: imports ${to} past src/${target}/index.ts`);
  }
  if (source === "" && target !== "testing") return faults;
  const reason = forbiddenImport(source, target, kind === "type");
  return reason === undefined ? faults : [...faults, `${place}: imports ${to}: ${reason}`];
}

/** "openai" of "openai/resources", "@xstate/store" of "@xstate/store/undo"; builtins as they are. */
function packageOf(specifier: string): string {
  if (specifier.startsWith("node:")) return specifier;
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

function packageFaults(edges: readonly Edge[], rules: Rules): readonly string[] {
  const external = edges.filter((edge) => !edge.isFile);
  const faults: string[] = [];
  for (const { name, place, words } of packageOwners) {
    const uses = external.filter((edge) => packageOf(edge.to) === name);
    const strays = uses.filter(({ from }) => !place.test(from));
    faults.push(...strays.map(({ from, line }) => `${from}:${line}: imports ${name}, which belongs in ${words}`));
  }
  for (const { from, line, to } of external) {
    const name = packageOf(to);
    if (name.startsWith("node:") || rules.packages === undefined || rules.packages.includes(name)) continue;
    faults.push(`${from}:${line}: imports ${name}, which package.json does not declare for users of the package`);
  }
  return faults;
}

/** The packages that users import before they choose what to use. */
const entryPoints = ["src/index.ts", "src/server/index.ts"];

function lazyFaults(edges: readonly Edge[], lazyModules: readonly string[]): readonly string[] {
  const graph = graphOf(
    edges.filter((edge) => edge.kind === "static"),
    ({ from }) => from,
    ({ to, isFile }) => (isFile ? to : packageOf(to)),
  );
  return entryPoints.flatMap((entry) =>
    lazyModules.flatMap((name) => {
      const walk = shortestWalk(graph, entry, (node) => node === name);
      return walk === undefined ? [] : [`${entry} loads ${name} at once, it must load lazily: ${walk.join(" → ")}`];
    }),
  );
}

function cycleFaults(noun: string, edges: readonly Edge[], nodeOf: (path: string) => string): readonly string[] {
  const inner = edges.filter(({ isFile, from, to }) => isFile && (noun === "file" || nodeOf(from) !== nodeOf(to)));
  const graph = graphOf(
    inner,
    ({ from }) => nodeOf(from),
    ({ to }) => nodeOf(to),
  );
  return cyclesOf(graph).map((walk) => `${noun} cycle: ${walk.join(" → ")}`);
}

function graphOf(
  edges: readonly Edge[],
  from: (edge: Edge) => string,
  to: (edge: Edge) => string,
): ReadonlyMap<string, ReadonlySet<string>> {
  const graph = new Map<string, Set<string>>();
  for (const edge of edges) {
    const targets = graph.get(from(edge)) ?? new Set();
    graph.set(from(edge), targets.add(to(edge)));
  }
  return graph;
}
