// The names that users of the package can import. A new public name is a decision: it is added to its entry, to public-names.ts, and
// to docs/reference.md with a line about it.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { readManifest } from "../../scripts/manifest.ts";
import { repositoryRoot, sourceCondition } from "../../scripts/run-command.ts";
import { blocksOf } from "../support/document-blocks.ts";
import { opaqueTypes, publicNames, unnamedTypes } from "./public-names.ts";
import { type Declaration, declarationOf, exportsOf, exportsWhole, typesIn } from "./source-exports.ts";

const MOST_NAMES = 180;

const manifest = readManifest();
/** Pairs such as `["troupe/state", "src/state.ts"]`. */
const entries = Object.entries(manifest.exports).flatMap(([entry, target]) => {
  const file = typeof target === "string" ? undefined : target[sourceCondition];
  return file === undefined ? [] : [[manifest.name + entry.slice(1), file.replace(/^\.\//, "")] as const];
});

function sourceText(path: string): string {
  return readFileSync(join(repositoryRoot, path), "utf8");
}

function filesIn(folder: string, ending: string): string[] {
  return readdirSync(join(repositoryRoot, folder), { encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => `${folder}/${name}`);
}

const documents = ["README.md", ...filesIn("docs", ".md")];

/** The names in the first column of the reference, by the entry in their heading. */
function referenceNames(): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  let entry = "";
  for (const line of sourceText("docs/reference.md").split("\n")) {
    entry = /^## (\S+)$/.exec(line)?.[1] ?? entry;
    const [, column = ""] = /^\| (`.*?) \|/.exec(line) ?? [];
    const known = names.get(entry) ?? [];
    names.set(entry, [...known, ...[...column.matchAll(/`([A-Za-z]\w*)`/g)].map(([, name = ""]) => name)]);
  }
  return names;
}

/** The words in code font on all pages except the reference: those of programs, and those between backticks. */
function wordsInCodeFont(): ReadonlySet<string> {
  const pages = documents.filter((path) => path !== "docs/reference.md").map(sourceText);
  const code = pages.flatMap((page) => {
    const blocks = page.match(/^```.*?^```$/gms) ?? [];
    const paragraphs = page.replaceAll(/^```.*?^```$/gms, "").split(/\n\n/);
    return [...blocks, ...paragraphs.flatMap((paragraph) => paragraph.match(/`[^`]+`/g) ?? [])];
  });
  return new Set(code.flatMap((piece) => piece.match(/[A-Za-z_]\w*/g) ?? []));
}

function declaredAt({ file, name }: Declaration): string {
  return `${file} ${name}`;
}

/** The package imports of a program: the entry, and the name. */
function importsFrom(
  path: string,
  source: string,
): { readonly place: string; readonly entry: string; readonly name: string }[] {
  const found = source.matchAll(/import\s+(?:type\s+)?\{([^}]*)\}\s+from\s+"(troupe[^"]*)"/g);
  return [...found].flatMap(([, names = "", entry = ""]) =>
    names
      .split(",")
      .map((name) =>
        name
          .trim()
          .replace(/^type\s+/, "")
          .replace(/\s+as\s+.*$/, ""),
      )
      .filter((name) => name !== "")
      .map((name) => ({ place: path, entry, name })),
  );
}

test("every entry of the package has its list, and every list has an entry", () => {
  expect(Object.keys(publicNames).sort()).toEqual(entries.map(([entry]) => entry).sort());
});

describe.each(entries)("%s", (entry, file) => {
  it("exports the names of its list, and no others", () => {
    expect([...exportsOf(file)].sort()).toEqual([...(publicNames[entry] ?? [])].sort());
  });

  it("exports by name: no whole modules", () => {
    expect(exportsWhole(file)).toBe(false);
  });

  it("has a line on each of its names in docs/reference.md", () => {
    const explained = referenceNames().get(entry) ?? [];
    expect([...explained].sort()).toEqual([...(publicNames[entry] ?? [])].sort());
  });
});

test(`"troupe" has at most ${MOST_NAMES} names`, () => {
  expect(publicNames["troupe"]?.length).toBeLessThanOrEqual(MOST_NAMES);
});

test("a type in a public signature is public, or listed as needing no name", () => {
  const declared = entries.flatMap(([, file]) =>
    [...exportsOf(file)].flatMap((name) => declarationOf(file, name) ?? []),
  );
  const known = new Set(declared.map(declaredAt));
  const open = declared.filter(({ name }) => !opaqueTypes.includes(name));
  const missing = new Map<string, string>();
  for (const one of open) {
    for (const type of typesIn(one)) if (!known.has(declaredAt(type))) missing.set(type.name, one.name);
  }
  const unnamed = [...missing].filter(([name]) => !unnamedTypes.includes(name));
  expect(unnamed.map(([name, user]) => `${name}, named by ${user}`)).toEqual([]);
  expect(unnamedTypes.filter((name) => !missing.has(name))).toEqual([]);
});

test("documents and examples use public names only", () => {
  const programs = [
    ...documents.flatMap((path) =>
      blocksOf(path, sourceText(path)).map(({ line, text }) => [`${path}:${line}`, text] as const),
    ),
    ...filesIn("examples", ".ts").map((path) => [path, sourceText(path)] as const),
  ];
  const used = programs.flatMap(([path, source]) => importsFrom(path, source));
  expect(used.length).toBeGreaterThan(100);
  const hidden = used.filter(({ entry, name }) => !publicNames[entry]?.includes(name));
  expect(hidden).toEqual([]);
});

test("functions are shown on a page of their subject: the reference alone is enough for types and errors", () => {
  const words = wordsInCodeFont();
  const called = Object.values(publicNames)
    .flat()
    .filter((name) => /^[a-z]/.test(name));
  expect(called.length).toBeGreaterThan(50);
  expect(called.filter((name) => !words.has(name))).toEqual([]);
});
