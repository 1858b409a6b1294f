// Type-checks the code of other libraries in docs/coming-from: installs the versions that each page names into .troupe/peers,
// which takes the npm registry once, and compiles the blocks tagged "ts theirs". Not a stage of `npm run verify`.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackages } from "../bench/peers/install.ts";
import { blocksOf } from "../test/support/document-blocks.ts";
import { repositoryRoot, runCommand } from "./run-command.ts";

export interface Comparison {
  /** Path of the page from the root of the repository. */
  readonly page: string;
  /** Of the packages that its code of another library imports. */
  readonly versions: Readonly<Record<string, string>>;
  readonly blocks: readonly { readonly line: number; readonly text: string }[];
}

const folder = "docs/coming-from";

/** The pages that compare troupe with another library. */
export function comparisons(): readonly Comparison[] {
  const names = readdirSync(join(repositoryRoot, folder)).filter(
    (name) => name.endsWith(".md") && name !== "README.md",
  );
  return names.sort().map((name) => {
    const page = `${folder}/${name}`;
    const markdown = readFileSync(join(repositoryRoot, page), "utf8");
    const blocks = blocksOf(page, markdown).filter(
      ({ language, flags }) => language === "ts" && flags.includes("theirs"),
    );
    return { page, versions: versionsIn(markdown), blocks };
  });
}

/** Of the paragraph that begins with "Compared with": each `name@version` in code font. */
function versionsIn(markdown: string): Readonly<Record<string, string>> {
  const [paragraph = ""] = /^Compared with [^]*?(?=\n\n)/m.exec(markdown) ?? [];
  const named = paragraph.matchAll(/`(@?[\w./-]+)@(\d[\w.-]*)`/g);
  return Object.fromEntries([...named].map(([, name = "", version = ""]) => [name, version]));
}

const compilerOptions = {
  target: "esnext",
  module: "nodenext",
  moduleResolution: "nodenext",
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  types: ["node"],
  typeRoots: [join(repositoryRoot, "node_modules", "@types")],
};

/** What the compiler finds wrong, or `undefined`. Throws if the packages cannot be installed. */
export async function faultOf({ page, versions, blocks }: Comparison): Promise<string | undefined> {
  const name = basename(page, ".md");
  const place = join(await installPackages(`coming-from-${name}`, versions), "blocks");
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place);
  const files = blocks.map(({ line, text }) => {
    const file = `line-${line}.ts`;
    // Blank lines above give messages the line numbers of the page; `export {}` makes each file a module of its own.
    writeFileSync(join(place, file), `${"\n".repeat(line)}${text}\nexport {};\n`);
    return file;
  });
  writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
  const { ok, output } = await runCommand("tsc", ["-p", place, "--pretty", "false"]);
  return ok ? undefined : output.replaceAll(/^.*line-\d+\.ts/gm, page);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const comparison of comparisons()) {
    const fault = await faultOf(comparison);
    console.log(`${comparison.page}: ${comparison.blocks.length} blocks, ${fault ?? "no faults"}`);
    if (fault !== undefined) process.exitCode = 1;
  }
}
