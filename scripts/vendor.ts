import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { brotliCompressSync, constants } from "node:zlib";
import { vendoredPackages } from "./manifest.ts";
import { moduleSpecifiers } from "./module-specifiers.ts";
import { repositoryRoot } from "./run-command.ts";

/**
 * Puts into `dist` the files of `vendoredPackages` that its code imports, with what they import and with their licence, and
 * lets the code import these: the installed package then does without the rest of theirs.
 */
export async function vendorInto(dist: string): Promise<void> {
  const scripts = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".js"));
  for (const script of scripts.map((path) => join(dist, path))) {
    const text = readFileSync(script, "utf8");
    if (!vendoredPackages.some((name) => text.includes(name))) continue;
    let rewritten = text;
    for (const { name: specifier, start, end } of moduleSpecifiers(script, text).toReversed()) {
      const name = vendoredPackages.find((known) => specifier === known || specifier.startsWith(`${known}/`));
      if (name === undefined) continue;
      const copy = await copyWithImports(name, fileURLToPath(import.meta.resolve(specifier)), dist);
      const quoted = JSON.stringify(`./${relative(dirname(script), copy).replaceAll("\\", "/")}`);
      rewritten = rewritten.slice(0, start) + quoted + rewritten.slice(end);
    }
    if (rewritten !== text) writeFileSync(script, rewritten);
  }
}

/** A module that is larger than this many bytes and gives a table is kept compressed. */
const largestPlainTable = 1_000_000;

/** Copies a file of a package and all that it imports; gives the path of the copy. */
async function copyWithImports(name: string, file: string, dist: string): Promise<string> {
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
    const plain = text.replace(/\n?\/\/# sourceMappingURL=.*\s*$/, "\n");
    writeFileSync(copyOf(next), plain.length > largestPlainTable ? await compressedTable(next) : plain);
  }
  copyFileSync(join(root, "LICENSE"), join(target, "LICENSE"));
  return copyOf(file);
}

/**
 * A module with the same default export, which has to be plain JSON, in 0.4 of the bytes. The compressed bytes are a text in the
 * module and no file beside it, so that bundlers take them along.
 */
async function compressedTable(file: string): Promise<string> {
  const { default: table } = (await import(pathToFileURL(file).href)) as { readonly default: unknown };
  const json = JSON.stringify(table);
  if (!isDeepStrictEqual(JSON.parse(json), table)) throw new Error(`${file} gives a table that is no JSON.`);
  // A higher quality takes ten times as long for 6 % less.
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_LGWIN]: 24 };
  const bytes = brotliCompressSync(json, { params }).toString("base64");
  return `import { Buffer } from "node:buffer";
import { brotliDecompressSync } from "node:zlib";
const bytes = Buffer.from("${bytes}", "base64");
export default JSON.parse(brotliDecompressSync(bytes).toString());
`;
}
