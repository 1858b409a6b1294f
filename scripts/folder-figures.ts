/**
 * Prints figures of the sources: files and lines of each folder, the largest and the median file, import cycles, public
 * names of each entry, and the number of files that one turn passes through (see `turn-files.ts`).
 */
import { globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { cyclesOf } from "../test/architecture/cycles.ts";
import { publicNames } from "../test/architecture/public-names.ts";
import { importsOf } from "../test/architecture/source-imports.ts";
import { repositoryRoot, runCommand, sourceCondition } from "./run-command.ts";

interface SourceFile {
  readonly path: string;
  readonly source: string;
  readonly lines: number;
}

function filesOf(folder: string): readonly SourceFile[] {
  return globSync(`${folder}/**/*.ts`, { cwd: repositoryRoot }).map((name) => {
    const source = readFileSync(join(repositoryRoot, name), "utf8");
    return { path: name.replaceAll("\\", "/"), source, lines: source.split("\n").length - 1 };
  });
}

function circlesOf(files: readonly SourceFile[]): readonly (readonly string[])[] {
  const graph = new Map<string, ReadonlySet<string>>();
  for (const { path, source } of files) {
    const imports = importsOf(path, source);
    if (typeof imports === "string") throw new Error(imports);
    const relative = imports.flatMap(({ specifier }) => (specifier?.startsWith(".") === true ? [specifier] : []));
    graph.set(path, new Set(relative.map((specifier) => posix.join(posix.dirname(path), specifier))));
  }
  return cyclesOf(graph);
}

function lineOf(name: string, files: readonly SourceFile[]): string {
  const sorted = files.map(({ lines }) => lines).sort((one, other) => one - other);
  const total = sorted.reduce((sum, lines) => sum + lines, 0);
  const small = sorted.filter((lines) => lines < 60).length;
  const largest = files.find(({ lines }) => lines === sorted.at(-1));
  return (
    `${name.padEnd(16)} ${String(files.length).padStart(4)} files ${String(total).padStart(6)} lines` +
    ` | median ${sorted[Math.floor(sorted.length / 2)] ?? 0}, under 60: ${small}, largest ${largest?.path ?? "-"} ${largest?.lines ?? 0}`
  );
}

const sources = filesOf("src");
for (const folder of ["src", "test", "chaos", "bench", "scripts", "examples"]) {
  const files = folder === "src" ? sources : filesOf(folder);
  console.log(`${lineOf(folder, files)}, import circles: ${circlesOf(files).length}`);
}
const folders = Map.groupBy(sources, ({ path }) => path.split("/").slice(0, -1).slice(0, 3).join("/"));
for (const [folder, files] of [...folders].sort(([one], [other]) => one.localeCompare(other)))
  console.log(lineOf(`  ${folder}`, files));
for (const [entry, names] of Object.entries(publicNames)) console.log(`${entry}: ${names.length} names`);
const turn = await runCommand("node", [`--conditions=${sourceCondition}`, join("scripts", "turn-files.ts")]);
console.log(`a turn with a tool on SQLite: ${turn.ok ? turn.stdout.trim().split("\n").at(-1) : turn.output}`);
