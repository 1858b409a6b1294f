import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { isAbsolute, join } from "node:path";
import { type Plugin, rolldown } from "rolldown";
import { type MinifyOptions, minifySync } from "rolldown/utils";
import { compressedTables } from "./compressed-tables.ts";
import { bundledPackages, entryFiles, type Manifest } from "./manifest.ts";
import { repositoryRoot, sourceCondition } from "./run-command.ts";

/**
 * What entries share stands in as few files as possible, of which none holds what an entry that reads it does not need. A shelf has
 * all that its sources import and no shelf before it has. The rest goes where rolldown puts it.
 */
const shelves: readonly { readonly name: string; readonly sources: readonly string[] }[] = [
  { name: "base", sources: ["errors/troupe-error.ts", "state/json.ts"] },
  { name: "state", sources: ["state.ts", "react.ts", "state/webhooks.ts"] },
  { name: "runtime", sources: ["index.ts"] },
  { name: "command-line", sources: ["cli/start-process.ts"] },
  { name: "commands", sources: ["cli/commands/ask.ts", "cli/commands/run.ts"] },
];

/** The source of each entry and bin of the package, by the path at which it comes out in `dist`, without its ending. */
function sourcesOfEntries(manifest: Manifest): Readonly<Record<string, string>> {
  const files = [...entryFiles(manifest, "default"), ...Object.values(manifest.bin)];
  const named = files.map((file) => {
    const name = file.replace(/^dist\/(.+)\.js$/, "$1");
    const source = join(repositoryRoot, "src", `${name}.ts`);
    if (existsSync(source)) return [name, source] as const;
    throw new Error(`package.json promises ${file}, but there is no source src/${name}.ts.`);
  });
  return Object.fromEntries(named);
}

/**
 * Writes the package's code to `dist`: a file for each entry and bin, and in `chunks` what they share and what is loaded when it is
 * used. The code of `bundledPackages` is among it; their licences are in `LICENSES.txt`.
 */
export async function bundleCode(manifest: Manifest, dist: string): Promise<void> {
  const bundled = new Set<string>();
  const bundle = await rolldown({
    input: sourcesOfEntries(manifest),
    cwd: repositoryRoot,
    platform: "node",
    tsconfig: false,
    resolve: { conditionNames: [sourceCondition, "node", "module", "import", "default"] },
    external: isLeftOutside,
    transform: { target: "node22.13" },
    plugins: [compressedTables, nodeModulesAsTheyAre, packagesInside(bundled)],
    checks: { bundlerTimings: false },
    // For instance of a lazy import whose module something else imports at once.
    onwarn: ({ message }) => {
      throw new Error(message);
    },
  });
  try {
    await bundle.write({
      dir: dist,
      format: "esm",
      entryFileNames: "[name].js",
      chunkFileNames: "chunks/[name].js",
      codeSplitting: {
        groups: [...shelves.map(shelfGroup), ...["yaml", "zod"].map(packageGroup)],
      },
      // Names stay as they are written, so that a stack can be read. Comments are in the declarations, where editors show them.
      minify: "dce-only",
      minifyInternalExports: false,
      // A file with one other character in it is kept, and read, with two bytes for each.
      charset: "ascii",
      comments: { legal: false, annotation: true, jsdoc: false },
    });
  } finally {
    await bundle.close();
  }
  writeFileSync(join(dist, "LICENSES.txt"), [...bundled].sort().map(licenceOf).join("\n"));
}

function shelfGroup({ name, sources }: (typeof shelves)[number], index: number) {
  const files = sources.map((source) => join(repositoryRoot, "src", source));
  return {
    name,
    test: (id: string) => files.includes(id),
    priority: shelves.length - index,
    includeDependenciesRecursively: true,
  };
}

/** All of a package in a file of its own, which loses its layout. */
function packageGroup(name: string) {
  return { name, test: new RegExp(`[\\\\/]node_modules[\\\\/]${name}[\\\\/]`), priority: shelves.length + 1 };
}

