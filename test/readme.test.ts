// Runs what the documents show: `ts` blocks are programs of their own, `sh` blocks are typed in by a reader. Blocks of one
// document run in order and in one place, so that a later one may carry on from an earlier one.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readManifest } from "../scripts/manifest.ts";
import { repositoryRoot, runCommand } from "../scripts/run-command.ts";
import { troupe } from "./cli/support/in-process.ts";
import { blocksOf, type DocumentBlock, tagFault } from "./support/document-blocks.ts";
import { rows } from "./support/full.ts";
import { runOffline } from "./support/programs.ts";
import { commandsOf } from "./support/shell-commands.ts";

const scripts = new Set(Object.keys(readManifest().scripts));
/** Its blocks are the files of one project, which test/package/first-hour.test.ts runs; here they are only compiled. */
const projectPage = "docs/first-hour.md";
const documents = ["README.md", "CONTRIBUTING.md", ...markdownIn("docs")].filter(
  (path) => path !== projectPage && existsSync(join(repositoryRoot, path)),
);
const allBlocks = documents.flatMap((path) => blocksOf(path, readFileSync(join(repositoryRoot, path), "utf8")));
/** Without the code of other libraries, which test/comparisons.test.ts compiles. */
const blocks = allBlocks.filter(({ flags }) => !flags.includes("theirs"));
const programs = blocks.filter((block) => block.language === "ts");

// Inside the repository, where `import "troupe"` finds the package it is part of.
mkdirSync(join(repositoryRoot, ".troupe"), { recursive: true });
const workshop = mkdtempSync(join(repositoryRoot, ".troupe", "documents-"));
// Side by side and in no checkout: there, each document's blocks would be compiled with a copy of the sources of their own.
const programFolder = join(workshop, "programs");

function markdownIn(folder: string): readonly string[] {
  const root = join(repositoryRoot, folder);
  if (!existsSync(root)) return [];
  const names = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".md"));
  return names.sort().map((name) => `${folder}/${name}`);
}

function nameOf(document: string): string {
  return document.replaceAll("/", "-").replace(/\.md$/, "");
}

/** A checkout of its own for each document: the same sources, but files that its blocks write stay apart. */
function checkoutOf(document: string): string {
  return join(workshop, nameOf(document));
}

function programOf({ document, line }: DocumentBlock): string {
  return join(programFolder, `${nameOf(document)}-line-${line}.ts`);
}

/** Writes the files of the project as they are at its end. */
function projectFiles(): readonly string[] {
  const folder = join(workshop, "first-hour");
  const texts = new Map([
    ["src/model.ts", readFileSync(join(repositoryRoot, "templates/shared/src/model.ts"), "utf8")],
  ]);
  for (const { language, text } of blocksOf(projectPage, readFileSync(join(repositoryRoot, projectPage), "utf8"))) {
    const [, path] = /^\/\/ (\S+)\n/.exec(text) ?? [];
    if (language === "ts" && path !== undefined) texts.set(path, text);
  }
  return [...texts].map(([path, text]) => {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  });
}

/** The document whose block a compiler message speaks of: messages name the file of the block. */
function documentOf(path: string): string {
  return programs.find((block) => programOf(block).endsWith(path))?.document ?? path;
}

/** Blank lines above the block give errors and stack traces the line numbers of the document. */
function programText({ line, text }: DocumentBlock): string {
  return `${"\n".repeat(line)}${text}\n`;
}

beforeAll(() => {
  for (const document of documents) {
    const checkout = checkoutOf(document);
    mkdirSync(checkout);
    for (const name of ["src", "scripts", "examples", "docs", "node_modules", "package.json"]) {
      symlinkSync(join(repositoryRoot, name), join(checkout, name));
    }
  }
  mkdirSync(programFolder);
  for (const block of programs) writeFileSync(programOf(block), programText(block));
  const files = [...programs.map(programOf), ...projectFiles()];
  writeFileSync(
    join(workshop, "tsconfig.json"),
    JSON.stringify({ extends: "../../tsconfig.json", include: [], files }),
  );
});

afterAll(() => rmSync(workshop, { recursive: true, force: true }));

const shellPrelude = "set -euo pipefail\n";

/** Does what a block says; the reason why that failed, or nothing. */
async function faultOf(block: DocumentBlock): Promise<string | undefined> {
  if (block.language === "ts") {
    const result = await runOffline("node", [programOf(block)], checkoutOf(block.document));
    return result.ok ? undefined : `${block.document}:${block.line}\n${result.output}`;
  }
  for (const command of commandsOf(block, scripts)) {
    const place = `${block.document}:${command.line}: ${command.text}`;
    if (command.kind === "unknown") return `${place}\n${command.reason}; or tag the block as "sh no-run"`;
    if (command.kind === "installed") {
      return `${place}\nit works where the package is installed; in a clone it is npm run troupe -- …; or tag the block as "sh no-run"`;
    }
    if (command.kind === "known") continue;
    const result = await runOffline("bash", ["-c", shellPrelude + command.text], checkoutOf(block.document));
    if (!result.ok) return `${place}\n${result.output}`;
  }
  return undefined;
}

