/**
 * Where the files of the repository are on the site. Documents link to each other by path, as they do in a clone; the site has each
 * of them at a short address.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { repositoryRoot } from "../scripts/run-command.ts";

/** Pages that are written by `generate-pages.ts`, relative to the root of the repository. */
export const generatedFolder = "site/pages";

/** Documents outside `docs/`, with their addresses. */
const besides: Readonly<Record<string, string>> = {
  "README.md": "index",
  "CONTRIBUTING.md": "contributing",
  "CHANGELOG.md": "changelog",
  "SECURITY.md": "security-policy",
  "CODE_OF_CONDUCT.md": "code-of-conduct",
  "bench/README.md": "bench",
};

/** All written documents of the site: paths from the root of the repository. */
export function documents(): readonly string[] {
  const docs = globSync("docs/**/*.md", { cwd: repositoryRoot }).map((path) => path.replaceAll("\\", "/"));
  return [...Object.keys(besides), ...docs.sort()];
}

/** Programs that have a page of their own. */
export function exampleFiles(): readonly string[] {
  const found = globSync("examples/**/*", { cwd: repositoryRoot, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const root = repositoryRoot.replaceAll("\\", "/");
  return found.map((entry) => posix.relative(root, join(entry.parentPath, entry.name).replaceAll("\\", "/"))).sort();
}

/** The address of a page within the site, without base, leading slash and suffix; `undefined` for a file without a page. */
export function pageAddress(path: string): string | undefined {
  const named = besides[path];
  if (named !== undefined) return named;
  if (path.startsWith("docs/") && path.endsWith(".md")) {
    return path.slice("docs/".length, -".md".length).replace(/(^|\/)README$/, "$1index");
  }
  if (path.startsWith(`${generatedFolder}/`)) return path.slice(generatedFolder.length + 1, -".md".length);
  if (path === "examples") return "examples/index";
  return exampleFiles().includes(path) ? exampleAddress(path) : undefined;
}

/** `examples/served/compose.yaml` has the address `examples/served-compose-yaml`: a suffix in an address would name a file. */
export function exampleAddress(path: string): string {
  const [, rest = ""] = /^examples\/(.*)$/.exec(path) ?? [];
  return `examples/${rest.replace(/\.ts$/, "").replaceAll(/[/._]/g, "-")}`;
}

/** The first heading of a document. */
export function titleOf(path: string): string {
  const file = join(repositoryRoot, path);
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return /^# (.+)$/m.exec(text)?.[1]?.replaceAll("`", "") ?? path;
}

/** The anchor of a heading, as GitHub makes it, so that one link serves both. */
export function headingAnchor(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{Letter}\p{Number}\s_-]/gu, "")
    .replaceAll(" ", "-");
}
