/**
 * Writes the pages that are made from code: the API reference and the examples. They lie in `site/pages`, which is not committed.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { entryFiles, publicEntries, readManifest } from "../scripts/manifest.ts";
import { repositoryRoot, runCommand } from "../scripts/run-command.ts";
import { exampleAddress, exampleFiles, generatedFolder } from "./addresses.ts";
import { apiAddressesFile, apiPagePath, apiSlug } from "./api-entries.ts";
import { apiReference, declarationFile } from "./api-pages.ts";

export async function generatePages(): Promise<void> {
  rmSync(join(repositoryRoot, generatedFolder), { recursive: true, force: true });
  writeExamplePages();
  await writeApiPages();
}

function write(path: string, text: string): void {
  const file = join(repositoryRoot, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** Declarations are built anew: those in `dist` may be older than the sources, or missing. */
async function writeApiPages(): Promise<void> {
  const manifest = readManifest();
  mkdirSync(join(repositoryRoot, ".troupe"), { recursive: true });
  // Inside the repository, where the declarations find the packages that they name.
  const folder = mkdtempSync(join(repositoryRoot, ".troupe", "declarations-"));
  try {
    const words = ["-p", "tsconfig.build.json", "--noCheck", "--emitDeclarationOnly", "--outDir", folder];
    const { ok, output } = await runCommand("tsc", words);
    if (!ok) throw new Error(`The declarations of the API pages cannot be built:\n${output}`);
    const files = entryFiles(manifest, "types");
    const entries = publicEntries(manifest).map((entry, index) => ({
      entry,
      file: declarationFile(files[index] ?? "", folder),
    }));
    const { pages, addresses } = await apiReference(entries, folder);
    for (const { entry, markdown } of pages) write(apiPagePath(apiSlug(entry)), markdown);
    write(apiPagePath("index"), apiIndex(addresses));
    write(apiAddressesFile, JSON.stringify(addresses));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function apiIndex(addresses: Readonly<Record<string, Readonly<Record<string, string>>>>): string {
  const entries = Object.entries(addresses).map(([entry, names]) => {
    const links = Object.entries(names).map(([name, to]) => `[\`${name}\`](${to})`);
    return `## [\`${entry}\`](/api/${apiSlug(entry)})\n\n${links.join(" · ")}\n`;
  });
  const intro =
    "Every public name with its signature and its docstring: defaults, units and errors. [Reference](/reference) groups the same " +
    "names by what they are for, with a line on each.\n";
  return `# API\n\n${intro}\n${entries.join("\n")}`;
}

const languages: Readonly<Record<string, string>> = { ".yml": "yaml", "": "docker" };

/** The comment that a file starts with, as Markdown. */
function headingComment(text: string): string {
  const [comment = ""] = /^(?:(?:\/\/|#) .*\n|(?:\/\/|#)\n)*/.exec(text) ?? [];
  return comment.replaceAll(/^(?:\/\/|#) ?/gm, "").trim();
}

function writeExamplePages(): void {
  const rows: string[] = [];
  for (const path of exampleFiles()) {
    const text = readFileSync(join(repositoryRoot, path), "utf8").trimEnd();
    const comment = headingComment(text);
    const language = languages[extname(path)] ?? extname(path).slice(1);
    const isProgram = /^examples\/\d\d-/.test(path);
    const run = isProgram ? `In a clone of the repository, offline:\n\n\`\`\`sh\nnpm run example ${path}\n\`\`\`\n\n` : "";
    const fence = text.includes("```") ? "````" : "```";
    // An indented command of the comment is code in Markdown too.
    const intro = comment === "" ? "" : `${comment}\n\n`;
    write(
      join(generatedFolder, `${exampleAddress(path)}.md`),
      `# ${path.slice("examples/".length)}\n\n${intro}${run}${fence}${language} [${path}]\n${text}\n${fence}\n`,
    );
    const [firstLine = ""] = comment.split("\n");
    rows.push(`| [${path.slice("examples/".length)}](/${exampleAddress(path)}) | ${firstLine.replaceAll("|", "\\|")} |`);
  }
  const intro =
    "Programs that run offline, end by themselves and print something. `npm ci`, then `npm run example examples/01-one-agent.ts` for " +
    "instance. A test runs each of them.";
  write(
    join(generatedFolder, "examples", "index.md"),
    `# Examples\n\n${intro}\n\n| File | What it shows |\n|---|---|\n${rows.join("\n")}\n`,
  );
}
