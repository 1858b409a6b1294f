import type { DocumentBlock } from "./document-blocks.ts";

export type ShellCommand =
  | { readonly kind: "run"; readonly line: number; readonly text: string }
  /** Takes too long, or ran before the test: the command only has to exist. */
  | { readonly kind: "known"; readonly line: number; readonly text: string }
  /** `npx troupe …`: it works where the package is installed, which is not the case in a clone. */
  | { readonly kind: "installed"; readonly line: number; readonly text: string; readonly words: readonly string[] }
  | { readonly kind: "unknown"; readonly line: number; readonly text: string; readonly reason: string };

/** Scripts of package.json that a document may show and that are fast enough to run. */
const quickScripts = new Set(["start", "troupe", "example"]);

/** The commands of an `sh` block, one per line; `\` continues a line, `#` begins a comment. `line` is the document's. */
export function commandsOf(block: DocumentBlock, scripts: ReadonlySet<string>): readonly ShellCommand[] {
  const commands: ShellCommand[] = [];
  let pending = "";
  let start = 0;
  for (const [index, row] of block.text.split("\n").entries()) {
    if (pending === "") start = block.line + 1 + index;
    if (row.endsWith("\\")) {
      pending += `${row.slice(0, -1).trim()} `;
      continue;
    }
    const text = (pending + row).trim();
    pending = "";
    if (text !== "" && !text.startsWith("#")) commands.push(classify(text, start, scripts));
  }
  return commands;
}

function classify(text: string, line: number, scripts: ReadonlySet<string>): ShellCommand {
  const unknown = (reason: string): ShellCommand => ({ kind: "unknown", line, text, reason });
  const words = text
    .replace(/\s#.*$/, "")
    .replace(/^(?:[A-Z][A-Z0-9_]*=\S*\s+)+/, "")
    .split(/\s+/);
  const [program, first = "", second = ""] = words;
  if (program === "npx" && first === "troupe") return { kind: "installed", line, text, words: words.slice(2) };
  if (program === "echo" || program === "printf" || program === "cat") return { kind: "run", line, text };
  if (program !== "npm") return unknown("only npm, echo, printf and cat are run");
  if (first === "ci" || first === "install")
    return words.length === 2 ? { kind: "known", line, text } : unknown("show it alone");
  // `npm create troupe` is tested with the built packages.
  if (first === "create" && second.startsWith("troupe@")) return { kind: "known", line, text };
  if (first === "pack") return { kind: "known", line, text };
  const script = first === "run" ? second : first;
  if (!scripts.has(script)) return unknown(`package.json has no script "${script}"`);
  if (quickScripts.has(script)) return { kind: "run", line, text };
  return words.some((word) => /[|;&]/.test(word))
    ? unknown("show it alone, one command a line")
    : { kind: "known", line, text };
}
