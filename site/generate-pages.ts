/**
 * Writes the pages that are made from code: the API reference and the examples. They lie in `site/pages`, which is not committed.
 */
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { entryFiles, publicEntries, readManifest } from "../scripts/manifest.ts";
import { repositoryRoot, runCommand } from "../scripts/run-command.ts";
import { exampleAddress, exampleFiles, generatedFolder } from "./addresses.ts";
import { apiAddressesFile, apiPagePath, apiSlug } from "./api-entries.ts";
import { apiReference, declarationFile } from "./api-pages.ts";

/** Files that have not changed are left alone: a server that follows changes, or another build, may be reading them. */
export async function generatePages(): Promise<void> {
  const written = new Set<string>();
  const write: WritePage = (path, text) => {
    const file = join(repositoryRoot, path);
    written.add(file);
    if (existsSync(file) && readFileSync(file, "utf8") === text) return;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  };
  writeExamplePages(write);
  await writeApiPages(write);
  for (const path of globSync(`${generatedFolder}/**/*.{md,json}`, { cwd: repositoryRoot })) {
    if (!written.has(join(repositoryRoot, path))) rmSync(join(repositoryRoot, path));
  }
}

/** Writes a file at a path from the root of the repository. */
type WritePage = (path: string, text: string) => void;

/** Declarations are built anew: those in `dist` may be older than the sources, or missing. */
async function writeApiPages(write: WritePage): Promise<void> {
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

const languages: Readonly<Record<string, string>> = { "": "docker" };

/** How the files of a folder of `examples/` are run. A program of `examples/` itself is run by its own name. */
const commands: Readonly<Record<string, string>> = {
  browser: "npm run example examples/browser/serve.ts",
  evals: "npm run troupe -- eval examples/evals --repeat 3",
  served: "cd examples/served && TROUPE_SERVE_TOKEN=$(openssl rand -hex 24) docker compose up --build",
  teal: "npm run example examples/17-teal-agent.ts",
  "wire-formats": "npm run example examples/31-providers.ts",
};

function commandOf(path: string): string {
  const [, folder = "", ...rest] = path.split("/");
  if (rest.length === 0) return `npm run example ${path}`;
  const command = commands[folder];
  if (command === undefined) throw new Error(`How is ${path} run? Add examples/${folder} to site/generate-pages.ts.`);
  return command;
}

/** The comment at the start of a file, without the commands that it shows: these have a block of their own. */
function openingComment(text: string): string {
  const [comment = ""] = /^(?:(?:\/\/|#)(?: .*)?\n)*/.exec(text) ?? [];
  return comment
    .replaceAll(/^(?:\/\/|#) ?/gm, "")
    .replaceAll(/^ {2,}.*\n/gm, "")
    .trim();
}

function examplePage(path: string, text: string): string {
  const comment = openingComment(text);
  const language = languages[extname(path)] ?? extname(path).slice(1);
  const lead = comment.endsWith(":")
    ? [comment]
    : [...(comment === "" ? [] : [comment]), "In a clone of the repository:"];
  const blocks = [`\`\`\`sh\n${commandOf(path)}\n\`\`\``, `\`\`\`\`${language}\n${text}\n\`\`\`\``];
  return `${[`# ${path.slice("examples/".length)}`, ...lead, ...blocks].join("\n\n")}\n`;
}

function writeExamplePages(write: WritePage): void {
  const rows = exampleFiles().map((path) => {
    const text = readFileSync(join(repositoryRoot, path), "utf8").trimEnd();
    write(`${generatedFolder}/${exampleAddress(path)}.md`, examplePage(path, text));
    const [about = ""] = openingComment(text)
      .replaceAll("\n", " ")
      .split(/(?<=\.) /);
    return `| [${path.slice("examples/".length)}](/${exampleAddress(path)}) | ${about.replaceAll("|", "\\|")} |\n`;
  });
  const intro = [
    "The numbered programs run offline, end by themselves and print something; a test runs each of them. In a clone of the repository:",
    "```sh\nnpm ci\nnpm run example examples/01-one-agent.ts\n```",
    "The files in folders belong together, and their pages say how to start them.",
  ].join("\n\n");
  const table = `| File | What it shows |\n|---|---|\n${rows.join("")}`;
  write(`${generatedFolder}/examples/index.md`, `# Examples\n\n${intro}\n\n${table}`);
}
