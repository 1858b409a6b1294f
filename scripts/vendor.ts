import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { vendoredPackages } from "./manifest.ts";
import { moduleSpecifiers } from "./module-specifiers.ts";
import { repositoryRoot } from "./run-command.ts";

/**
 * Puts into `dist` the files of `vendoredPackages` that its code imports, with what they import and with their licence, and
 * lets the code import these: the installed package then does without the rest of theirs.
 */
export function vendorInto(dist: string): void {
  const scripts = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".js"));
  for (const script of scripts.map((path) => join(dist, path))) {
    const text = readFileSync(script, "utf8");
    if (!vendoredPackages.some((name) => text.includes(name))) continue;
    let rewritten = text;
    for (const { name: specifier, start, end } of moduleSpecifiers(script, text).toReversed()) {
      const name = vendoredPackages.find((known) => specifier === known || specifier.startsWith(`${known}/`));
      if (name === undefined) continue;
      const copy = copyWithImports(name, fileURLToPath(import.meta.resolve(specifier)), dist);
      const quoted = JSON.stringify(relative(dirname(script), copy).replaceAll("\\", "/"));
      rewritten = rewritten.slice(0, start) + quoted + rewritten.slice(end);
    }
    if (rewritten !== text) writeFileSync(script, rewritten);
  }
}

/** Copies a file of a package and all that it imports; gives the path of the copy. */
function copyWithImports(name: string, file: string, dist: string): string {
  const root = join(repositoryRoot, "node_modules", name);
  const target = join(dist, "vendored", name);
  const copyOf = (original: string): string => join(target, relative(root, original));
  const open = [file];
  const copied = new Set<string>();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (copied.has(next)) continue;
    copied.add(next);
    const text = readFileSync(next, "utf8");
    for (const { name: specifier } of moduleSpecifiers(next, text)) {
      if (!specifier.startsWith(".")) {
        throw new Error(`${relative(repositoryRoot, next)} imports ${specifier}, which would not be copied with it.`);
      }
      open.push(resolve(dirname(next), specifier));
    }
    mkdirSync(dirname(copyOf(next)), { recursive: true });
    // The maps stay behind.
    writeFileSync(copyOf(next), text.replace(/\n?\/\/# sourceMappingURL=.*\s*$/, "\n"));
  }
  copyFileSync(join(root, "LICENSE"), join(target, "LICENSE"));
  return copyOf(file);
}
