import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { rolldown } from "rolldown";
import { entryFiles, type Manifest } from "./manifest.ts";
import { repositoryRoot, sourceCondition } from "./run-command.ts";

/**
 * What entries share stands in as few files as possible, of which none holds what an entry that reads it does not need. A shelf has
 * all that its sources import and no shelf before it has. The rest goes where rolldown puts it.
 */
const shelves: readonly { readonly name: string; readonly sources: readonly string[] }[] = [
  { name: "errors", sources: ["errors/troupe-error.ts", "base/file-errors.ts"] },
  { name: "state", sources: ["state.ts", "react.ts", "state/webhooks.ts"] },
  { name: "runtime", sources: ["index.ts"] },
  { name: "database-path", sources: ["stores/sqlite/sqlite-path.ts"] },
  { name: "command-line", sources: ["cli/start-process.ts"] },
  { name: "reading-commands", sources: ["cli/commands/list.ts", "cli/commands/requests.ts", "cli/commands/show.ts"] },
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
 * used. Only our own code is bundled: packages are imported from where npm installs them.
 */
export async function bundleCode(manifest: Manifest, dist: string): Promise<void> {
  const bundle = await rolldown({
    input: sourcesOfEntries(manifest),
    cwd: repositoryRoot,
    platform: "node",
    tsconfig: false,
    resolve: { conditionNames: [sourceCondition, "node", "module", "import", "default"] },
    external: isPackage,
    transform: { target: "node22.13" },
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
      codeSplitting: { groups: shelves.map(shelfGroup) },
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

/** A module of Node or of a package: all but our own files. */
function isPackage(specifier: string): boolean {
  return !specifier.startsWith(".") && !specifier.startsWith("\0") && !isAbsolute(specifier);
}

/** The package of a path or specifier that begins with its name. */
export function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}