/** Node's own modules, and packages that are not bundled. */
function isLeftOutside(specifier: string): boolean {
  if (specifier.startsWith(".") || specifier.startsWith("\0") || isAbsolute(specifier)) return false;
  return (
    isBuiltin(specifier) || !bundledPackages.some((name) => specifier === name || specifier.startsWith(`${name}/`))
  );
}

/**
 * An `import` of a module of Node makes a copy of it with each of its names, and asks for every value. In `node:util` and `node:fs`
 * this loads what is otherwise loaded when it is used, 6 ms at the start of a program, and in `node:http` all that `fetch` needs, 35 ms.
 */
const nodeModulesAsTheyAre: Plugin = {
  name: "node-modules-as-they-are",
  generateBundle(_options, files) {
    for (const file of Object.values(files)) if (file.type === "chunk") file.code = withNodeModules(file.code);
  },
};

/** Imported as others are, so that whoever watches what is loaded sees it. */
const watchedModules: ReadonlySet<string> = new Set(["node:sqlite"]);
const importOfNode = /^import (?:([\w$]+)(?:, )?)?(?:\{ ([^}]+) \})? from "(node:[\w/]+)";$/;

/** The code with another form of the imports of Node's modules at its top, behind the other imports. */
export function withNodeModules(code: string): string {
  const lines = code.split("\n");
  const top = lines.findIndex((line) => !line.startsWith("import "));
  const imports: string[] = [];
  const taken: string[] = [];
  for (const line of lines.slice(0, top)) {
    const other = withoutCopy(line);
    if (other === undefined) imports.push(line);
    else taken.push(other);
  }
  return [...imports, ...taken, ...lines.slice(top)].join("\n");
}

/** Undefined for an import of something else, or of a namespace. */
function withoutCopy(line: string): string | undefined {
  const [, whole, names, module = ""] = importOfNode.exec(line) ?? [];
  if (module === "" || watchedModules.has(module) || names?.includes("default as")) return undefined;
  const given = `process.getBuiltinModule("${module}")`;
  const constants = [whole, names && `{ ${names.replaceAll(" as ", ": ")} }`].filter((each) => each !== undefined);
  return constants.map((each) => `const ${each} = ${given};`).join(" ");
}

/** Takes the layout from files that hold the code of packages alone, and adds to `names` every package that comes out. */
function packagesInside(names: Set<string>): Plugin {
  return {
    name: "packages-inside",
    generateBundle(_options, files) {
      for (const file of Object.values(files)) {
        if (file.type !== "chunk") continue;
        const inside = packagesIn(file.code);
        for (const name of inside) names.add(name);
        if (!file.moduleIds.every((id) => id.includes("node_modules"))) continue;
        const marks = [...inside].map((name) => `// node_modules/${name}\n`).join("");
        file.code = marks + minifySync(file.fileName, file.code, smaller).code;
      }
    },
  };
}

/** Names of functions and classes stay, as stacks and errors show them. */
const smaller: MinifyOptions = {
  module: true,
  compress: true,
  mangle: { keepNames: true },
  codegen: { removeWhitespace: true },
};

/** The packages that were built into a file of `dist`, by the lines with its path that rolldown writes above each module. */
export function packagesIn(code: string): ReadonlySet<string> {
  const marks = code.matchAll(/^\/\/ (?:\S*\/)?node_modules\/(\S+)$/gm);
  return new Set([...marks].map(([, path = ""]) => packageOf(path)));
}

/** The package of a path or specifier that begins with its name. */
export function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

function licenceOf(name: string): string {
  const folder = join(repositoryRoot, "node_modules", name);
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { readonly version: string };
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(?:\.(?:md|txt))?$/i.test(entry));
  if (file === undefined) throw new Error(`${name} is bundled, but brings no licence that could go with it.`);
  return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
}
