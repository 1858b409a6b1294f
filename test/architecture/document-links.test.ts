// Links between the documents of the repository lead to an existing file and heading.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";

const folders = [".github", "bench", "docs", "examples"];

function documents(): string[] {
  const atRoot = readdirSync(repositoryRoot).filter((name) => name.endsWith(".md"));
  const below = folders.flatMap((folder) =>
    readdirSync(join(repositoryRoot, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".md"))
      .map((name) => join(folder, name)),
  );
  return [...atRoot, ...below];
}

function withoutCode(markdown: string): string {
  return markdown.replaceAll(/^(`{3,})[^]*?^\1$/gm, "").replaceAll(/`[^`\n]*`/g, "");
}

/** The anchors that GitHub creates for the headings of a document. */
function anchorsOf(path: string): Set<string> {
  const markdown = readFileSync(path, "utf8").replaceAll(/^(`{3,})[^]*?^\1$/gm, "");
  return new Set(
    [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{Letter}\p{Number}\s_-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

test("every link has a target", () => {
  const faults = documents().flatMap((document) => {
    const folder = dirname(join(repositoryRoot, document));
    const links = [...withoutCode(readFileSync(join(repositoryRoot, document), "utf8")).matchAll(/\]\(([^)\s]+)\)/g)];
    return links
      .map(([, link = ""]) => link)
      .filter((link) => !/^[a-z]+:/.test(link))
      .filter((link) => {
        const [path = "", anchor] = link.split("#");
        const target = path === "" ? join(repositoryRoot, document) : join(folder, path);
        return !existsSync(target) || (anchor !== undefined && !anchorsOf(target).has(anchor));
      })
      .map((link) => `${relative(".", document)}: ${link}`);
  });
  expect(faults).toEqual([]);
});
