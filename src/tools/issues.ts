import { type Path, renderPath } from "../base/index.ts";

/** One thing that is wrong with a value, for a person or a model to read. */
export interface Issue {
  readonly path: Path;
  readonly message: string;
  /** What would have been right, where it is known. */
  readonly expected?: string | undefined;
}

const maxIssues = 20;
const maxLineLength = 300;

/** One line per issue: `path: message (expected …)`; past 20 issues the rest is counted. */
export function renderIssues(issues: readonly Issue[]): string {
  const lines = issues.slice(0, maxIssues).map(({ path, message, expected }) => {
    const line = `${message}${expected === undefined ? "" : ` (expected ${expected})`}`;
    return `${renderPath(path)}: ${line.length > maxLineLength ? `${line.slice(0, maxLineLength)}…` : line}`;
  });
  if (issues.length > maxIssues) lines.push(`and ${issues.length - maxIssues} more`);
  return lines.join("\n");
}
