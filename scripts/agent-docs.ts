/**
 * The files for coding agents, made from the documentation.
 *
 *     node scripts/agent-docs.ts    # writes AGENTS.md, llms.txt and the skill
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { documents } from "../site/addresses.ts";
import { sidebar, siteLink } from "../site/sidebar.ts";
import { readManifest } from "./manifest.ts";
import { repositoryRoot } from "./run-command.ts";

const skillName = "troupe";
const skillDescription =
  "Writes, changes and tests TypeScript programs with the package troupe: agents, tools, budgets, approvals, subagents and durable " +
  'stores. Use it for code that imports "troupe".';

/** The committed files: their paths from the root of the repository, with their texts. */
export function agentFiles(): Readonly<Record<string, string>> {
  const guide = programGuide();
  return {
    "AGENTS.md": guide,
    "llms.txt": pageList(),
    "skills/troupe/SKILL.md": `---\nname: ${skillName}\ndescription: ${JSON.stringify(skillDescription)}\n---\n\n${guide}`,
  };
}

/** All listed pages in one text, each after its path. */
export function fullText(): string {
  const pages = listedPages().flatMap(({ paths }) => paths);
  return pages.map((path) => `<!-- ${path} -->\n\n${textOf(path).trim()}\n`).join("\n");
}

function textOf(path: string): string {
  return readFileSync(join(repositoryRoot, path), "utf8");
}

function programGuide(): string {
  const source = "docs/coding-agents.md";
  // Links of a copied skill would lead nowhere; paths of the installed package do not.
  const rules = sectionOf(source, "Writing programs with troupe").replace(
    /\[[^\]]+\]\(([^)#]+)(?:#[^)]*)?\)/g,
    (_, target: string) => `\`node_modules/troupe/${posix.join(posix.dirname(source), target)}\``,
  );
  return [
    "# Writing programs with troupe",
    `${readManifest().description} Paths below are those of the installed package; \`node_modules/troupe/llms.txt\` lists all pages.`,
    rules,
    "## A program",
    firstProgram(sectionOf("README.md", "A program")),
    "## An agent behind HTTP",
    firstProgram(textOf("docs/client.md")),
    "## A test",
    `${firstProgram(textOf("docs/testing.md"))}\n`,
  ].join("\n\n");
}

function sectionOf(path: string, heading: string): string {
  const [, after] = textOf(path).split(`\n## ${heading}\n`);
  if (after === undefined) throw new Error(`${path} has no section "${heading}"`);
  return (after.split(/\n## /)[0] ?? "").trim();
}

function firstProgram(markdown: string): string {
  const program = /^```ts\n[\s\S]*?^```$/m.exec(markdown)?.[0];
  if (program === undefined) throw new Error(`There is no program in:\n${markdown}`);
  return program;
}

function pageList(): string {
  const sections = listedPages().map(({ title, paths }) => {
    const lines = paths.map((path) => `- [${headingOf(path)}](${path}): ${firstSentence(path)}`);
    return `## ${title}\n\n${lines.join("\n")}\n`;
  });
  return `# troupe\n\n> ${readManifest().description}\n\n${sections.join("\n")}`;
}

interface PageGroup {
  readonly title: string;
  readonly paths: readonly string[];
}

/** The written documents, in the groups of the sidebar. */
function listedPages(): readonly PageGroup[] {
  const pathOfLink = new Map(documents().map((path) => [siteLink(path), path]));
  return sidebar()
    .map(({ text, items = [] }) => ({
      title: text,
      paths: items.flatMap(({ link = "" }) => pathOfLink.get(link) ?? []),
    }))
    .filter(({ paths }) => paths.length > 0);
}

function headingOf(path: string): string {
  return /^# (.+)$/m.exec(textOf(path))?.[1] ?? path;
}

function firstSentence(path: string): string {
  const paragraph = textOf(path)
    .replace(/^(`{3,})[^\n]*\n[\s\S]*?^\1$/gm, "")
    .split(/\n{2,}/)
    .find((text) => /^[A-Za-z`[*]/.test(text.trim()));
  const plain = (paragraph ?? headingOf(path)).trim().replace(/\[([^\]]+)\]\([^)]+\)/g, "$1");
  const oneLine = plain.replace(/\s+/g, " ");
  return /^.+?[.:](?=\s|$)/.exec(oneLine)?.[0].replace(/:$/, ".") ?? oneLine;
}

if (import.meta.main) {
  for (const [path, text] of Object.entries(agentFiles())) {
    const file = join(repositoryRoot, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
