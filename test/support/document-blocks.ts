export interface DocumentBlock {
  /** Path of the document from the root of the repository. */
  readonly document: string;
  /** Line of the opening fence, counted from 1; the text begins one line below. */
  readonly line: number;
  /** First word after the fence: `ts`, `sh`, `json`, … */
  readonly language: string;
  /** The other words after the fence. */
  readonly flags: readonly string[];
  readonly text: string;
}

/** Fenced blocks of a Markdown text, in order. A fence in a list is read without its indentation. */
export function blocksOf(document: string, markdown: string): readonly DocumentBlock[] {
  const blocks: DocumentBlock[] = [];
  const lines = markdown.split("\n");
  for (let index = 0; index < lines.length; index += 1) {
    const opening = /^(\s*)(`{3,}|~{3,})\s*([^`]*)$/.exec(lines[index] ?? "");
    if (opening === null) continue;
    const [, indentation = "", fence = "", information = ""] = opening;
    const [language = "", ...flags] = information.trim().split(/\s+/);
    const line = index + 1;
    const body: string[] = [];
    for (index += 1; index < lines.length && !isClosing(lines[index] ?? "", fence); index += 1) {
      body.push((lines[index] ?? "").replace(new RegExp(`^\\s{0,${indentation.length}}`), ""));
    }
    blocks.push({ document, line, language, flags, text: body.join("\n") });
  }
  return blocks;
}

function isClosing(line: string, fence: string): boolean {
  const text = line.trim();
  return text.length >= fence.length && text === (fence[0] ?? "").repeat(text.length);
}

/** Tags of languages that could run here but that nothing runs. */
const unwatchedLanguages: Readonly<Record<string, string>> = {
  "": "text, or the language it is in",
  bash: "sh",
  console: "sh",
  javascript: "ts",
  js: "ts",
  mjs: "ts",
  shell: "sh",
  tsx: "ts",
  typescript: "ts",
  zsh: "sh",
};

/** The reason why a block would bypass the checks; `undefined` if there is none. */
export function tagFault(block: DocumentBlock): string | undefined {
  const place = `${block.document}:${block.line}`;
  const wanted = unwatchedLanguages[block.language];
  if (wanted !== undefined) return `${place}: tag this block as ${wanted}; "${block.language}" is not checked`;
  if (block.language !== "ts" && block.language !== "sh") return undefined;
  const unknown = block.flags.filter((flag) => flag !== "no-run" && flag !== "theirs");
  return unknown.length === 0
    ? undefined
    : `${place}: unknown words after ${block.language}: ${unknown.join(" ")}; known: no-run, theirs`;
}
