import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../scripts/run-command.ts";

/** Columns that a signature may take before it is broken into lines: what fits on a page beside its outline. */
const LINE_WIDTH = 84;

const divider = (index: number): string => `// signature ${index}`;

/** Breaks signatures into lines. All are formatted at once, because a start of the formatter takes longer than its work. */
export async function formatSignatures(signatures: readonly string[]): Promise<readonly string[]> {
  // Outside the repository, whose own configuration would count.
  const folder = mkdtempSync(join(tmpdir(), "troupe-signatures-"));
  try {
    const file = join(folder, "all.ts");
    writeFileSync(file, signatures.map((text, index) => `${divider(index)}\n${text}\n`).join(""));
    writeFileSync(
      join(folder, "biome.json"),
      JSON.stringify({
        root: true,
        formatter: { indentStyle: "space", lineWidth: LINE_WIDTH },
        files: { maxSize: 100_000_000 },
        linter: { enabled: false },
      }),
    );
    const { ok, output } = await runCommand("biome", ["format", "--write", file], { directory: folder });
    if (!ok) throw new Error(`The signatures of the API pages cannot be formatted:\n${output.slice(0, 4_000)}`);
    return readFileSync(file, "utf8")
      .split(/^\s*\/\/ signature \d+\n/m)
      .slice(1)
      .map((text) =>
        text
          .trimEnd()
          .replaceAll(/^declare /gm, "")
          .replaceAll(/ \{\}$/gm, ""),
      );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
