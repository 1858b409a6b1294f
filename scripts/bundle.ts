import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { rolldown } from "rolldown";
import { entryFiles, type Manifest } from "./manifest.ts";
import { repositoryRoot, sourceCondition } from "./run-command.ts";

/**
 * Groups code that entries share into as few files as possible, without code that an importing entry does not need. A shelf
 * has all imports of its sources that no earlier shelf has. Rolldown places the rest.
 */
const shelves: readonly { readonly name: string; readonly sources: readonly string[] }[] = [
  {
    name: "errors",
    sources: ["errors/troupe-error.ts", "base/file-errors.ts", "base/shell-word.ts", "base/optional-package.ts"],
  },
  { name: "state", sources: ["state.ts", "react.ts", "state/webhooks.ts", "state/deletion.ts"] },
  { name: "runtime", sources: ["index.ts"] },
  { name: "database-path", sources: ["stores/sqlite/sqlite-path.ts"] },
  { name: "command-line", sources: ["cli/start-process.ts"] },
  { name: "reading-commands", sources: ["cli/commands/list.ts", "cli/commands/requests.ts", "cli/commands/show.ts"] },
  { name: "commands", sources: ["cli/commands/ask.ts", "cli/commands/run.ts"] },
];

/** The source of each entry and bin of the package, by its path in `dist` without the extension. */
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
 * Writes the package's code to `dist`: a file for each entry and bin, and `chunks` for shared and lazily loaded code. Only
 * our own code is bundled; packages are imported from where npm installs them.
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
    // For instance, a lazy import of a module that is also imported statically.
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
      // Names are not minified, so that stacks are readable. Comments stay in the declarations, where editors show them.
      minify: "dce-only",
      minifyInternalExports: false,
      // V8 stores a file with a single non-Latin-1 character with two bytes per character.
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

/** A module of Node or of a package, that is, not one of our own files. */
function isPackage(specifier: string): boolean {
  return !specifier.startsWith(".") && !specifier.startsWith("\0") && !isAbsolute(specifier);
}

/** The package name at the beginning of a path or specifier. */
export function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}