test("no block of a document escapes the checks", () => {
  expect(allBlocks.flatMap((block) => tagFault(block) ?? [])).toEqual([]);
});

test("commands that a document only shows are scripts of this package", () => {
  const shown = blocks.filter((block) => block.language === "sh" && block.flags.includes("no-run"));
  const commands = shown.flatMap((block) => commandsOf(block, scripts).map((command) => ({ block, command })));
  const gone = commands.flatMap(({ block, command }) =>
    command.kind === "unknown" && command.reason.startsWith("package.json")
      ? [`${block.document}:${command.line}: ${command.reason}`]
      : [],
  );
  expect(gone).toEqual([]);
});

/** A command of the command line, for users or for contributors: the words behind `npx troupe` or `npm run troupe --`. */
function commandLinesIn(block: DocumentBlock): readonly { place: string; words: readonly string[] }[] {
  return commandsOf(block, scripts).flatMap((command) => {
    const place = `${block.document}:${command.line}: ${command.text}`;
    if (command.kind === "installed") return [{ place, words: command.words }];
    const [, words] = /^npm run troupe -- (.*?)(?:\s#.*)?$/.exec(command.text) ?? [];
    return words === undefined ? [] : [{ place, words: words.split(/\s+/) }];
  });
}

test("commands that are shown for an installed package are known to it, with every option", async () => {
  const shown = blocks.filter(({ language }) => language === "sh").flatMap(commandLinesIn);
  const names = [...new Set(shown.map(({ words }) => words[0] ?? ""))];
  const helps = new Map(await Promise.all(names.map(async (name) => [name, await troupe([name, "--help"])] as const)));
  expect(names.length).toBeGreaterThan(0);
  const faults = shown.flatMap(({ place, words: [name = "", ...words] }) => {
    const help = helps.get(name);
    if (help?.code !== 0) return [`${place}\nunknown command ${name}`];
    const options = words.filter((word) => /^--[a-z]/.test(word)).map((word) => word.replace(/=.*/, ""));
    return options
      .filter((option) => !new RegExp(`${option}(?![a-z-])`).test(help.out.join("\n")))
      .map((option) => `${place}\n${name} has no option ${option}`);
  });
  expect(faults).toEqual([]);
});

const [first] = programs.filter((block) => block.document === "README.md");

test("the README's program asks for the approval, and pays", async () => {
  if (first === undefined) throw new Error("README.md shows no program.");
  const { stdout } = await runOffline("node", [programOf(first)], checkoutOf(first.document));
  expect(stdout.trimEnd().split("\n")).toEqual([
    'approved: pay({"invoice":"A-7","francs":250})',
    "Invoice A-7 is paid. 4 model calls",
  ]);
});

test.runIf(programs.length > 0)("every ts block compiles", async () => {
  const buildInfo = join(repositoryRoot, "node_modules", ".cache", "documents.tsbuildinfo");
  // Sources that have not changed since the last run are not checked again.
  const incremental = ["--incremental", "--tsBuildInfoFile", buildInfo];
  // One checker for all: each further one works out the types of Redis clients again, which is most of its work.
  const result = await runCommand("tsc", ["-p", workshop, "--pretty", "false", "--checkers", "1", ...incremental]);
  expect(result.ok, result.output.replaceAll(/^\S*-line-\d+\.ts/gm, documentOf)).toBe(true);
});

const running = blocks.filter(({ language, flags }) => /^(ts|sh)$/.test(language) && !flags.includes("no-run"));

test.runIf(documents.includes("README.md"))("the README shows a program and a command, and both run", () => {
  const languages = running.filter((block) => block.document === "README.md").map((block) => block.language);
  expect(languages).toEqual(expect.arrayContaining(["ts", "sh"]));
});

describe.runIf(running.length > 0)("what the documents show works:", () => {
  // In the quick run those of the other documents are only compiled. The README's program has a test above.
  const chosen = rows(running, (block) => block.document === "README.md" && block !== first);
  const titled = chosen.map((block) => ({ title: `${block.document}:${block.line} (${block.language})`, block }));
  test.each(titled)("$title", async ({ block }) => {
    const fault = await faultOf(block);
    expect(fault === undefined, fault).toBe(true);
  });
});
