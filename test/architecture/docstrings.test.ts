// Docstrings are what users read in their editor: each member of a public interface has one, each option documents
// its default, and none mentions this repository.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "oxc-parser";
import { expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { opaqueTypes, publicNames } from "./public-names.ts";
import { entryFiles, filesReached, interfacesReached, type Member, withoutDocs } from "./source-docs.ts";

const members = interfacesReached(opaqueTypes);

const optionTypes = /(?:Options|Settings|Filter|Policy)$|^(?:Budget|Decide|RunOptions|ToolDefinition)$/;

function declaredAt({ file, line, owner, name }: Member): string {
  return `${file}:${line} ${owner}.${name}`;
}

test("every entry is checked", () => {
  expect(entryFiles()).toHaveLength(Object.keys(publicNames).length);
  expect(members.length).toBeGreaterThan(1_000);
});

test("each member of a public interface has a docstring", () => {
  expect(members.filter(({ doc }) => doc === undefined).map(declaredAt)).toEqual([]);
});

test("each public function, class and interface has a docstring", () => {
  expect(withoutDocs()).toEqual([]);
});

test("each optional option names its default", () => {
  const options = members.filter(({ owner, isOptional }) => isOptional && optionTypes.test(owner));
  expect(options.length).toBeGreaterThan(150);
  expect(options.filter(({ doc = "" }) => !/[Dd]efault|[Aa]bsent/.test(doc)).map(declaredAt)).toEqual([]);
});

test("no docstring names rows of the requirements or other papers of this repository", () => {
  const papers = /\brows? [A-Z]\d*\b|\bseeds? \d|\brequirements,|\bissue \d/;
  const found = filesReached().flatMap((file) => {
    const { comments } = parseSync(file, readFileSync(join(repositoryRoot, file), "utf8"));
    return comments
      .filter(({ type, value }) => type === "Block" && papers.test(value))
      .map(({ value }) => `${file}: ${papers.exec(value)?.[0]}`);
  });
  expect(found).toEqual([]);
});
